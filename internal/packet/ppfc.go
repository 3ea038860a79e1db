package packet

import "encoding/binary"

// PPFCFields are the fields of a PPFC notification (draft-xz-ppfc 3), after the BTH of a CNP with ExtensionBit. The draft doesn't define the
// widths and meanings of Flags and PT; cnpgate uses:
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  Congested Destination IP: 16 octets over IPv6, 4 over IPv4   ~
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|          Flags (14)       |PT |        Congestion Port        |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|           Reserved            |        Pause Duration         |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type PPFCFields struct {
	Dst      Addr   // destination of the data packets that met congestion
	Flags    uint16 // 14 bits without a meaning: senders put 0, receivers ignore them
	PT       PauseType
	Port     uint16 // the congested port, by its device's numbering
	Reserved uint16 // senders put 0, receivers ignore it
	Duration uint16 // microseconds
}

// PauseType is the PT field of a PPFC notification, 2 bits.
type PauseType uint8

const (
	PTPause  PauseType = 0 // stop for Duration
	PTResume PauseType = 1 // resume
)

// PPFCLen is the length in octets of the fields over the given IP version.
func PPFCLen(family uint8) int {
	if family == 6 {
		return 16 + 8
	}
	return 4 + 8
}

// Put writes PPFCLen(family) octets.
func (n *PPFCFields) Put(b []byte, family uint8) {
	b = b[:PPFCLen(family)]
	if family == 6 {
		n.Dst.Put16(b)
	} else {
		n.Dst.put4(b)
	}
	words := b[len(b)-8:]
	binary.BigEndian.PutUint32(words, uint32(n.Flags&0x3fff)<<18|uint32(n.PT&3)<<16|uint32(n.Port))
	binary.BigEndian.PutUint32(words[4:], uint32(n.Reserved)<<16|uint32(n.Duration))
}

// DecodePPFC reads PPFCLen(family) octets.
func DecodePPFC(b []byte, family uint8) PPFCFields {
	b = b[:PPFCLen(family)]
	var n PPFCFields
	if family == 6 {
		n.Dst = AddrFrom16(b)
	} else {
		n.Dst = AddrFrom4(b)
	}
	first, second := binary.BigEndian.Uint32(b[len(b)-8:]), binary.BigEndian.Uint32(b[len(b)-4:])
	n.Flags, n.PT, n.Port = uint16(first>>18), PauseType(first>>16&3), uint16(first)
	n.Reserved, n.Duration = uint16(second>>16), uint16(second)
	return n
}
