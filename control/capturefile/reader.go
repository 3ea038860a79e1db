// Package capturefile reads captures, frame by frame as they arrive: pcap and pcapng, also compressed by gzip, bzip2 or zstd, also several files one after
// the other, from a file or a stream. Frames of other link types get an Ethernet header.
package capturefile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/gopacket/gopacket/layers"
)

// MaxFrame bounds a frame of a capture, in bytes: what libpcap and tcpdump allow.
const MaxFrame = 262144

// ProgressStep is the number of frames between two calls of Progress.
const ProgressStep = 100_000

// Frame is one frame of a capture.
type Frame struct {
	Time   int64  // ns since the capture's first timestamp (Sort: the earliest one); never less than that of the frame before
	Octets []byte // valid until the next one is read
	Length uint32 // on the wire; more than the captured bytes if the snapshot length was short
	Place  int    // where it was captured: an index of Reader.Places
	Shift  int64  // ns that Reader.Shift has added to its time
	// Unread names the link type of a frame that can't be read; it has no octets.
	Unread string
	// Comments are what a pcapng file says of the frame.
	Comments []string
}

// Reader reads a capture.
type Reader struct {
	First   time.Time // timestamp of the first frame, once that was read
	Frames  int       // frames read so far
	Longest int       // bytes of the longest one of them
	Lost    uint64    // frames that were dropped while it was captured, as the file says
	// Progress is called every ProgressStep frames with the number of frames read so far; may be nil.
	Progress func(frames int)

	name      string
	input     *input
	source    source
	record    record // the latest one
	scratch   []byte
	first     int64 // ns since 1970
	latest    int64
	appended  int    // files behind the first one
	jumps     int    // times when the clock went far ahead, or nothing was captured
	backwards int    // frames with earlier timestamps than a frame before them
	raw       int64  // the latest time, as the file has it
	ended     int64  // that of the latest frame
	shift     int64  // ns that are added to times
	damage    string // the first damaged record behind which others were found
	damages   int
	leftOut   int // bytes between them
	places    places
	shifts    func(*Frame) int64 // ns that are added to a time; nil: none
	window    *window            // nil: the order of the file is kept
	late      int                // frames that were too far behind to be sorted
	untimed   int                // frames of which the file doesn't say the time: they have that of the frame before
	clocks    []clock            // by place
	// corrections of the times of a sorted capture, by place.
	corrections []*correction
}

// stream is what sources of all formats have.
type stream struct {
	from  *input
	order binary.ByteOrder // of the file, or the section
	link  layers.LinkType  // of the latest frame; before the first, of the first interface
}

func (s *stream) linkType() layers.LinkType { return s.link }

func (s *stream) byteOrder() binary.ByteOrder { return s.order }

// source reads the records of a file.
type source interface {
	// next reads a record. The error is io.EOF after the last one, io.ErrUnexpectedEOF within one, and errAnother where another file begins. A record with an
	// error isn't taken from the input.
	next(*record) error
	linkType() layers.LinkType
	byteOrder() binary.ByteOrder
	// plausible is the size of the record that may begin so many bytes behind the next byte, 0 if none may.
	plausible(at int) int
}

// record is a frame as a file has it.
type record struct {
	size     int    // bytes of the record with its headers, as far as they have come
	octets   []byte // valid until the next one is read
	length   uint32 // on the wire, as the file says
	at       int64  // ns since 1970; 0: the file doesn't say
	comments []string
	lost     uint64 // frames that were dropped before it
	on       uint32 // number of the interface, in a section of a file
	section  int
}

// NewReader reads a capture from r. Errors and warnings call it by its name.
func NewReader(name string, r io.Reader) (*Reader, error) {
	c := &Reader{name: name}
	if err := c.begin(r); err != nil {
		return nil, c.fail(err)
	}
	return c, nil
}

