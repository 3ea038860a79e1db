package packet

import (
	"encoding/binary"
	"iter"
)

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

// maxExtHeaders bounds the extension headers that Parse skips; with more, the upper layer is unknown.
const maxExtHeaders = 8

// extHeaders are the extension headers that Parse has skipped, with their types; none if p.L4 is 0. At least 8 octets of each are in b.
func extHeaders(b []byte, p *Parsed) iter.Seq2[uint8, []byte] {
	return func(yield func(uint8, []byte) bool) {
		next, off := b[p.L3+6], int(p.L3)+IPv6Len
		for n := 0; n < maxExtHeaders && off < int(p.L4); n++ {
			end := off + extHeaderLen(next, b[off+1])
			if !yield(next, b[off:min(end, len(b))]) {
				return
			}
			next, off = b[off], end
		}
	}
}

// isExtHeader reports whether a Next Header value is an extension header that Parse skips.
func isExtHeader(next uint8) bool {
	switch next {
	case ProtoHopByHop, ProtoRouting, ProtoFragment, ProtoAH, ProtoDestOpts:
		return true
	}
	return false
}

// extHeaderLen is the length in octets of an extension header with the given type and second octet.
func extHeaderLen(header, hdrExtLen uint8) int {
	switch header {
	case ProtoFragment:
		return 8 // RFC 8200 4.5: the octet is reserved
	case ProtoAH:
		return 8 + int(hdrExtLen)*4 // RFC 4302 2.2: in units of 4 octets, less 2
	}
	return 8 + int(hdrExtLen)*8
}
