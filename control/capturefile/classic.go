package capturefile

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/gopacket/gopacket/layers"
)

// classic reads the frames of a pcap file (draft-ietf-opsawg-pcap). Unlike pcapgo's reader it takes records with more bytes than the frame had on the wire,
// which some tools write.
type classic struct {
	from  *input
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

// newClassic reads the file's header, which begins with a magic number.
func newClassic(from *input) (*classic, error) {
	r := &classic{from: from, units: 1000}
	b, err := from.Peek(fileHeader)
	if err != nil {
		return nil, err
	}
	r.order = orderOf(b)
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
	return r, from.Discard(fileHeader)
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
	header := recordHeader + r.extra
	to.size = header
	b, err := r.from.Peek(header)
	switch {
	case begins(b):
		return errAnother
	case len(b) < header:
		return r.cut(b, err)
	}
	seconds, fraction, length := int64(r.order.Uint32(b)), int64(r.order.Uint32(b[4:]))*r.units, r.order.Uint32(b[8:])
	switch {
	case *(*[recordHeader]byte)(b) == [recordHeader]byte{}:
		return errors.New("the header of its record has only zeros, as after a crash or on a full disk")
	case length > MaxFrame:
		return fmt.Errorf("its record has %d bytes, expected at most %d", length, MaxFrame)
	case fraction >= second && seconds == 0 || fraction > 2*second:
		return errors.New("the fraction of its time is more than a second")
	}
	to.length = r.order.Uint32(b[12:])
	if to.at, err = instant(seconds, fraction); err != nil {
		return err
	}
	to.size += int(length)
	if b, err = r.from.Peek(to.size); len(b) < to.size {
		return r.cut(b, err)
	}
	to.octets = b[header:]
	return r.from.Discard(int64(len(b)))
}

// cut takes the last bytes of a file that ends within a record, or before one, and returns the error.
func (r *classic) cut(b []byte, err error) error {
	if len(b) == 0 {
		return err
	}
	return cmp.Or(r.from.Discard(int64(len(b))), unexpected(err))
}