// begin reads up to the first frame.
func (c *Reader) begin(r io.Reader) (err error) {
	if c.input, err = openInput(r); err != nil {
		return err
	}
	if err = c.open(); err != nil {
		if by := c.input.packed; by != "" {
			err = fmt.Errorf("uncompressed by %s: %w", by, err)
		}
		return err
	}
	_, ng := c.source.(*pcapng)
	if t := c.source.linkType(); !ng && !readable(t) { // of a pcapng file other interfaces may be readable
		return fmt.Errorf("its frames are of %s, expected Ethernet, IP, or Linux's or BSD's loopback or \"any\" interfaces; capture at one of them", linkName(t))
	}
	return nil
}

// open begins a file.
func (c *Reader) open() (err error) {
	c.source, err = open(c.input)
	return err
}

func (c *Reader) fail(err error) error { return fmt.Errorf("capture %s: %w", c.name, err) }

// Next reads a frame. It returns io.EOF after the last, *Cut if the rest is missing or damaged.
func (c *Reader) Next() (Frame, error) {
	if c.window != nil {
		return c.sorted()
	}
	return c.next()
}

// next reads a frame in the order of the file.
func (c *Reader) next() (Frame, error) {
	r := &c.record
	start, err := c.read(r)
	switch {
	case err == nil:
	case c.input.failed() != nil && c.Frames > 0 && c.input.damaged():
		return Frame{}, c.damaged(c.input.position(), fmt.Errorf("its %s data is damaged, or something else follows it: %w", c.input.packed, c.input.failed()))
	case c.input.failed() != nil:
		return Frame{}, c.fail(fmt.Errorf("frame %d: %w", c.Frames+1, c.input.failed()))
	case errors.Is(err, io.ErrUnexpectedEOF):
		return Frame{}, c.truncated(c.input.position()-start, r.size)
	case errors.Is(err, io.EOF):
		return Frame{}, io.EOF
	case c.Frames > 0:
		return Frame{}, c.damaged(start, err)
	default:
		return Frame{}, c.fail(fmt.Errorf("frame 1: %w", err))
	}
	at := c.places.of(place{c.appended, r.section, r.on, indexOf(r.octets, c.source.linkType())}, c.source)
	f := Frame{Octets: r.octets, Length: max(r.length, uint32(len(r.octets))), Comments: r.comments, Place: at}
	if link := c.source.linkType(); link != layers.LinkTypeEthernet {
		c.translate(&f, link, c.source.byteOrder())
	}
	if c.shifts != nil {
		f.Shift = c.shifts(&f)
	}
	f.Time = c.note(r, at, c.shift+f.Shift)
	return f, nil
}

// read reads a record that begins at a position of the input.
func (c *Reader) read(r *record) (start int, err error) {
	for {
		*r, start = record{}, c.input.position()
		err = c.source.next(r)
		c.Lost += r.lost
		switch {
		case err == nil, errors.Is(err, io.EOF), c.input.failed() != nil:
			return start, err
		case errors.Is(err, errAnother):
			if err = c.open(); err != nil {
				return start, err
			}
			c.appended++
		case !c.resume(err):
			return start, err
		}
	}
}

// note counts a frame of a place, and returns its time, to which a sorted capture's has so many ns added.
func (c *Reader) note(r *record, place int, shift int64) int64 {
	if c.Frames == 0 {
		c.first = r.at
		c.First = time.Unix(0, r.at).UTC()
	}
	at := r.at - c.first
	if r.at == 0 && c.Frames > 0 {
		at = c.ended
		c.untimed++
	}
	c.ended = at
	if at < c.raw {
		c.backwards++
	}
	c.raw = max(c.raw, at)
	for place >= len(c.clocks) {
		c.clocks = append(c.clocks, clock{})
	}
	c.clocks[place].note(at)
	if place < len(c.corrections) && c.corrections[place] != nil {
		at = c.corrections[place].of(at)
	}
	if at-c.latest > longPause && c.Frames > 0 {
		c.jumps++
	}
	c.latest = max(c.latest, at)
	c.Frames++
	c.Longest = max(c.Longest, len(r.octets))
	if c.Progress != nil && c.Frames%ProgressStep == 0 {
		c.Progress(c.Frames)
	}
	if c.window != nil {
		return at + shift
	}
	return c.latest
}

const second = 1e9 // ns

