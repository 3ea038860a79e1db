package capturefile

import (
	"cmp"
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
	stream
	linked     bool          // link is known
	interfaces []description // of the section
	section    int
}

// description is what an Interface Description Block says.
type description struct {
	link   layers.LinkType
	snap   uint32 // 0: no limit
	units  uint64 // of time in a second
	offset int64  // s
	name   string // "": it isn't said
	missed uint64 // frames that were dropped while it was captured, as the frames say
	lost   uint64 // and as anything says
}

// Block types, and options of an Interface Description Block.
const (
	sectionHeader        = 0x0a0d0d0a // the same in either byte order
	interfaceDescription = 1
	obsoletePacket       = 2
	simplePacket         = 3
	statistics           = 5
	enhancedPacket       = 6

	optionComment    = 1 // of any block
	optionName       = 2
	optionDropped    = 4 // of an enhanced packet: since the frame before of its interface
	optionNoRoom     = 5 // of statistics, since the capture began: by the interface
	optionNoMemory   = 7 // and by the operating system
	optionResolution = 9
	optionOffset     = 14
)

const (
	byteOrderMagic = 0x1a2b3c4d
	// maxInterfaces bounds the interfaces of a section.
	maxInterfaces = 4096
	// blockFrame is the size of a block's type and its two lengths.
	blockFrame = 12
	// maxBlock bounds a block that is read, in bytes: a frame of MaxFrame with options. Longer ones are skipped, up to maxSkipped: Wireshark's bound.
	maxBlock   = mostPeeked - searchStep
	maxSkipped = 16 << 20
	// maxName bounds the name of an interface, in bytes.
	maxName = 64
	// maxComments bounds the comments of a frame, in bytes. Those beyond it are skipped.
	maxComments = 64 << 10
)

var errFields = errors.New("a block is shorter than its fields")

// newPcapng reads up to the first interface.
func newPcapng(from *input) (*pcapng, error) {
	r := &pcapng{stream: stream{from: from, order: binary.LittleEndian}}
	for !r.linked {
		kind, body, err := r.block(&record{})
		if err == nil {
			err = r.describe(kind, body, &record{})
		}
		if err != nil {
			return nil, err
		}
	}
	return r, nil
}

// block reads a block, and adds its size to that of the record. The body, what is between its two lengths, is valid until the next one is read; of a block
// that is skipped it is nil.
func (r *pcapng) block(to *record) (kind uint32, body []byte, err error) {
	before := to.size
	to.size += blockHeader
	b, err := r.from.Peek(blockHeader)
	switch {
	case len(b) == 0:
		return 0, nil, err
	case len(b) < blockHeader:
		return 0, nil, unexpected(err)
	case isClassic(b):
		return 0, nil, errAnother
	}
	if kind = r.order.Uint32(b); kind == sectionHeader {
		if b, err = r.from.Peek(blockFrame); len(b) < blockFrame {
			return 0, nil, unexpected(err)
		}
		if r.order = sectionOrder(b); r.order == nil {
			r.order = binary.LittleEndian
			return 0, nil, errors.New("a section's byte-order magic is wrong")
		}
	}
	length := int64(r.order.Uint32(b[4:]))
	if length < blockFrame || length > maxSkipped {
		return 0, nil, fmt.Errorf("a block has a length of %d bytes, expected %d to %d", length, blockFrame, maxSkipped)
	}
	to.size = before + int(length)
	if length > maxBlock {
		return kind, nil, r.skip(kind, length)
	}
	if b, err = r.from.Peek(int(length)); len(b) < int(length) {
		return 0, nil, unexpected(err)
	}
	if err = r.same(b[length-4:], length); err != nil {
		return 0, nil, err
	}
	return kind, b[blockHeader : length-4], r.from.Discard(length)
}

