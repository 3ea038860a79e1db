package replay

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/cnpgate/cnpgate/control/capturefile"
	"github.com/cnpgate/cnpgate/health"
	"github.com/cnpgate/cnpgate/internal/burst/inmem"
)

// Capture is a capture that can be read twice: a replay needs the size of its longest frame before it begins.
type Capture struct {
	First    time.Time // timestamp of the first frame
	Frames   int       // how many it has
	Longest  int       // bytes of the longest one at hand
	Warnings []string  // warnings about it, for the operator

	name    string
	from    io.ReadSeeker
	file    *os.File // from, if it is Close's to close
	reader  *capturefile.Reader
	damaged bool              // it has a record, or compressed data, that can't be read
	order   capturefile.Order // if frames have earlier timestamps than one before them, the capture is sorted
	lost    uint64            // frames that were dropped while it was captured
	places  []string
	shift   func(*capturefile.Frame) int64 // ns that are added to times; nil: none
}

// Stdin is the name of standard input.
const Stdin = "-"

// Open reads the capture once and returns to its start. It makes a temporary copy of a stream, such as Stdin or a named pipe. progress is called every
// capturefile.ProgressStep frames with the number of frames read so far; may be nil.
func Open(name string, progress func(frames int)) (*Capture, error) {
	c := &Capture{name: name}
	err := c.open()
	if err == nil {
		c.from = c.file
		err = c.survey(progress)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// OpenFrom is Open for what is no file of the operating system. It needs no Close.
func OpenFrom(name string, from io.ReadSeeker) (*Capture, error) {
	c := &Capture{name: name, from: from}
	return c, c.survey(nil)
}

func (c *Capture) open() (err error) {
	if c.name == Stdin {
		return c.copyOf(os.Stdin)
	}
	if err := capturefile.CheckName(c.name); err != nil {
		return err
	}
	if c.file, err = os.Open(c.name); err != nil {
		return fmt.Errorf("capture: %w", err)
	}
	info, err := c.file.Stat()
	if err != nil {
		return fmt.Errorf("capture: %w", err)
	}
	if info.Mode().IsRegular() {
		return nil
	}
	stream := c.file
	c.file = nil
	return errors.Join(c.copyOf(stream), stream.Close())
}

func (c *Capture) copyOf(stream io.Reader) (err error) {
	if c.file, err = os.CreateTemp("", "cnpgate-capture-"); err != nil {
		return fmt.Errorf("capture %s: its temporary copy: %w", c.name, err)
	}
	err = os.Remove(c.file.Name()) // an open file stays until it is closed
	if err == nil {
		_, err = io.Copy(c.file, stream)
	}
	if err != nil {
		return fmt.Errorf("capture %s: its temporary copy: %w", c.name, err)
	}
	return nil
}

// Close closes the file.
func (c *Capture) Close() error {
	if c.file == nil {
		return nil
	}
	return c.file.Close()
}

// Next reads a frame; io.EOF after the last whole one.
func (c *Capture) Next() (capturefile.Frame, error) {
	frame, err := c.reader.Next()
	if capturefile.Ends(err) {
		return frame, io.EOF // survey has warned about it
	}
	if err == nil && len(frame.Octets) > c.Longest {
		err = fmt.Errorf("capture %s: the file has changed while it was read", c.name)
	}
	return frame, err
}

// survey reads the file to its end and notes what a replay needs to know. If it isn't in the order of time, it is read once more as it will be sorted.
func (c *Capture) survey(progress func(frames int)) error {
	if err := c.readAll(progress); err != nil {
		return err
	}
	if c.order = c.reader.Order(); c.order.Disordered > 0 {
		if err := c.settleOrder(); err != nil {
			return err
		}
		if err := c.readAll(progress); err != nil {
			return err
		}
	}
	c.First, c.Frames, c.Longest = c.reader.First.Add(-time.Duration(c.reader.Earlier())), c.reader.Frames, c.reader.Longest
	c.places, c.lost = c.reader.Places(), c.reader.Lost
	c.Warnings = append(c.Warnings, c.reader.Warnings()...)
	return c.rewind()
}

func (c *Capture) readAll(progress func(frames int)) error {
	if err := c.rewind(); err != nil {
		return err
	}
	c.reader.Progress, c.Warnings = progress, nil
	for {
		_, err := c.reader.Next()
		if cut := (*capturefile.Cut)(nil); errors.As(err, &cut) {
			c.damaged = c.reader.Resumed() || cut.Damaged
			c.Warnings = append(c.Warnings, err.Error())
			return nil
		}
		if errors.Is(err, io.EOF) {
			c.damaged = c.reader.Resumed()
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (c *Capture) rewind() (err error) {
	if _, err = c.from.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("capture %s: %w; expected a file, or a stream of one", c.name, err)
	}
	if c.reader, err = capturefile.NewReader(c.name, c.from); err == nil && (c.order.Disordered > 0 || c.shift != nil) {
		c.reader.Sort(c.order)
		c.reader.Shift(c.shift)
	}
	return err
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