// instant is a time of a file, ns since 1970. One that can't be written to an output is refused: classic pcap has 32 bits for the seconds.
func instant(seconds, ns int64) (int64, error) {
	if seconds += ns / second; seconds < 0 || seconds > math.MaxUint32 {
		return 0, fmt.Errorf("its timestamp is of the year %d, expected 1970 to 2106", time.Unix(seconds, 0).UTC().Year())
	}
	return seconds*second + ns%second, nil
}

// Warnings lists what is unusual about the timestamps of the frames read so far.
func (c *Reader) Warnings() []string {
	var all []string
	warn := func(condition bool, format string, args ...any) {
		if condition {
			all = append(all, c.fail(fmt.Errorf(format, args...)).Error())
		}
	}
	warn(c.Frames == 0, "it holds no frames")
	warn(c.damages > 0, "damaged places: %d, the first at %s; bytes left out: %d; frames in them count as not captured", c.damages, c.damage, c.leftOut)
	warn(c.appended > 0, "%d more files follow the first one in it", c.appended)
	if f, ok := c.source.(*classic); ok {
		warn(f.misnamed, "its times are in nanoseconds, although its header says microseconds (0xa1b2c3d4, not 0xa1b23c4d)")
	}
	switch {
	case c.window == nil:
		warn(c.backwards > 0, "%d frames have earlier timestamps than frames before them; their time is set to the latest one so far", c.backwards)
	case c.clockSaid() != "":
		warn(true, "%d frames have earlier timestamps than frames before them: %s; times follow the order of the file", c.backwards, c.clockSaid())
	case c.late == 0:
		warn(true, "%d frames have earlier timestamps than frames before them; it was sorted by time", c.backwards)
	default:
		warn(true, "%d frames have earlier timestamps than frames before them; it was sorted by time, but %d of them are too far behind: their time is set to the latest one "+
			"so far; sort the file (reordercap), or correct its clocks (editcap -t)", c.backwards, c.late)
	}
	warn(c.jumps > 0, "its time jumps ahead by more than %v, %d times: the clock was set, or nothing was captured", time.Duration(longPause), c.jumps)
	warn(c.untimed > 0 && c.latest > 0, "%d frames have no timestamp; they count as captured at the time of the frame before", c.untimed)
	warn(c.Frames > 1 && c.latest == 0 && c.backwards == 0, "all its frames have the same timestamp")
	return all
}

// longPause is how far the time may go ahead from a frame to the next one without a warning, ns.
const longPause = int64(10 * time.Minute)

// Resumed reports whether records that can't be read were left out so far.
func (c *Reader) Resumed() bool { return c.damages > 0 }

// Cut is the error for a capture whose rest is missing or can't be read. What came before it can be used.
type Cut struct {
	error
	Damaged bool // it is there, and can't be read
}

func (c *Cut) Unwrap() error { return c.error }

// Ends reports whether an error is only a Cut.
func Ends(err error) bool { return errors.As(err, new(*Cut)) }

// place says where a record is that can't be read, and why, by the position of the input.
func (c *Reader) place(at int, err error) error {
	return fmt.Errorf("frame %d, near byte %d: %w", c.Frames+1, at, err)
}

// damaged is the error for a record at a position of the input.
func (c *Reader) damaged(at int, err error) error {
	return &Cut{c.fail(fmt.Errorf("it is damaged: %w; frames read: %d, and nothing of what follows", c.place(at, err), c.Frames)), true}
}

// truncated is the error for a record of so many bytes, 0 if that isn't known, of which fewer are there.
func (c *Reader) truncated(have, size int) error {
	missing := fmt.Sprintf("it ends at byte %d of a record of unknown size", have)
	switch {
	case have == 0: // whole records, so it is what has them that isn't whole
		missing = "its compressed data is not whole, or something else follows it"
	case size > have:
		missing = fmt.Sprintf("the record of frame %d has %d of %d bytes", c.Frames+1, have, size)
	}
	return &Cut{c.fail(fmt.Errorf("it is cut short: %s; frames read: %d", missing, c.Frames)), false}
}
