// Package capturefile reads captures of Ethernet frames, frame by frame as they arrive: pcap and pcapng, also compressed by gzip or bzip2, from a
// file or a stream.
package capturefile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// MaxFrame bounds a frame of a capture, in bytes: what libpcap and tcpdump allow.
const MaxFrame = 262144

// ProgressStep is the number of frames between two calls of Progress.
const ProgressStep = 100_000

// Frame is one frame of a capture.
type Frame struct {
	Time   int64  // ns since the capture's first timestamp; never less than that of the frame before
	Octets []byte // valid until the next one is read
	Length uint32 // on the wire; more than the captured bytes if the snapshot length was short
	// Comments are what a pcapng file says of the frame.
	Comments []string
}

// Reader reads a capture.
type Reader struct {
	First   time.Time // timestamp of the first frame, once that was read
	Frames  int       // frames read so far
	Longest int       // bytes of the longest one of them
	// Progress is called every ProgressStep frames with the number of frames read so far; may be nil.
	Progress func(frames int)

	name      string
	input     *input
	format    format
	source    source
	cooked    bool // other link types than Ethernet are translated
	scratch   []byte
	latest    int64
	backwards int // frames with earlier timestamps than a frame before them
}

// source is what both readers of pcapgo have in common.
type source interface {
	ZeroCopyReadPacketData() ([]byte, gopacket.CaptureInfo, error)
	LinkType() layers.LinkType
}

// NewReader reads a capture from r. Errors and warnings call it by its name.
func NewReader(name string, r io.Reader) (*Reader, error) { return newReader(&Reader{name: name}, r) }

// NewCookedReader is NewReader for captures of IP packets, too, and of Linux's interface "any": these frames get an Ethernet header.
func NewCookedReader(name string, r io.Reader) (*Reader, error) {
	return newReader(&Reader{name: name, cooked: true}, r)
}

func newReader(c *Reader, r io.Reader) (*Reader, error) {
	if err := c.begin(r); err != nil {
		return nil, c.fail(err)
	}
	return c, nil
}

// begin reads up to the first frame.
func (c *Reader) begin(r io.Reader) (err error) {
	if c.input, err = newInput(r); err != nil {
		return err
	}
	if c.format, c.source, err = open(c.input.Reader); err != nil {
		return err
	}
	switch t := c.source.LinkType(); {
	case t == layers.LinkTypeEthernet:
		c.cooked = false
	case c.cooked && translated(t):
	case c.cooked:
		return fmt.Errorf("its frames are of link type %v, expected Ethernet, Linux cooked or raw IP", t)
	default:
		return fmt.Errorf("its frames are of link type %v, expected Ethernet", t)
	}
	return nil
}

func (c *Reader) fail(err error) error { return fmt.Errorf("capture %s: %w", c.name, err) }

// Next reads a frame. It returns io.EOF after the last, *Truncated if the capture ends within a frame.
func (c *Reader) Next() (Frame, error) {
	start := c.input.position()
	size := c.format.recordSize(c.input.Reader)
	octets, info, err := c.source.ZeroCopyReadPacketData()
	switch {
	case err == nil:
		err = plausible(&info)
	case c.input.failed() != nil:
		err = c.input.failed() // which pcapgo may have wrapped, or not
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF) && info.CaptureLength > 0:
		return Frame{}, &Truncated{Name: c.name, Frame: c.Frames + 1, Have: c.input.position() - start, Size: size}
	case errors.Is(err, io.EOF):
		return Frame{}, io.EOF
	}
	if err != nil {
		return Frame{}, c.fail(fmt.Errorf("frame %d: %w", c.Frames+1, err))
	}
	c.note(&info)
	f := Frame{Time: c.latest, Octets: octets, Length: uint32(max(info.Length, len(octets)))}
	if c.cooked {
		c.translate(&f)
	}
	if ng, ok := c.source.(*pcapng); ok {
		f.Comments = ng.comments
	}
	return f, nil
}

