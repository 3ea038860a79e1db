package packet

import "encoding/binary"

const (
	// BTHLen is the length of the Base Transport Header in octets.
	BTHLen = 12
	// DefaultPKey is the partition key of RoCEv2 packets: the default partition, full member (IBTA Annex A17).
	DefaultPKey = 0xffff
)

// Flags in octet 4 of the BTH. The ICRC doesn't cover this octet.
const (
	FECN = 0x80
	BECN = 0x40
	// ExtensionBit means that an extension follows the BTH of a CNP. It is the Extension Present (E) bit of draft-tian 6.2.1
	// and the P bit of draft-xz 3: the same bit, so a receiver must know which of the two its peer sends.
	ExtensionBit = 0x20
)

const (
	// MaxQP is the highest number of a QP, of 24 bits. It is the multicast QP, which no host has.
	MaxQP = 1<<24 - 1
	// PSNMask has the bits of a PSN: PSNs are modulo 2^24.
	PSNMask = 1<<24 - 1
	// PSNHalf is half the number of PSNs. One that is as far ahead of another, or farther, is behind it (IBTA 9.7.2).
	PSNHalf = 1 << 23
)

// PSNAtMost reports whether PSN a is b or comes before it.
func PSNAtMost(a, b uint32) bool { return (b-a)&PSNMask < PSNHalf }

// ConnectionQP reports whether a QP can be one end of a connection.
func ConnectionQP(qp uint32) bool { return qp > GSIQP && qp < MaxQP }

// BTH is the Base Transport Header (IBTA 9.2; octet 4 as in Annex A17 and draft-tian 6.2.2):
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|    OpCode     |S|M|Pad|  TVer |         Partition Key         |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|F|B|E| Reserved|                   DestQP                      |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|A|  Reserved   |                     PSN                       |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type BTH struct {
	Opcode   Opcode
	SE       bool  // solicited event
	MigReq   bool  // migration state
	PadCount uint8 // octets that pad the payload to a multiple of four, 0 to 3
	TVer     uint8 // transport header version, 4 bits, 0
	PKey     uint16
	Flags    uint8  // octet 4: FECN, BECN, ExtensionBit, five reserved bits
	DestQP   uint32 // 24 bits
	AckReq   bool
	Reserved uint8  // 7 bits before the PSN: senders put 0, receivers ignore them
	PSN      uint32 // 24 bits
}

// Put writes 12 octets.
func (h *BTH) Put(b []byte) {
	_ = b[BTHLen-1]
	b[0] = byte(h.Opcode)
	b[1] = bit(h.SE, 0x80) | bit(h.MigReq, 0x40) | h.PadCount&3<<4 | h.TVer&0xf
	binary.BigEndian.PutUint16(b[2:], h.PKey)
	binary.BigEndian.PutUint32(b[4:], uint32(h.Flags)<<24|h.DestQP&0xffffff)
	binary.BigEndian.PutUint32(b[8:], uint32(bit(h.AckReq, 0x80)|h.Reserved&0x7f)<<24|h.PSN&0xffffff)
}

// DecodeBTH reads 12 octets.
func DecodeBTH(b []byte) BTH {
	_ = b[BTHLen-1]
	qp, psn := binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:])
	return BTH{
		Opcode:   Opcode(b[0]),
		SE:       b[1]&0x80 != 0,
		MigReq:   b[1]&0x40 != 0,
		PadCount: b[1] >> 4 & 3,
		TVer:     b[1] & 0xf,
		PKey:     binary.BigEndian.Uint16(b[2:]),
		Flags:    uint8(qp >> 24),
		DestQP:   qp & 0xffffff,
		AckReq:   psn>>31 != 0,
		Reserved: uint8(psn >> 24 & 0x7f),
		PSN:      psn & 0xffffff,
	}
}

// ValidPKey reports whether a partition key is valid: its low 15 bits, the partition, are not 0 (IBTA 10.9.1). The highest bit
// is the membership.
func ValidPKey(key uint16) bool { return key&0x7fff != 0 }

func bit(on bool, value byte) byte {
	if on {
		return value
	}
	return 0
}
