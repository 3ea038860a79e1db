package packet

import "encoding/binary"

// MaxOptionTrace is the longest IOAM Trace Option Data in octets that fits option 2: the option's 8-bit length leaves 228 octets for node
// data.
const MaxOptionTrace = IOAMTraceHeaderLen + 228

const (
	option1DataLen = 16                                // the address
	option2Fixed   = 2 + 16                            // reserved octet, IOAM-Opt-Type, the address
	option2DataLen = option2Fixed + IOAMTraceHeaderLen // at least
)

// FastCNPOption is the option that distinguishes a Fast CNP from a CNP (draft-xiao-fast-cnp 4). Option 1 (figure 3):
//
//	                                +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	                                |  Option Type  |Opt Data Len=16|
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  Destination IPv6 address of the RoCEv2 data packet (16)      ~
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//
// Option 2 (figure 4), for a data packet with an IOAM trace:
//
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  Option Type  |  Opt Data Len |   Reserved    | IOAM Opt-Type |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  IOAM Trace Option Data (8 and the node data list)            ~
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  Destination IPv6 address of the RoCEv2 data packet (16)      ~
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//
// Both may have the same type: Opt Data Len distinguishes them.
type FastCNPOption struct {
	Dst      Addr      // of the data packet
	Trace    IOAMTrace // of the data packet; Data is nil in option 1
	Reserved uint8     // option 2: senders put 0, receivers ignore it
}

// Len is the length in octets of the whole option.
func (o *FastCNPOption) Len() int {
	if o.Trace.Data == nil {
		return OptionHeaderLen + option1DataLen
	}
	return OptionHeaderLen + option2Fixed + len(o.Trace.Data)
}

// Put writes Len() octets. The trace is at most MaxOptionTrace octets long.
func (o *FastCNPOption) Put(b []byte, optionType uint8) {
	n := o.Len()
	b = b[:n]
	b[0], b[1] = optionType, uint8(n-OptionHeaderLen)
	if o.Trace.Data != nil {
		b[2], b[3] = o.Reserved, o.Trace.Type
		copy(b[4:], o.Trace.Data)
	}
	o.Dst.Put16(b[n-16:])
}

// DecodeFastCNPOption reads the data of the option; Trace.Data is a view of it. It returns false if the length is that of neither option,
// or option 2 carries anything but a trace.
func DecodeFastCNPOption(data []byte) (FastCNPOption, bool) {
	if len(data) == option1DataLen {
		return FastCNPOption{Dst: AddrFrom16(data)}, true
	}
	if len(data) < option2DataLen {
		return FastCNPOption{}, false
	}
	at := len(data) - 16
	trace := decodeIOAMTrace(data[:at])
	if trace.Data == nil {
		return FastCNPOption{}, false
	}
	return FastCNPOption{Dst: AddrFrom16(data[at:]), Trace: trace, Reserved: data[0]}, true
}

// FastCNPHeader is a Destination Options header with a Fast CNP option in it. Pad sets the layout of senders; receivers accept others, too.
type FastCNPHeader struct {
	NextHeader    uint8
	Type          uint8 // of the option
	Option        FastCNPOption
	Before, After []byte // the list's octets before and after the option: padding, and options that may be skipped
}

// Padding of RFC 8200 4.2 of two and four octets.
var (
	padN2 = []byte{OptionPadN, 0}
	padN4 = []byte{OptionPadN, 2, 0, 0}
)

// Pad sets Before and After: option 1 directly follows the header's two octets and a PadN fills up 24; option 2 follows a PadN, on a
// 4-octet boundary as RFC 9486 3 requires for the trace.
func (h *FastCNPHeader) Pad() {
	h.Before, h.After = nil, padN4
	if trace := h.Option.Trace.Data; trace != nil {
		h.Before = padN2
		if len(trace)%8 == 0 {
			h.After = nil
		}
	}
}

// Len is the length in octets of the whole header, a multiple of 8 if Pad, or a valid packet, has set Before and After.
func (h *FastCNPHeader) Len() int { return 2 + len(h.Before) + h.Option.Len() + len(h.After) }

// FastCNPOption1Len is the length in octets of a header with option 1 in the layout of Pad.
const FastCNPOption1Len = 2 + OptionHeaderLen + option1DataLen + 4

// PutFastCNPOption1 writes a header with option 1 in the layout of Pad, without a FastCNPHeader value.
func PutFastCNPOption1(b *[FastCNPOption1Len]byte, next, optionType uint8, dst *Addr) {
	const pad = OptionPadN<<24 | 2<<16
	binary.BigEndian.PutUint32(b[:], uint32(next)<<24|(FastCNPOption1Len/8-1)<<16|uint32(optionType)<<8|option1DataLen)
	dst.Put16(b[4:20])
	binary.BigEndian.PutUint32(b[20:], pad)
}

// Put writes Len() octets.
func (h *FastCNPHeader) Put(b []byte) {
	n := h.Len()
	b = b[:n]
	b[0], b[1] = h.NextHeader, uint8(n/8-1)
	at := 2 + copy(b[2:], h.Before)
	h.Option.Put(b[at:], h.Type)
	copy(b[at+h.Option.Len():], h.After)
}
