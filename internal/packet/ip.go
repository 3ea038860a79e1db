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

// MarkCE sets Congestion Experienced in the IP header at offset ip, whose codepoint is ecn, and updates the IPv4 header checksum. It returns
// false and changes nothing if ecn is Not-ECT or CE. The ICRC doesn't cover the field, so it stays valid. The header is the outermost one: in
// an IP tunnel the mark gets into the packet inside where the tunnel ends (RFC 6040 4.2).
//
// The checksum is updated by equation 3 of RFC 1624, HC' = ~(~HC + ~m + m'), which, unlike equation 4, never gives 0xFFFF for a header that
// isn't all zeros: a right checksum becomes the same as in a full computation, a wrong one stays wrong. m and m' differ only in the
// codepoint, so ~m + m' is the increase by CE.
func MarkCE(b []byte, ip uint16, ecn uint8) bool {
	if ecn == NotECT || ecn == CE {
		return false
	}
	h := (*[IPv4Len]byte)(b[ip:])
	if h[0]>>4 == 4 {
		sum := uint32(^binary.BigEndian.Uint16(h[10:])) + uint32(CE-ecn)
		binary.BigEndian.PutUint16(h[10:], ^uint16(sum+sum>>16))
		h[1] |= CE
	} else {
		h[1] |= CE << 4
	}
	return true
}

// ClearCE sets ECT(0), which RDMA NICs send, in the IP header at offset ip, whose codepoint is ecn, and updates the IPv4 header checksum. It
// returns false and changes nothing if ecn isn't CE. The checksum is updated as in MarkCE: the word decreases by one, which in one's
// complement means adding the complement of one.
func ClearCE(b []byte, ip uint16, ecn uint8) bool {
	if ecn != CE {
		return false
	}
	h := (*[IPv4Len]byte)(b[ip:])
	if h[0]>>4 == 4 {
		sum := uint32(^binary.BigEndian.Uint16(h[10:])) + uint32(^uint16(CE-ECT0))
		binary.BigEndian.PutUint16(h[10:], ^uint16(sum+sum>>16))
		h[1] ^= CE ^ ECT0
	} else {
		h[1] ^= (CE ^ ECT0) << 4
	}
	return true
}

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
