package packet

import "encoding/binary"

// CNPReservedLen is the length in octets of the part between BTH and ICRC of a CNP (IBTA Annex A17, draft-xiao-fast-cnp figure 2):
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                                                               |
//	+                                                               +
//	|                        Reserved (16 octets)                   |
//	+                                                               +
//	|                                                               |
//	+                                                               +
//	|                                                               |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//
// Senders set them to 0, receivers ignore them. A Fast CNP has them, too; a Long-haul CNP and a PPFC notification have their fields
// instead.
const CNPReservedLen = 16

// CNPLen is the length in octets of a CNP's UDP header and BTH.
const CNPLen = UDPLen + BTHLen

// MaskCNP writes the UDP header and the BTH of a CNP (IBTA Annex A17; draft-tian 6.2.3), the masked fields as ones (see PutMaskedICRC), other
// fields 0. udpLen is the length of the UDP datagram in octets; pKey is the partition key.
func MaskCNP(b *[CNPLen]byte, srcPort uint16, udpLen int, pKey uint16, destQP uint32) {
	binary.BigEndian.PutUint64(b[:], uint64(srcPort)<<48|RoCEv2Port<<32|uint64(uint16(udpLen))<<16|0xffff)
	binary.BigEndian.PutUint64(b[UDPLen:], uint64(CNP)<<56|uint64(pKey)<<32|0xff<<24|uint64(destQP&0xffffff))
	binary.BigEndian.PutUint32(b[UDPLen+8:], 0)
}

// UnmaskCNP writes the fields that MaskCNP has masked: no UDP checksum, and flags, which are octet 4 of the BTH.
func UnmaskCNP(b *[CNPLen]byte, flags uint8) {
	b[UDPLen-2], b[UDPLen-1], b[UDPLen+4] = 0, 0, flags
}
