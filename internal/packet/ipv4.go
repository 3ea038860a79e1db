package packet

import "encoding/binary"

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
	sum := first>>32 + first&0xffffffff + third + uint64(src) + uint64(dst)
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
	sum := uint64(0x4500|uint32(class))<<16 + first>>32&0xffff + first&0xffffffff
	sum += uint64(ttl)<<24 + second>>48&0xff<<16 + second&0xffffffff + uint64(binary.BigEndian.Uint32(b[16:]))
	b[1], b[8] = class, ttl
	sum = sum&0xffff + sum>>16 // of 5 words: it has 35 bits, then 20, 17 and 16
	sum = sum&0xffff + sum>>16
	binary.BigEndian.PutUint16(b[10:], ^uint16(sum+sum>>16))
}

// IPv4ChecksumOK reports whether the header checksum of a parsed IPv4 packet is right (RFC 791 3.1).
func IPv4ChecksumOK(b []byte, p *Parsed) bool {
	end := int(p.L3) + int(b[p.L3]&0xf)*4
	return end <= len(b) && fold(onesSum(0, b[p.L3:end])) == 0
}
