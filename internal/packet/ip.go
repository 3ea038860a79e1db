package packet

import "encoding/binary"

// Protocol numbers (IANA "Assigned Internet Protocol Numbers"), as in IPv4's Protocol and IPv6's Next Header.
const (
	ProtoHopByHop = 0
	ProtoICMP     = 1
	ProtoIPv4     = 4 // IPv4 in IP (RFC 2003, RFC 2473)
	ProtoTCP      = 6
	ProtoUDP      = 17
	ProtoIPv6     = 41 // IPv6 in IP (RFC 4213, RFC 2473)
	ProtoRouting  = 43
	ProtoFragment = 44
	ProtoGRE      = 47
	ProtoAH       = 51
	ProtoICMPv6   = 58
	ProtoNoNext   = 59 // IPv6: no next header (RFC 8200 4.7)
	ProtoDestOpts = 60
	ProtoEthernet = 143 // an Ethernet frame in IPv6 (RFC 8986 10.1)
)

// ECN codepoints (RFC 3168 5), the low two bits of IPv4's TOS and IPv6's Traffic Class.
const (
	NotECT = 0
	ECT1   = 1
	ECT0   = 2
	CE     = 3
)

// ecnMask has the bits of the codepoint.
const ecnMask = 3

// onesSum adds the 16-bit words of b, an odd last octet padded with zero, to sum (RFC 1071). It adds words of 32 bits, which are congruent
// to their halves' sum. The result is not folded; sum has space for at least 2^32 words, more than any packet has.
func onesSum(sum uint64, b []byte) uint64 {
	for len(b) >= 8 {
		v := binary.BigEndian.Uint64(b)
		sum += v>>32 + v&0xffffffff
		b = b[8:]
	}
	for len(b) >= 2 {
		sum += uint64(b[0])<<8 | uint64(b[1])
		b = b[2:]
	}
	if len(b) == 1 {
		sum += uint64(b[0]) << 8
	}
	return sum
}

// fold reduces a sum of words to 16 bits in one's complement arithmetic and complements it. The steps reduce 64 bits to 33, 18, 17 and 16.
func fold(sum uint64) uint16 {
	sum = sum&0xffffffff + sum>>32
	sum = sum&0xffff + sum>>16
	sum = sum&0xffff + sum>>16
	sum = sum&0xffff + sum>>16
	return ^uint16(sum)
}

// IPv4Len is the length of an IPv4 header without options in octets.
const IPv4Len = 20

const (
	ipv4DF       = 0x4000
	ipv4MFOffset = 0x3fff // More Fragments and the fragment offset: 0 for a whole datagram
)

// PutIPv4 writes an IPv4 header of 20 octets (RFC 791 3.1):
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|Version|  IHL  |   DSCP    |ECN|          Total Length         |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|         Identification        |0|D|M|     Fragment Offset     |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  Time to Live |    Protocol   |        Header Checksum        |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                         Source Address                        |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                      Destination Address                      |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                    Options (IHL > 5)                          |
//
// class is DSCP and ECN, and totalLen includes the header. There are no options; Don't Fragment is set, Identification is 0 (an atomic datagram, RFC
// 6864 4.1), and the checksum is right.
func PutIPv4(b []byte, totalLen uint16, class, ttl, proto uint8, src, dst uint32) {
	b = b[:IPv4Len]
	first := 0x45<<56 | uint64(class)<<48 | uint64(totalLen)<<32 | ipv4DF
	third := uint64(ttl)<<24 | uint64(proto)<<16
	sum := first>>32 + first&0xffffffff + third + uint64(src) + uint64(dst) // words of 32 bits are congruent to their halves' sum
	binary.BigEndian.PutUint64(b, first)
	binary.BigEndian.PutUint64(b[8:], (third|uint64(fold(sum)))<<32|uint64(src))
	binary.BigEndian.PutUint32(b[16:], dst)
}

// MaskIPv4 is PutIPv4 with the masked fields as ones, see PutMaskedICRC. UnmaskIPv4 then writes them.
func MaskIPv4(b *[IPv4Len]byte, totalLen uint16, proto uint8, src, dst uint32) {
	binary.BigEndian.PutUint64(b[:], 0x45ff<<48|uint64(totalLen)<<32|ipv4DF)
	binary.BigEndian.PutUint64(b[8:], 0xff00ffff<<32|uint64(proto)<<48|uint64(src))
	binary.BigEndian.PutUint32(b[16:], dst)
}

// UnmaskIPv4 writes the fields that MaskIPv4 has masked.
func UnmaskIPv4(b *[IPv4Len]byte, class, ttl uint8) {
	first, second := binary.BigEndian.Uint64(b[:]), binary.BigEndian.Uint64(b[8:])
	sum := uint64(0x4500|uint32(class))<<16 + first>>32&0xffff + first&0xffffffff // words of 32 bits are congruent to their halves' sum
	sum += uint64(ttl)<<24 + second>>48&0xff<<16 + second&0xffffffff + uint64(binary.BigEndian.Uint32(b[16:]))
	b[1], b[8] = class, ttl
	sum = sum&0xffff + sum>>16 // of 5 words: it has 35 bits, then 20, 17 and 16
	sum = sum&0xffff + sum>>16
	binary.BigEndian.PutUint16(b[10:], ^uint16(sum+sum>>16))
}

// IPv4ChecksumOK reports whether the header checksum of a parsed IPv4 packet is right (RFC 791 3.1). b is the frame that was parsed.
func IPv4ChecksumOK(b []byte, p *Parsed) bool {
	end := int(p.L3) + int(b[p.L3]&0xf)*4
	return end <= len(b) && fold(onesSum(0, b[p.L3:end])) == 0
}

// IPv6Len is the length of the IPv6 header in octets.
const IPv6Len = 40

// ipv6OffsetMF are the offset and the More Fragments bit in octets 2 and 3 of the Fragment header (RFC 8200 4.5); both are 0
// in an atomic fragment.
const ipv6OffsetMF = 0xfff9

// PutIPv6 writes an IPv6 header of 40 octets (RFC 8200 3):
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|Version|   DSCP    |ECN|             Flow Label                |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|         Payload Length        |  Next Header  |   Hop Limit   |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                                                               |
//	+                    Source Address (16 octets)                 +
//	|                                                               |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                                                               |
//	+                 Destination Address (16 octets)               +
//	|                                                               |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//
// class is DSCP and ECN, payloadLen counts the octets after this header, and the flow label is 0.
func PutIPv6(b []byte, payloadLen uint16, class, next, hopLimit uint8, src, dst *Addr) {
	b = b[:IPv6Len]
	binary.BigEndian.PutUint64(b, 6<<60|uint64(class)<<52|uint64(payloadLen)<<16|uint64(next)<<8|uint64(hopLimit))
	src.Put16(b[8:24])
	dst.Put16(b[24:40])
}

// MaskIPv6 is PutIPv6 with the masked fields as ones, see PutMaskedICRC.
func MaskIPv6(b *[IPv6Len]byte, payloadLen uint16, next uint8, src, dst *Addr) {
	binary.BigEndian.PutUint64(b[:], 0x6fffffff<<32|uint64(payloadLen)<<16|uint64(next)<<8|0xff)
	src.Put16(b[8:24])
	dst.Put16(b[24:40])
}

// UnmaskIPv6 writes the fields that MaskIPv6 has masked; the flow label is 0.
func UnmaskIPv6(b *[IPv6Len]byte, class, hopLimit uint8) {
	binary.BigEndian.PutUint32(b[:], 6<<28|uint32(class)<<20)
	b[7] = hopLimit
}
