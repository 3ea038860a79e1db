package packet

// UDPChecksum computes the checksum of a UDP datagram, header and data, over its pseudo-header (RFC 768; RFC 8200 8.1), which is the
// same sum for IPv4 and IPv6 addresses: what an IPv4-mapped address has more, a word of ones, counts as nothing. The datagram's
// own checksum field, octets 6 and 7, counts as zero whatever it holds. The result is never 0, which would mean that there is no
// checksum. datagram has at least 8 octets.
func UDPChecksum(src, dst Addr, datagram []byte) uint16 {
	sum := addrSum(src) + addrSum(dst) + uint64(len(datagram)) + ProtoUDP
	sum = onesSum(sum, datagram[0:6])
	return notZero(fold(onesSum(sum, datagram[8:])))
}
