package packet

import "encoding/binary"

// Protocol numbers (IANA "Assigned Internet Protocol Numbers"), as in IPv4's Protocol and IPv6's Next Header.
const (
	ProtoHopByHop = 0
	ProtoICMP     = 1
	ProtoTCP      = 6
	ProtoUDP      = 17
	ProtoRouting  = 43
	ProtoFragment = 44
	ProtoAH       = 51
	ProtoICMPv6   = 58
	ProtoDestOpts = 60
)

// ECN codepoints (RFC 3168 5), the low two bits of IPv4's TOS and IPv6's Traffic Class.
const (
	NotECT = 0
	ECT1   = 1
	ECT0   = 2
	CE     = 3
)

// MarkCE sets Congestion Experienced in the IP header of a parsed ECN-capable packet, keeps its IPv4 header checksum in step
// and notes CE in p. It returns false and changes nothing when the packet is Not-ECT, is marked already or isn't IP.
// The ICRC leaves the field out, so it stays as it is.
//
// The checksum is updated by equation 3 of RFC 1624, HC' = ~(~HC + ~m + m'), which, unlike equation 4, never makes 0xFFFF of
// a header that isn't all zeros: a right checksum comes out as a full computation would have it, a wrong one stays wrong. Of m
// and m' the codepoint is all that differs, so ~m + m' is by how much CE is more.
func MarkCE(b []byte, p *Parsed) bool {
	ecn := p.ECN
	if ecn == NotECT || ecn == CE {
		return false
	}
	switch h := b[p.L3:]; p.Family {
	case 4:
		h := (*[IPv4Len]byte)(h)
		sum := uint32(^binary.BigEndian.Uint16(h[10:])) + uint32(CE-ecn)
		binary.BigEndian.PutUint16(h[10:], ^uint16(sum+sum>>16))
		h[1] |= CE
	case 6:
		h[1] |= CE << 4
	default:
		return false
	}
	p.ECN = CE
	return true
}

// onesSum adds the 16-bit words of b, an odd last octet padded with zero, to sum (RFC 1071). It takes words of 32 bits, which are
// congruent to their halves' sum. The result is not folded; sum holds 2^32 of them at least, which is more than any packet has.
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

// fold brings a sum of words to 16 bits in one's complement arithmetic and complements it. Of 64 bits the first step leaves 33, the
// next ones 18, 17, and 16.
func fold(sum uint64) uint16 {
	sum = sum&0xffffffff + sum>>32
	sum = sum&0xffff + sum>>16
	sum = sum&0xffff + sum>>16
	sum = sum&0xffff + sum>>16
	return ^uint16(sum)
}
