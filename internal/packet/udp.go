package packet

import "encoding/binary"

const (
	// UDPLen is the length of the UDP header in octets.
	UDPLen = 8
	// RoCEv2Port is the UDP destination port of RoCEv2 (IBTA Annex A17, IANA "roce").
	RoCEv2Port = 4791
)

// UDPHeader is a UDP header (RFC 768):
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|          Source Port          |       Destination Port        |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|            Length             |           Checksum            |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type UDPHeader struct {
	SrcPort, DstPort uint16
	Length           uint16 // octets, header included
	Checksum         uint16 // 0: none, as RoCEv2 has it (IBTA Annex A17; over IPv6 by RFC 6935)
}

// Put writes 8 octets.
func (h *UDPHeader) Put(b []byte) {
	_ = b[UDPLen-1]
	binary.BigEndian.PutUint64(b, uint64(h.SrcPort)<<48|uint64(h.DstPort)<<32|uint64(h.Length)<<16|uint64(h.Checksum))
}

// DecodeUDP reads 8 octets.
func DecodeUDP(b []byte) UDPHeader {
	_ = b[UDPLen-1]
	return UDPHeader{
		SrcPort: binary.BigEndian.Uint16(b), DstPort: binary.BigEndian.Uint16(b[2:]),
		Length: binary.BigEndian.Uint16(b[4:]), Checksum: binary.BigEndian.Uint16(b[6:]),
	}
}
