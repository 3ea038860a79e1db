package packet

// ICMPv6Len is the length of the fixed part of an ICMPv6 message in octets (RFC 4443 2.1):
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|     Type      |     Code      |          Checksum             |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
const ICMPv6Len = 4

// ICMPv6Checksum computes the checksum of an ICMPv6 message over the pseudo-header and the message (RFC 4443 2.3, RFC 8200 8.1). The
// message's own checksum field, octets 2 and 3, counts as zero, so a received message is right if the field equals the result. msg has at
// least 4 octets.
func ICMPv6Checksum(src, dst Addr, msg []byte) uint16 {
	sum := addrSum(src) + addrSum(dst) + uint64(len(msg)) + ProtoICMPv6
	sum = onesSum(sum, msg[0:2])
	return fold(onesSum(sum, msg[4:]))
}

// addrSum adds the address's eight 16-bit words. Words of 32 bits are congruent to their halves' sum modulo 0xFFFF.
func addrSum(a Addr) uint64 {
	return a.Hi>>32 + a.Hi&0xffffffff + a.Lo>>32 + a.Lo&0xffffffff
}
