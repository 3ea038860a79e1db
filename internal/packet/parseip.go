package packet

// ParseIP is Parse for an IP packet without a link-layer header, such as the invoking packet in a notification to a proxy: offsets
// count from the IP header. The packet may be truncated: only the headers must be in b, and their lengths aren't checked against it. ParseIP
// doesn't follow tunnels.
func ParseIP(b []byte, p *Parsed) {
	*p = Parsed{}
	const unbounded = 1 << 17 // more than any IP packet that isn't a jumbogram
	parsePacket(b, 0, unbounded, p)
}
