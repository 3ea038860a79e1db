package capturefile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"

	"github.com/gopacket/gopacket/layers"
)

// pcapng reads the frames of a pcapng stream (draft-ietf-opsawg-pcapng), of all its sections. It keeps nothing but the times' resolution of each interface,
// and skips what else there is, so its memory is bounded whatever the stream has.
type pcapng struct {
	from       *input
	order      binary.ByteOrder
	link       layers.LinkType // of the first interface, then of the latest frame
	linked     bool
	interfaces []description // of the section
	left       int64         // bytes of the block that were not read yet
	scratch    [20]byte
	frame      []byte
}

// description is what an Interface Description Block says.
type description struct {
	link   layers.LinkType
	snap   uint32 // 0: no limit
	units  uint64 // of time in a second
	offset int64  // s
}

// Block types, and options of an Interface Description Block.
const (
	sectionHeader        = 0x0a0d0d0a // the same in either byte order
	interfaceDescription = 1
	obsoletePacket       = 2
	simplePacket         = 3
	enhancedPacket       = 6

	optionComment    = 1 // of any block
	optionResolution = 9
	optionOffset     = 14
)

const (
	byteOrderMagic = 0x1a2b3c4d
	// maxInterfaces bounds the interfaces of a section.
	maxInterfaces = 4096
	// blockFrame is the size of a block's type and its two lengths.
	blockFrame = 12
	// maxComments bounds the comments of a frame, in bytes. Those beyond it are skipped.
	maxComments = 64 << 10
)

// newPcapng reads up to the first interface.
func newPcapng(from *input) (*pcapng, error) {
	r := &pcapng{from: from, order: binary.LittleEndian}
	for !r.linked {
		kind, err := r.block()
		if err == nil {
			err = r.describe(kind)
		}
		if err != nil {
			return nil, err
		}
	}
	return r, nil
}

// linkType is that of the latest frame, before the first that of the first interface.
func (r *pcapng) linkType() layers.LinkType { return r.link }

// block skips the rest of a block, and reads the type and length of the next one.
func (r *pcapng) block() (kind uint32, err error) {
	if err := r.skip(r.left); err != nil {
		return 0, err
	}
	b, err := r.from.Peek(blockHeader)
	if len(b) < blockHeader {
		if len(b) > 0 && errors.Is(err, io.EOF) {
			err = r.skip(blockHeader)
		}
		return 0, err
	}
	if isClassic(b) {
		return 0, errAnother
	}
	if kind = r.order.Uint32(b); kind == sectionHeader {
		if b, err = r.from.Peek(blockFrame); len(b) < blockFrame {
			return 0, unexpected(err)
		}
		switch uint32(byteOrderMagic) {
		case binary.LittleEndian.Uint32(b[8:]):
			r.order = binary.LittleEndian
		case binary.BigEndian.Uint32(b[8:]):
			r.order = binary.BigEndian
		default:
			return 0, errors.New("a section's byte-order magic is wrong")
		}
	}
	length := r.order.Uint32(b[4:])
	if length < blockFrame {
		return 0, fmt.Errorf("a block has a length of %d bytes, expected at least %d", length, blockFrame)
	}
	r.left = int64(length)
	_, err = r.take(blockHeader)
	return kind, err
}

// take reads some bytes of the block, at most len(scratch). They are valid until the next call.
func (r *pcapng) take(n int) ([]byte, error) {
	b := r.scratch[:n]
	return b, r.read(b)
}

func (r *pcapng) read(b []byte) error {
	if int64(len(b)) > r.left {
		return errors.New("a block is shorter than its fields")
	}
	n, err := io.ReadFull(r.from, b)
	r.left -= int64(n)
	return unexpected(err)
}

func (r *pcapng) skip(n int64) error {
	if n <= 0 {
		return nil
	}
	r.left -= n
	return unexpected(r.from.Discard(n))
}

// unexpected is the error for an end within a block.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// describe reads a block that is no packet.
func (r *pcapng) describe(kind uint32) error {
	switch kind {
	case sectionHeader:
		return r.begin()
	case interfaceDescription:
		return r.addInterface()
	case obsoletePacket, simplePacket, enhancedPacket:
		return errors.New("a packet comes before the description of its interface")
	}
	return nil
}

// begin begins a section.
func (r *pcapng) begin() error {
	b, err := r.take(8)
	if err != nil {
		return err
	}
	if major, minor := r.order.Uint16(b[4:]), r.order.Uint16(b[6:]); major != 1 {
		return fmt.Errorf("its version is %d.%d, expected 1.0", major, minor)
	}
	r.interfaces = r.interfaces[:0]
	return nil
}

func (r *pcapng) addInterface() error {
	if len(r.interfaces) == maxInterfaces {
		return fmt.Errorf("a section describes more than %d interfaces", maxInterfaces)
	}
	b, err := r.take(8)
	if err != nil {
		return err
	}
	d := description{link: layers.LinkType(r.order.Uint16(b)), snap: r.order.Uint32(b[4:]), units: 1e6}
	for err == nil && r.left >= blockFrame {
		var more bool
		if more, err = r.option(&d); !more {
			break
		}
	}
	if !r.linked {
		r.link, r.linked = d.link, true
	}
	r.interfaces = append(r.interfaces, d)
	return err
}

