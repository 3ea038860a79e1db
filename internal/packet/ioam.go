package packet

import "encoding/binary"

// IOAM in IPv6 (RFC 9486 3). The two option types differ in whether the data may change on the path.
const (
	OptionIOAM        = 0x11
	OptionIOAMChanges = 0x31
)

// IOAM-Option-Types with a trace (RFC 9197 4.1).
const (
	IOAMPreallocatedTrace = 0
	IOAMIncrementalTrace  = 1
)

// IOAMTraceHeaderLen is the length in octets of the fixed part of the IOAM Trace Option Data.
const IOAMTraceHeaderLen = 8

// IOAMTrace is an IOAM trace as a Hop-by-Hop option carries it (RFC 9486 3); a Fast CNP's option 2 carries it, too. It starts
// on a 4-octet boundary:
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  Option Type  |  Opt Data Len |   Reserved    | IOAM Opt-Type |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  IOAM Trace Option Data                                       ~
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type IOAMTrace struct {
	Type uint8  // IOAM-Opt-Type: IOAMPreallocatedTrace or IOAMIncrementalTrace
	Data []byte // IOAM Trace Option Data: IOAMTraceHeader and the node data list; whole words. nil: no trace
}

// IOAMTraceHeader is the fixed part of the IOAM Trace Option Data (RFC 9197 4.4.1):
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|        Namespace-ID           |NodeLen  | Flags | RemainingLen|
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|               IOAM Trace-Type                 |  Reserved     |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  node data list (words)                                       ~
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type IOAMTraceHeader struct {
	NamespaceID  uint16
	NodeLen      uint8  // 5 bits: words that each node adds, without an opaque state snapshot
	Flags        uint8  // 4 bits: overflow 8, loopback 4, active 2
	RemainingLen uint8  // 7 bits: free words
	TraceType    uint32 // 24 bits: which fields each node adds
	Reserved     uint8
}

// Put writes 8 octets.
func (h *IOAMTraceHeader) Put(b []byte) {
	_ = b[IOAMTraceHeaderLen-1]
	binary.BigEndian.PutUint16(b, h.NamespaceID)
	binary.BigEndian.PutUint16(b[2:], uint16(h.NodeLen&0x1f)<<11|uint16(h.Flags&0xf)<<7|uint16(h.RemainingLen&0x7f))
	binary.BigEndian.PutUint32(b[4:], h.TraceType<<8|uint32(h.Reserved))
}

// DecodeIOAMTraceHeader reads 8 octets.
func DecodeIOAMTraceHeader(b []byte) IOAMTraceHeader {
	_ = b[IOAMTraceHeaderLen-1]
	lengths, trace := binary.BigEndian.Uint16(b[2:]), binary.BigEndian.Uint32(b[4:])
	return IOAMTraceHeader{
		NamespaceID:  binary.BigEndian.Uint16(b),
		NodeLen:      uint8(lengths >> 11),
		Flags:        uint8(lengths >> 7 & 0xf),
		RemainingLen: uint8(lengths & 0x7f),
		TraceType:    trace >> 8,
		Reserved:     uint8(trace),
	}
}

// FindIOAMTrace returns the first valid IOAM trace among the Hop-by-Hop options of a parsed IPv6 packet; Data is nil without one. A trace
// must consist of whole words and have its fixed part.
func FindIOAMTrace(b []byte, p *Parsed) IOAMTrace {
	if p.HopOpts == 0 {
		return IOAMTrace{}
	}
	header := OptionsHeader(b, int(p.HopOpts), int(p.IPEnd))
	if header == nil {
		return IOAMTrace{}
	}
	for list := header[2:]; ; { // each iteration uses at least one of at most 2,046 octets
		o, n := NextOption(list)
		if n == 0 {
			return IOAMTrace{}
		}
		if o.Type == OptionIOAM || o.Type == OptionIOAMChanges {
			if trace := decodeIOAMTrace(o.Data); trace.Data != nil {
				return trace
			}
		}
		list = list[n:]
	}
}

// decodeIOAMTrace reads the data of an IOAM option: reserved octet, IOAM-Opt-Type, and the fields of that type.
func decodeIOAMTrace(data []byte) IOAMTrace {
	if len(data) < 2+IOAMTraceHeaderLen || len(data)%4 != 2 || data[1] > IOAMIncrementalTrace {
		return IOAMTrace{}
	}
	return IOAMTrace{data[1], data[2:]}
}
