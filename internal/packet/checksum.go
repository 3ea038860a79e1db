package packet

import "encoding/binary"

// Internet checksums (RFC 1071) are sums of 16-bit words modulo 0xFFFF. A word of 32 bits is congruent to the sum of its halves.

// onesSum adds the words of b, an odd last octet padded with zero, to sum. The result is not folded; sum has space for at least 2^32 words,
// more than any packet has.
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

// notZero returns a checksum in the form that doesn't mean "no checksum".
func notZero(checksum uint16) uint16 {
	if checksum == 0 {
		return 0xffff
	}
	return checksum
}

// addrSum is the sum of an address.
func addrSum(a Addr) uint64 {
	return a.Hi>>32 + a.Hi&0xffffffff + a.Lo>>32 + a.Lo&0xffffffff
}