// option reads an option of an interface; false after the last.
func (r *pcapng) option(d *description) (more bool, err error) {
	b, err := r.take(4)
	if err != nil {
		return false, err
	}
	code, length := r.order.Uint16(b), int(r.order.Uint16(b[2:]))
	padded := int64(length+3) &^ 3
	if code == 0 || padded > r.left-4 { // behind the options is the block's length
		return false, nil
	}
	switch {
	case code == optionResolution && length == 1:
		if b, err = r.take(1); err == nil {
			d.units, err = unitsOf(b[0])
		}
		padded--
	case code == optionOffset && length == 8:
		if b, err = r.take(8); err == nil {
			d.offset = int64(r.order.Uint64(b))
		}
		padded = 0
	}
	if err == nil {
		err = r.skip(padded)
	}
	return true, err
}

// unitsOf is the number of units of time in a second, by the option if_tsresol.
func unitsOf(resolution uint8) (uint64, error) {
	const binaryBit, maxDecimal, maxBinary = 0x80, 19, 63
	exponent := resolution &^ binaryBit
	if resolution&binaryBit != 0 {
		if exponent <= maxBinary {
			return 1 << exponent, nil
		}
		return 0, fmt.Errorf("an interface's time has a resolution of 2^-%d s, expected at most 2^-%d s", exponent, maxBinary)
	}
	if exponent > maxDecimal {
		return 0, fmt.Errorf("an interface's time has a resolution of 10^-%d s, expected at most 10^-%d s", exponent, maxDecimal)
	}
	units := uint64(1)
	for range exponent {
		units *= 10
	}
	return units, nil
}

// next reads a frame.
func (r *pcapng) next(to *record) error {
	to.size = blockHeader
	for first := true; ; first = false {
		kind, err := r.block()
		if err != nil {
			return err
		}
		if first { // there may be other blocks before the frame's
			to.size += int(r.left)
		}
		captured := 0
		switch kind {
		case enhancedPacket, obsoletePacket:
			captured, err = r.packetHeader(kind, to)
		case simplePacket:
			captured, err = r.simpleHeader(to)
		default:
			if err = r.describe(kind); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		if captured > MaxFrame {
			return fmt.Errorf("it has %d bytes, expected at most %d", captured, MaxFrame)
		}
		if cap(r.frame) < captured {
			r.frame = make([]byte, captured, MaxFrame)
		}
		r.frame, to.comments = r.frame[:captured], nil
		to.octets = r.frame
		if err = r.read(r.frame); err == nil && kind != simplePacket {
			err = r.readComments(-captured&3, to)
		}
		if err == nil {
			err = r.skip(r.left) // a frame counts once its whole block has come
		}
		return err
	}
}

// readComments reads the comments among the options behind a frame and its padding. Options that don't fit the block end the list.
func (r *pcapng) readComments(padding int, to *record) error {
	const header, trailer = 4, 4 // bytes: an option's code and length, and the block's length behind the options
	if r.left < int64(padding)+header+trailer {
		return nil
	}
	err := r.skip(int64(padding))
	for total := 0; err == nil && r.left >= header+trailer; {
		var b []byte
		if b, err = r.take(header); err != nil {
			break
		}
		code, length := r.order.Uint16(b), int(r.order.Uint16(b[2:]))
		padded := int64(length+3) &^ 3
		if code == 0 || padded > r.left-trailer {
			break
		}
		if total += length; code == optionComment && total <= maxComments {
			text := make([]byte, length)
			err = r.read(text)
			to.comments, padded = append(to.comments, string(text)), padded-int64(length)
		}
		if err == nil {
			err = r.skip(padded)
		}
	}
	return err
}

// packetHeader reads the header of an enhanced packet block, or of the obsolete one, and returns the number of captured bytes.
func (r *pcapng) packetHeader(kind uint32, to *record) (captured int, err error) {
	b, err := r.take(20)
	if err != nil {
		return 0, err
	}
	on := r.order.Uint32(b)
	if kind == obsoletePacket {
		on = uint32(r.order.Uint16(b))
	}
	d, err := r.interfaceOf(on)
	if err != nil {
		return 0, err
	}
	to.length = r.order.Uint32(b[16:])
	to.at, err = d.time(uint64(r.order.Uint32(b[4:]))<<32 | uint64(r.order.Uint32(b[8:])))
	return int(r.order.Uint32(b[12:])), err
}

// simpleHeader reads the header of a simple packet block, which has no time.
func (r *pcapng) simpleHeader(to *record) (captured int, err error) {
	b, err := r.take(4)
	if err != nil {
		return 0, err
	}
	d, err := r.interfaceOf(0)
	if err != nil {
		return 0, err
	}
	length := r.order.Uint32(b)
	to.at, to.length = 0, length
	if d.snap != 0 {
		length = min(length, d.snap)
	}
	return int(length), nil
}

// interfaceOf is the interface of a frame.
func (r *pcapng) interfaceOf(number uint32) (*description, error) {
	if int64(number) >= int64(len(r.interfaces)) {
		return nil, fmt.Errorf("it is of interface %d, but the section describes %d", number, len(r.interfaces))
	}
	d := &r.interfaces[number]
	r.link = d.link
	return d, nil
}

// time is that of a frame, ns since 1970.
func (d *description) time(units uint64) (int64, error) {
	high, low := bits.Mul64(units%d.units, second)
	ns, _ := bits.Div64(high, low, d.units)
	return instant(int64(units/d.units)+d.offset, int64(ns))
}
