package packet

import "encoding/binary"

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
