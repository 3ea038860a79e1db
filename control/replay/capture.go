package replay

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/cnpgate/cnpgate/control/capturefile"
	"github.com/cnpgate/cnpgate/health"
	"github.com/cnpgate/cnpgate/internal/burst/inmem"
)

// Capture is a capture that can be read twice: a replay needs the size of its longest frame before it begins. It may be in several files, as of a ring buffer, or of
// one interface each: they are read as one, in the order of time.
type Capture struct {
	First    time.Time // timestamp of the first frame
	Frames   int       // how many it has
	Longest  int       // bytes of the longest one at hand
	Warnings []string  // warnings about it, for the operator

	name    string
	files   []*file // in the order of their first frames
	reading []*file // those whose next frame is at hand
	begun   int     // files that were begun
	given   *file   // the one of the frame that Next has returned
	damaged bool    // it has a record, or compressed data, that can't be read
	lost    uint64  // frames that were dropped while it was captured
	places  []string
	shift   func(*capturefile.Frame) int64 // ns that are added to times; nil: none
}

// Stdin is the name of standard input.
const Stdin = "-"

// Open is OpenAll for one name.
func Open(name string, progress func(frames int)) (*Capture, error) {
	return OpenAll([]string{name}, progress)
}

// OpenAll reads the files of a capture once and returns to their start; a directory stands for the files in it. It makes a temporary copy of a stream, such as Stdin or a
// named pipe. progress is called every capturefile.ProgressStep frames of a file with the number of its frames read so far; may be nil.
func OpenAll(names []string, progress func(frames int)) (*Capture, error) {
	c := &Capture{name: strings.Join(names, ", ")}
	err := c.open(names)
	if err == nil {
		err = c.survey(progress)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Source is a file that isn't the operating system's.
type Source struct {
	Name string
	From io.ReadSeeker
}

// OpenFrom is OpenAll for files that aren't the operating system's. It needs no Close.
func OpenFrom(sources ...Source) (*Capture, error) {
	c := &Capture{}
	var names []string
	for _, s := range sources {
		names = append(names, s.Name)
		c.files = append(c.files, &file{name: s.Name, from: s.From})
	}
	c.name = strings.Join(names, ", ")
	return c, c.survey(nil)
}

func (c *Capture) open(names []string) error {
	for _, name := range names {
		all, listed, err := filesOf(name)
		if err != nil {
			return err
		}
		for _, name := range all {
			f := &file{name: name, listed: listed}
			c.files = append(c.files, f)
			if err := f.open(); err != nil {
				return err
			}
		}
	}
	return nil
}

// filesOf are the files that a name stands for, and whether they are those of a directory.
func filesOf(name string) (all []string, listed bool, err error) {
	entries, err := os.ReadDir(name)
	if err != nil {
		return []string{name}, false, nil //nolint:nilerr // it is no directory, or opening it says why it can't be read
	}
	for _, e := range entries {
		path := filepath.Join(name, e.Name())
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && !strings.HasPrefix(e.Name(), ".") {
			all = append(all, path)
		}
	}
	if len(all) == 0 {
		return nil, true, fmt.Errorf("capture %s: there is no file in this directory", name)
	}
	return all, true, nil
}

// Close closes the files.
func (c *Capture) Close() (err error) {
	for _, f := range c.files {
		err = errors.Join(err, f.close())
	}
	return err
}

// survey reads the files to their ends and notes what a replay needs to know. Those of a directory that can't be read, such as notes, are left out.
func (c *Capture) survey(progress func(frames int)) error {
	var captures, others []*file
	var why error
	for _, f := range c.files {
		if err := f.survey(progress); err != nil {
			if !f.listed {
				return err
			}
			others, why = append(others, f), cmp.Or(why, err)
			continue
		}
		captures = append(captures, f)
		c.Warnings = append(c.Warnings, f.warnings...)
		f.places = len(c.places)
		for _, place := range f.reader.Places() {
			if len(c.files) > 1 {
				place = strings.TrimSuffix(filepath.Base(f.name)+", "+place, ", file 1")
			}
			c.places = append(c.places, place)
		}
		c.Frames, c.Longest = c.Frames+f.reader.Frames, max(c.Longest, f.reader.Longest)
		c.lost, c.damaged = c.lost+f.reader.Lost, c.damaged || f.damaged
	}
	switch {
	case len(captures) == 0:
		return why
	case len(others) > 0:
		c.Warnings = append(c.Warnings, fmt.Sprintf("%d of %d files are left out, the first one: %v", len(others), len(c.files), why))
	}
	c.files = captures
	for _, f := range others {
		if err := f.close(); err != nil {
			return err
		}
	}
	slices.SortStableFunc(c.files, func(a, b *file) int { return a.first.Compare(b.first) })
	for _, f := range c.files {
		if f.reader.Frames > 0 {
			c.First = f.first
			break
		}
	}
	c.rewind()
	return nil
}

func (c *Capture) rewind() {
	for _, f := range c.files {
		f.reader = nil
	}
	c.reading, c.given, c.begun = c.reading[:0], nil, 0
}

// Next reads a frame; io.EOF after the last whole one.
func (c *Capture) Next() (capturefile.Frame, error) {
	if err := c.advance(); err != nil {
		return capturefile.Frame{}, err
	}
	for c.begun < len(c.files) && (len(c.reading) == 0 || c.sinceFirst(c.files[c.begun]) <= c.earliest().next.Time) {
		f := c.files[c.begun]
		c.begun++
		if err := f.rewind(c.shift); err != nil {
			return capturefile.Frame{}, err
		}
		c.reading, c.given = append(c.reading, f), f
		if err := c.advance(); err != nil {
			return capturefile.Frame{}, err
		}
	}
	if len(c.reading) == 0 {
		return capturefile.Frame{}, io.EOF
	}
	c.given = c.earliest()
	return c.given.next, nil
}

// advance reads the next frame of the file that the latest one was of.
func (c *Capture) advance() error {
	f := c.given
	if c.given = nil; f == nil {
		return nil
	}
	err := f.read()
	if errors.Is(err, io.EOF) {
		c.reading = slices.DeleteFunc(c.reading, func(o *file) bool { return o == f })
		f.late, f.reader = f.reader.Late(), nil
		return nil
	}
	f.next.Time += c.sinceFirst(f)
	return err
}

// sinceFirst is when a file begins, ns.
func (c *Capture) sinceFirst(f *file) int64 { return max(int64(f.first.Sub(c.First)), 0) }

// earliest is the file with the earliest frame at hand.
func (c *Capture) earliest() *file {
	first := c.reading[0]
	for _, f := range c.reading[1:] {
		if f.next.Time < first.next.Time {
			first = f
		}
	}
	return first
}

// late is how many frames were too far apart to be sorted in the latest pass.
func (c *Capture) late() (n int) {
	for _, f := range c.files {
		n += f.late
	}
	return n
}

// outputs writes the frames that leave the gateway to two captures, with the time of departure.
type outputs struct {
	forwarded, emitted *pcapgo.Writer // nil if not wanted
	first              time.Time
	err                error
}

func newOutputs(o Options, first time.Time) (*outputs, error) {
	out := &outputs{first: first}
	var err error
	if out.forwarded, err = writer(o.Forwarded); err != nil {
		return nil, fmt.Errorf("--forwarded: %w", err)
	}
	if out.emitted, err = writer(o.Emitted); err != nil {
		return nil, fmt.Errorf("--emitted: %w", err)
	}
	return out, nil
}

func writer(w io.Writer) (*pcapgo.Writer, error) {
	if w == nil {
		return nil, nil
	}
	p := pcapgo.NewWriterNanos(w)
	return p, p.WriteFileHeader(capturefile.MaxFrame, layers.LinkTypeEthernet)
}

// sent takes a frame that left; one that the worker built itself is a notification.
func (o *outputs) sent(s inmem.Sent) {
	w := o.forwarded
	if s.Built {
		w = o.emitted
	}
	if w == nil || o.err != nil {
		return
	}
	o.err = w.WritePacket(gopacket.CaptureInfo{
		Timestamp: o.first.Add(time.Duration(s.Now - epoch)), CaptureLength: len(s.Octets), Length: int(s.Length),
	}, s.Octets)
}

// verdicts are those about the capture itself.
func (c *Capture) verdicts() []health.Verdict {
	if c.lost == 0 {
		return nil
	}
	return []health.Verdict{{
		Name: health.Incomplete, Subject: "the place of capture", Weight: c.lost,
		Evidence: fmt.Sprintf("the file says that %d frames were dropped while it was captured, beside the %d in it", c.lost, c.Frames),
		Advice:   "give the capture a larger buffer (tcpdump -B) and a shorter snapshot length (-s 128)",
	}}
}
