package packet

import (
	"encoding/binary"
	"math/bits"
	"unsafe"

	"github.com/cnpgate/cnpgate/internal/burst"
)

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

// MarkBurst marks, as MarkCE does, the frames that these has a bit for, and returns a bit for each one that it has marked. base is the base
// address of the frames' data; records are those of the frames, which it doesn't change: an IP header is of version 4 or 6. There are at most 64
// frames.
func MarkBurst(base unsafe.Pointer, frames []burst.Frame, records []Record, these uint64) (marked uint64) {
	return markBurst(base, frames, records[:len(frames)], these&(1<<len(frames)-1))
}

// markBurstGo is the specification of markBurst.
func markBurstGo(base unsafe.Pointer, frames []burst.Frame, records []Record, these uint64) (marked uint64) {
	for ; these != 0; these &= these - 1 {
		i := bits.TrailingZeros64(these)
		f := &frames[i]
		if MarkCE(unsafe.Slice((*byte)(unsafe.Add(base, int(f.Data))), f.Head), records[i].IP, records[i].ECN()) {
			marked |= 1 << i
		}
	}
	return marked
}

// Markable returns a bit for each packet that MarkBurst would mark of those that these has a bit for.
func Markable(records []Record, these uint64) (markable uint64) {
	for ; these != 0; these &= these - 1 {
		i := bits.TrailingZeros64(these)
		if ecn := records[i].ECN(); ecn != NotECT && ecn != CE {
			markable |= 1 << i
		}
	}
	return markable
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
