package packet

// ParseIP is Parse for an IP packet without a link-layer header, such as the invoking packet in a notification to a proxy: offsets
// count from the IP header. The packet may be truncated: only the headers must be in b, and their lengths aren't checked against it.
func ParseIP(b []byte, p *Parsed) {
	*p = Parsed{}
	if len(b) == 0 {
		return
	}
	const unbounded = 1 << 17 // more than any IP packet that isn't a jumbogram
	switch b[0] >> 4 {
	case 4:
		parseIPv4(b, 0, unbounded, p)
	case 6:
		parseIPv6(b, 0, unbounded, p)
	}
}
