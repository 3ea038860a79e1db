package packet

// UDPChecksum computes the checksum of a UDP datagram, header and data, over its pseudo-header (RFC 768; RFC 8200 8.1), which gives the
// same sum for IPv4 and IPv6 addresses: the additional word of ones of an IPv4-mapped address counts as 0. The datagram's own checksum
// field, octets 6 and 7, counts as zero. The result is never 0, which would mean no checksum. datagram has at least 8 octets.
func UDPChecksum(src, dst Addr, datagram []byte) uint16 {
	sum := addrSum(src) + addrSum(dst) + uint64(len(datagram)) + ProtoUDP
	sum = onesSum(sum, datagram[0:6])
	return notZero(fold(onesSum(sum, datagram[8:])))
}
