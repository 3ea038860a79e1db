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
