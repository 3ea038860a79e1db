package capturefile

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/gopacket/gopacket/layers"
)

// classic reads the frames of a pcap file (draft-ietf-opsawg-pcap). Unlike pcapgo's reader it takes records with more bytes than the frame had on the wire,
// which some tools write.
type classic struct {
	stream
	units int64  // ns, of the fraction of a second
	snap  uint32 // bytes of a frame that may be recorded, as the file says
	near  int64  // time of the latest record, ns since 1970; 0: there is none
	extra int    // bytes behind a record's header (Alexey Kuznetzov's format)
	// misnamed: the times are in nanoseconds, although the header says microseconds, as the first record shows.
	misnamed bool
}

const (
	fileHeader = 24

	magicMicro    = 0xa1b2c3d4
	magicNano     = 0xa1b23c4d
	magicModified = 0xa1b2cd34
)

// newClassic reads the file's header, which begins with a magic number.
func newClassic(from *input) (*classic, error) {
	r := &classic{stream: stream{from: from}, units: 1000}
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
	if r.snap = r.order.Uint32(b[16:]); r.snap == 0 || r.snap > MaxFrame {
		r.snap = MaxFrame
	}
	r.link = layers.LinkType(r.order.Uint32(b[20:]) & 0xffff) // above: whether frames have a frame check sequence
	if b, _ = from.Peek(fileHeader + recordHeader); len(b) > fileHeader+4+4 && r.units > 1 {
		if fraction := int64(r.order.Uint32(b[fileHeader+4:])); fraction*r.units > latestFraction && fraction < second {
			r.units, r.misnamed = 1, true
		}
	}
	return r, from.Discard(fileHeader)
}

// latestFraction of a second is the largest that a record may have: some programs carry nothing over.
const latestFraction = 2 * second

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

// next reads a frame.
func (r *classic) next(to *record) error {
	header := recordHeader + r.extra
	to.size = header
	b, err := r.from.Peek(header)
	switch {
	case begins(b):
		return errAnother
	case len(b) == 0:
		return err
	case len(b) < header:
		return unexpected(err)
	}
	length, err := r.head(b, to)
	if err != nil {
		return err
	}
	to.size += int(length)
	if b, err = r.from.Peek(to.size); len(b) < to.size {
		return unexpected(err)
	}
	if length > min(to.length, r.snap) || to.length > MaxFrame || far(to.at, r.near) { // possible, but it is rather damage if no record follows
		if next, _ := r.from.Peek(to.size + recordHeader); len(next) == to.size+recordHeader && !begins(next[to.size:]) {
			var behind record
			if _, err = r.head(next[to.size:], &behind); err != nil || far(behind.at, to.at) && (r.near == 0 || far(behind.at, r.near)) || behind.length > MaxFrame {
				return errors.New("its record is none, by what follows it")
			}
			b = next[:to.size]
		}
	}
	r.near = to.at
	to.octets = b[header:]
	return r.from.Discard(int64(len(b)))
}

// head reads the header of a record, and returns the number of bytes behind it.
func (r *classic) head(b []byte, to *record) (length uint32, err error) {
	seconds, fraction, length := int64(r.order.Uint32(b)), int64(r.order.Uint32(b[4:]))*r.units, r.order.Uint32(b[8:])
	switch {
	case *(*[recordHeader]byte)(b) == [recordHeader]byte{}:
		return 0, errors.New("the header of its record has only zeros, as after a crash or on a full disk")
	case length > MaxFrame:
		return 0, fmt.Errorf("its record has %d bytes, expected at most %d", length, MaxFrame)
	case fraction >= second && seconds == 0 || fraction > latestFraction:
		return 0, errors.New("the fraction of its time is more than a second")
	}
	to.length = r.order.Uint32(b[12:])
	to.at, err = instant(seconds, fraction)
	return length, err
}

// far reports whether two times, ns since 1970, are more than a day apart; 0: there is none.
func far(at, near int64) bool {
	const day = 86400e9 // ns
	return near != 0 && max(at-near, near-at) > day
}

// plausible is the size of the record at so many bytes from here, 0 if none begins there.
func (r *classic) plausible(at int) int {
	header := recordHeader + r.extra
	b, _ := r.from.Peek(at + header)
	if b = b[min(at, len(b)):]; len(b) < header || r.order.Uint32(b[8:]) > r.snap {
		return 0
	}
	var to record
	length, err := r.head(b, &to)
	if err != nil || length == 0 || length > to.length || to.length > MaxFrame || far(to.at, r.near) {
		return 0
	}
	return header + int(length)
}
