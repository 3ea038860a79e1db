package replay

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// maxFrame bounds a frame of a capture, in octets: what libpcap and tcpdump allow.
const maxFrame = 262144

// Frame is one frame of a capture.
type Frame struct {
	Time   int64  // ns since the capture's first timestamp; never less than the frame's before it
	Octets []byte // valid until the next one is read
	Length uint32 // on the wire; more than the octets at hand where the capture was taken with a short snapshot length
}

// Capture is a pcap or pcapng file of Ethernet frames.
type Capture struct {
	First    time.Time // timestamp of the first frame
	Frames   int       // how many it has
	Longest  int       // octets of the longest one at hand
	Warnings []string  // what an operator should know of it

	name   string
	file   *os.File
	source source
	last   int64
}

// source is what both readers of pcapgo have in common.
type source interface {
	ZeroCopyReadPacketData() ([]byte, gopacket.CaptureInfo, error)
	LinkType() layers.LinkType
}

// Open reads the file once, so that a replay knows how large its frames are and that it is sound, and stands at its start again.
func Open(name string) (*Capture, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("capture: %w", err)
	}
	c := &Capture{name: name, file: file}
	if err := c.survey(); err != nil {
		_ = file.Close()
		return nil, err
	}
	return c, nil
}

// Close closes the file.
func (c *Capture) Close() error { return c.file.Close() }

// Next reads a frame; io.EOF after the last.
func (c *Capture) Next() (Frame, error) {
	octets, info, err := c.read()
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return Frame{}, io.EOF // survey has warned of it
	case err != nil:
		return Frame{}, err
	case len(octets) > c.Longest:
		return Frame{}, errors.New("the file has changed while it was read")
	}
	c.last = max(c.last, info.Timestamp.Sub(c.First).Nanoseconds())
	return Frame{Time: c.last, Octets: octets, Length: uint32(max(info.Length, len(octets)))}, nil
}

// read is what the source gives, with its peculiarities evened out.
func (c *Capture) read() ([]byte, gopacket.CaptureInfo, error) {
	octets, info, err := c.source.ZeroCopyReadPacketData()
	if errors.Is(err, io.EOF) && info.CaptureLength > 0 {
		err = io.ErrUnexpectedEOF // the frame's header is there, and nothing behind it
	}
	if info.Timestamp.IsZero() {
		info.Timestamp = time.Unix(0, 0).UTC() // a simple packet block of pcapng has none
	}
	return octets, info, err
}

// survey reads the file to its end and notes what a replay must know of it.
func (c *Capture) survey() error {
	if err := c.rewind(); err != nil {
		return err
	}
	latest, backwards := int64(0), 0
	for {
		_, info, err := c.read()
		switch {
		case err == nil:
			err = plausible(&info)
		case errors.Is(err, io.ErrUnexpectedEOF):
			c.warn("it is cut short: its last frame is not whole and is left out; %d frames are read", c.Frames)
			fallthrough
		case errors.Is(err, io.EOF):
			c.warnOfTimes(latest, backwards)
			return c.rewind()
		}
		if err != nil {
			return fmt.Errorf("capture %s: frame %d: %w", c.name, c.Frames+1, err)
		}
		if c.Frames == 0 {
			c.First = info.Timestamp
		}
		at := info.Timestamp.Sub(c.First).Nanoseconds()
		if at < latest {
			backwards++
		}
		latest = max(latest, at)
		c.Frames++
		c.Longest = max(c.Longest, info.CaptureLength)
	}
}

// plausible refuses a frame that no output could hold: classic pcap has 32 bits for the seconds since 1970.
func plausible(info *gopacket.CaptureInfo) error {
	if s := info.Timestamp.Unix(); s < 0 || s > math.MaxUint32 {
		return fmt.Errorf("its timestamp is of the year %d, expected 1970 to 2106", info.Timestamp.Year())
	}
	if info.CaptureLength > maxFrame {
		return fmt.Errorf("it has %d octets, expected at most %d", info.CaptureLength, maxFrame)
	}
	return nil
}

func (c *Capture) warnOfTimes(latest int64, backwards int) {
	switch {
	case c.Frames == 0:
		c.warn("it holds no frames")
	case backwards > 0:
		c.warn("%d frames have earlier timestamps than frames in front of them, and are taken at the latest time so far", backwards)
	case c.Frames > 1 && latest == 0:
		c.warn("all its frames have one timestamp, and are taken at one instant")
	}
}

func (c *Capture) warn(format string, args ...any) {
	c.Warnings = append(c.Warnings, "capture "+c.name+": "+fmt.Sprintf(format, args...))
}

func (c *Capture) rewind() error {
	if _, err := c.file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("capture %s: %w; expected a file, not a pipe", c.name, err)
	}
	source, err := reader(c.file)
	if err != nil {
		return fmt.Errorf("capture %s: %w", c.name, err)
	}
	if t := source.LinkType(); t != layers.LinkTypeEthernet {
		return fmt.Errorf("capture %s: its frames are of link type %v, expected Ethernet", c.name, t)
	}
	c.source, c.last = source, 0
	return nil
}

// reader tells pcap from pcapng by the first word.
func reader(file io.Reader) (source, error) {
	b := bufio.NewReaderSize(file, 1<<20)
	magic, err := b.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("it has %d octets; expected a pcap or pcapng file", len(magic))
	}
	const pcapng = 0x0a0d0d0a // the same in either byte order
	if binary.BigEndian.Uint32(magic) == pcapng {
		r, err := pcapgo.NewNgReader(b, pcapgo.NgReaderOptions{ErrorOnMismatchingLinkType: true})
		if err != nil {
			return nil, fmt.Errorf("not a sound pcapng file: %w", headless(err))
		}
		return r, nil
	}
	r, err := pcapgo.NewReader(b)
	if err != nil {
		return nil, fmt.Errorf("not a pcap or pcapng file: %w", headless(err))
	}
	r.SetSnaplen(maxFrame)
	return r, nil
}

// headless says what the end of a file means where its header should be.
func headless(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it ends within its header")
	}
	return err
}
