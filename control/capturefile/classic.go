package capturefile

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/gopacket/gopacket/layers"
)

// classic reads the frames of a pcap file (draft-ietf-opsawg-pcap). Unlike pcapgo's reader it takes records with more bytes than the frame had on the wire,
// which some tools write.
type classic struct {
	from  *bufio.Reader
	order binary.ByteOrder
	units int64 // ns, of the fraction of a second
	link  layers.LinkType
	extra int // bytes behind a record's header (Alexey Kuznetzov's format)
}

const (
	fileHeader = 24

	magicMicro    = 0xa1b2c3d4
	magicNano     = 0xa1b23c4d
	magicModified = 0xa1b2cd34
)

// newClassic reads the file's header.
func newClassic(from *bufio.Reader) (*classic, error) {
	r := &classic{from: from, units: 1000}
	b, err := take(from, fileHeader)
	if err != nil {
		return nil, err
	}
	if r.order = orderOf(b); r.order == nil {
		return nil, fmt.Errorf("it begins with %08x", b[:4])
	}
	switch r.order.Uint32(b) {
	case magicNano:
		r.units = 1
	case magicModified:
		r.extra = 8
	}
	if major := r.order.Uint16(b[4:]); major != 2 {
		return nil, fmt.Errorf("its version is %d.%d, expected 2.4", major, r.order.Uint16(b[6:]))
	}
	r.link = layers.LinkType(r.order.Uint32(b[20:]) & 0xffff) // above: whether frames have a frame check sequence
	return r, nil
}

// orderOf is the byte order of a pcap file that begins with b; nil if it is none.
func orderOf(b []byte) binary.ByteOrder {
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		switch order.Uint32(b) {
		case magicMicro, magicNano, magicModified:
			return order
		}
	}
	return nil
}

// linkType is that of all frames.
func (r *classic) linkType() layers.LinkType { return r.link }

// next reads a frame.
func (r *classic) next(to *record) error {
	to.size = recordHeader + r.extra
	b, err := take(r.from, to.size)
	if err != nil {
		return err
	}
	seconds, fraction, length := int64(r.order.Uint32(b)), int64(r.order.Uint32(b[4:]))*r.units, r.order.Uint32(b[8:])
	switch {
	case length > MaxFrame:
		return fmt.Errorf("its record has %d bytes, expected at most %d", length, MaxFrame)
	case fraction >= second && seconds == 0 || fraction > 2*second:
		return errors.New("the fraction of its time is more than a second")
	}
	to.size += int(length)
	to.length = r.order.Uint32(b[12:])
	if to.at, err = instant(seconds, fraction); err != nil {
		return err
	}
	to.octets, err = take(r.from, int(length))
	return unexpected(err)
}

// take reads n bytes, at most the size of the buffer. They are valid until the next ones are read.
func take(from *bufio.Reader, n int) ([]byte, error) {
	b, err := from.Peek(n)
	if _, failed := from.Discard(len(b)); failed != nil {
		return nil, failed
	}
	if len(b) == n {
		return b, nil
	}
	if len(b) > 0 {
		err = unexpected(err)
	}
	return nil, err
}
