package capturefile

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// classic reads the frames of a pcap file (draft-ietf-opsawg-pcap). Unlike pcapgo's reader it takes records with more bytes than the frame had on the wire,
// which some tools write.
type classic struct {
	from   *bufio.Reader
	order  binary.ByteOrder
	units  time.Duration // of the fraction of a second
	link   layers.LinkType
	extra  int // bytes behind a record's header (Alexey Kuznetzov's format)
	header [fileHeader]byte
	frame  []byte
}

const (
	fileHeader = 24

	magicMicro    = 0xa1b2c3d4
	magicNano     = 0xa1b23c4d
	magicModified = 0xa1b2cd34
)

// newClassic reads the file's header.
func newClassic(from *bufio.Reader) (*classic, error) {
	r := &classic{from: from, units: time.Microsecond}
	b := r.header[:]
	if _, err := io.ReadFull(from, b); err != nil {
		return nil, err
	}
	if r.order = orderOf(b); r.order == nil {
		return nil, fmt.Errorf("it begins with %08x", b[:4])
	}
	switch r.order.Uint32(b) {
	case magicNano:
		r.units = time.Nanosecond
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

// LinkType is that of all frames.
func (r *classic) LinkType() layers.LinkType { return r.link }

// ZeroCopyReadPacketData reads the next frame, which is valid until the one after it is read.
func (r *classic) ZeroCopyReadPacketData() (_ []byte, info gopacket.CaptureInfo, err error) {
	b := r.header[:recordHeader+r.extra]
	if n, err := io.ReadFull(r.from, b); err != nil {
		if n > 0 {
			err = io.ErrUnexpectedEOF
		}
		return nil, info, err
	}
	fraction := time.Duration(r.order.Uint32(b[4:])) * r.units
	length := r.order.Uint32(b[8:])
	switch {
	case length > MaxFrame:
		return nil, info, fmt.Errorf("its record has %d bytes, expected at most %d", length, MaxFrame)
	case fraction >= time.Second && r.order.Uint32(b) == 0 || fraction > 2*time.Second:
		return nil, info, errors.New("the fraction of its time is more than a second")
	}
	info.Timestamp = time.Unix(int64(r.order.Uint32(b)), int64(fraction)).UTC()
	info.CaptureLength, info.Length = int(length), int(r.order.Uint32(b[12:]))
	if cap(r.frame) < info.CaptureLength {
		r.frame = make([]byte, info.CaptureLength, MaxFrame)
	}
	r.frame = r.frame[:info.CaptureLength]
	if _, err := io.ReadFull(r.from, r.frame); err != nil {
		return nil, info, unexpected(err)
	}
	return r.frame, info, nil
}