// skip skips a long block, such as one of names, secrets or a custom format.
func (r *pcapng) skip(kind uint32, length int64) error {
	const custom, assigned = 0x40000bad, 0x1000 // a type that isn't to be copied, and what those of the others are below
	if kind == interfaceDescription || kind == obsoletePacket || kind == simplePacket || kind == enhancedPacket || kind >= assigned && kind != custom {
		return fmt.Errorf("a block of type %#x has %d bytes, expected at most %d", kind, length, maxBlock)
	}
	if err := r.from.Discard(length - 4); err != nil {
		return unexpected(err)
	}
	b, err := r.from.Peek(4)
	if len(b) < 4 {
		return unexpected(err)
	}
	return cmp.Or(r.same(b, length), r.from.Discard(4))
}

// same is the error if the length at the end of a block isn't that at its begin.
func (r *pcapng) same(b []byte, length int64) error {
	if trailer := int64(r.order.Uint32(b)); trailer != length {
		return fmt.Errorf("a block has a length of %d bytes at its begin, and of %d at its end", length, trailer)
	}
	return nil
}

// sectionOrder is the byte order of a section that begins with b; nil if that isn't a section.
func sectionOrder(b []byte) binary.ByteOrder {
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		if order.Uint32(b) == sectionHeader && order.Uint32(b[8:]) == byteOrderMagic {
			return order
		}
	}
	return nil
}

// plausible is the size of the block at so many bytes from here, 0 if none begins there.
func (r *pcapng) plausible(at int) int {
	b, _ := r.from.Peek(at + blockFrame)
	if b = b[min(at, len(b)):]; len(b) < blockFrame {
		return 0
	}
	switch kind := r.order.Uint32(b); {
	case kind == enhancedPacket && int64(r.order.Uint32(b[8:])) < int64(len(r.interfaces)):
	case kind == interfaceDescription && len(r.interfaces) < maxInterfaces:
	case kind > interfaceDescription && kind < enhancedPacket: // packets, names and statistics
	default:
		return 0
	}
	length := r.order.Uint32(b[4:])
	if length < blockFrame || length > maxBlock {
		return 0
	}
	if b, _ = r.from.Peek(at + int(length)); len(b) < at+int(length) || r.order.Uint32(b[len(b)-4:]) != length {
		return 0
	}
	return int(length)
}

// unexpected is the error for an end within a block.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// describe reads a block that is no packet.
func (r *pcapng) describe(kind uint32, body []byte, to *record) error {
	switch kind {
	case statistics:
		r.count(body, to)
	case sectionHeader:
		return r.begin(body)
	case interfaceDescription:
		return r.addInterface(body)
	case obsoletePacket, simplePacket, enhancedPacket:
		return errors.New("a packet comes before the description of its interface")
	}
	return nil
}

// begin begins a section.
func (r *pcapng) begin(b []byte) error {
	if len(b) < 8 {
		return errFields
	}
	if major, minor := r.order.Uint16(b[4:]), r.order.Uint16(b[6:]); major != 1 {
		return fmt.Errorf("its version is %d.%d, expected 1.0", major, minor)
	}
	r.interfaces = r.interfaces[:0]
	r.section++
	return nil
}

func (r *pcapng) addInterface(b []byte) (err error) {
	if len(r.interfaces) == maxInterfaces {
		return fmt.Errorf("a section describes more than %d interfaces", maxInterfaces)
	}
	if len(b) < 8 {
		return errFields
	}
	d := description{link: layers.LinkType(r.order.Uint16(b)), snap: r.order.Uint32(b[4:]), units: 1e6}
	for code, value, rest := r.option(b[8:]); code != 0 && err == nil; code, value, rest = r.option(rest) {
		switch {
		case code == optionName:
			d.name = string(value[:min(len(value), maxName)])
		case code == optionResolution && len(value) == 1:
			d.units, err = unitsOf(value[0])
		case code == optionOffset && len(value) == 8:
			d.offset = int64(r.order.Uint64(value))
		}
	}
	if !r.linked {
		r.link, r.linked = d.link, true
	}
	r.interfaces = append(r.interfaces, d)
	return err
}