// note counts a frame.
func (c *Reader) note(info *gopacket.CaptureInfo) {
	if c.Frames == 0 {
		c.First = timestamp(info)
	}
	at := timestamp(info).Sub(c.First).Nanoseconds()
	if at < c.latest {
		c.backwards++
	}
	c.latest = max(c.latest, at)
	c.Frames++
	c.Longest = max(c.Longest, info.CaptureLength)
	if c.Progress != nil && c.Frames%ProgressStep == 0 {
		c.Progress(c.Frames)
	}
}

// timestamp is that of a frame; a simple packet block of pcapng has none.
func timestamp(info *gopacket.CaptureInfo) time.Time {
	if info.Timestamp.IsZero() {
		return time.Unix(0, 0).UTC()
	}
	return info.Timestamp
}

// plausible rejects a frame that can't be written to an output: classic pcap has 32 bits for the seconds since 1970.
func plausible(info *gopacket.CaptureInfo) error {
	if s := timestamp(info).Unix(); s < 0 || s > math.MaxUint32 {
		return fmt.Errorf("its timestamp is of the year %d, expected 1970 to 2106", info.Timestamp.Year())
	}
	return short(info)
}

// short rejects a frame that is too long.
func short(info *gopacket.CaptureInfo) error {
	if info.CaptureLength > MaxFrame {
		return fmt.Errorf("it has %d bytes, expected at most %d", info.CaptureLength, MaxFrame)
	}
	return nil
}

// Warnings lists what is unusual about the timestamps of the frames read so far.
func (c *Reader) Warnings() []string {
	text := ""
	switch {
	case c.Frames == 0:
		text = "it holds no frames"
	case c.backwards > 0:
		text = fmt.Sprintf("%d frames have earlier timestamps than frames before them; their time is set to the latest one so far", c.backwards)
	case c.Frames > 1 && c.latest == 0:
		text = "all its frames have the same timestamp"
	default:
		return nil
	}
	return []string{c.fail(errors.New(text)).Error()}
}

// Truncated is the error for a capture that ends within a frame.
type Truncated struct {
	Name  string // of the capture
	Frame int    // the incomplete one; 1 is the first
	Have  int    // bytes present of its record: the record's header and the frame
	Size  int    // bytes that the record should have; 0: not known
}

func (t *Truncated) Error() string {
	missing := fmt.Sprintf("it ends %d bytes after frame %d, within a record of unknown size", t.Have, t.Frame-1)
	if t.Size > t.Have {
		missing = fmt.Sprintf("the record of frame %d has %d of %d bytes", t.Frame, t.Have, t.Size)
	}
	return fmt.Sprintf("capture %s: it is cut short: %s; %d frames were read", t.Name, missing, t.Frame-1)
}

// input is an uncompressed stream that counts the bytes read from it.
type input struct {
	*bufio.Reader
	counted *counter
}

const bufferSize = 1 << 20

func newInput(r io.Reader) (*input, error) {
	plain, err := uncompressed(bufio.NewReaderSize(r, bufferSize))
	if err != nil {
		return nil, err
	}
	counted := &counter{from: plain}
	if l, ok := r.(*live); ok {
		counted.ended = l.ctx.Err
	}
	return &input{bufio.NewReaderSize(counted, bufferSize), counted}, nil
}

// position is how many bytes were read.
func (i *input) position() int { return i.counted.n - i.Buffered() }

// failed is the error that ended the stream, nil after a regular end.
func (i *input) failed() error {
	if err := i.counted.err; !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	return nil
}

type counter struct {
	from  io.Reader
	ended func() error // of the context of a live stream, of which much may still be buffered, and compressed; nil: there is none
	n     int
	err   error
}

func (c *counter) Read(b []byte) (int, error) {
	if c.ended != nil && c.ended() != nil {
		c.err = c.ended()
		return 0, c.err
	}
	n, err := c.from.Read(b)
	c.n += n
	if err != nil {
		c.err = err
	}
	return n, err
}