// option is the first of a block's options, and those behind it; its code is 0 after the last. One that doesn't fit the block ends the list.
func (r *pcapng) option(b []byte) (code uint16, value, rest []byte) {
	if len(b) < 4 {
		return 0, nil, nil
	}
	code, length := r.order.Uint16(b), int(r.order.Uint16(b[2:]))
	b = b[4:]
	padded := (length + 3) &^ 3
	if padded > len(b) {
		return 0, nil, nil
	}
	return code, b[:length], b[padded:]
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
	for {
		kind, b, err := r.block(to)
		if err != nil {
			return err
		}
		captured := uint32(0)
		switch kind {
		case enhancedPacket, obsoletePacket:
			captured, b, err = r.packetHeader(kind, b, to)
		case simplePacket:
			captured, b, err = r.simpleHeader(b, to)
		default:
			if err = r.describe(kind, b, to); err != nil {
				return err
			}
			continue
		}
		switch {
		case err != nil:
			return err
		case captured > MaxFrame:
			return fmt.Errorf("it has %d bytes, expected at most %d", captured, MaxFrame)
		case int(captured) > len(b):
			return errFields
		}
		to.octets = b[:captured]
		if kind != simplePacket {
			r.options(kind, b[min(int(captured+3)&^3, len(b)):], to)
		}
		return nil
	}
}

// options reads those of a frame.
func (r *pcapng) options(kind uint32, b []byte, to *record) {
	total := 0
	for code, value, rest := r.option(b); code != 0; code, value, rest = r.option(rest) {
		total += len(value)
		switch {
		case code == optionComment && total <= maxComments:
			to.comments = append(to.comments, string(value))
		case code == optionDropped && kind == enhancedPacket && len(value) == 8:
			d := &r.interfaces[to.on]
			d.missed += r.order.Uint64(value)
			d.drops(d.missed, to)
		}
	}
}

// count reads an Interface Statistics Block.
func (r *pcapng) count(b []byte, to *record) {
	const header = 12
	if len(b) < header || int64(r.order.Uint32(b)) >= int64(len(r.interfaces)) {
		return
	}
	lost := uint64(0)
	for code, value, rest := r.option(b[header:]); code != 0; code, value, rest = r.option(rest) {
		if (code == optionNoRoom || code == optionNoMemory) && len(value) == 8 {
			lost += r.order.Uint64(value)
		}
	}
	r.interfaces[r.order.Uint32(b)].drops(lost, to)
}

// drops notes how many frames of an interface were dropped so far.
func (d *description) drops(lost uint64, to *record) {
	if lost > d.lost {
		to.lost += lost - d.lost
		d.lost = lost
	}
}

// packetHeader reads the header of an enhanced packet block, or of the obsolete one, and returns the number of captured bytes and what is behind it.
func (r *pcapng) packetHeader(kind uint32, b []byte, to *record) (captured uint32, rest []byte, err error) {
	const header = 20
	if len(b) < header {
		return 0, nil, errFields
	}
	on := r.order.Uint32(b)
	if kind == obsoletePacket {
		on = uint32(r.order.Uint16(b))
	}
	to.on, to.section = on, r.section
	d, err := r.interfaceOf(on)
	if err != nil {
		return 0, nil, err
	}
	to.length = r.order.Uint32(b[16:])
	to.at, err = d.time(uint64(r.order.Uint32(b[4:]))<<32 | uint64(r.order.Uint32(b[8:])))
	return r.order.Uint32(b[12:]), b[header:], err
}

// simpleHeader is packetHeader for a simple packet block, which has no time.
func (r *pcapng) simpleHeader(b []byte, to *record) (captured uint32, rest []byte, err error) {
	if len(b) < 4 {
		return 0, nil, errFields
	}
	to.section = r.section
	d, err := r.interfaceOf(0)
	if err != nil {
		return 0, nil, err
	}
	captured = r.order.Uint32(b)
	to.at, to.length = 0, captured
	if d.snap != 0 {
		captured = min(captured, d.snap)
	}
	return captured, b[4:], nil
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
