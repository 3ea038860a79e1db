package packet

// IPv4 options (RFC 791 3.1).
const (
	optionEnd          = 0
	optionNOP          = 1
	optionLooseRoute   = 131
	optionStrictRoute  = 137
	ipv4OptionShortest = 2 // octets, of an option other than the first two
)

// SourceRouted reports whether the host at a parsed IP packet's destination address would forward it to another one: it has an IPv4 source
// route, or an IPv6 Routing header with segments left (RFC 8200 4.4). It is also true for unreadable IPv4 options. It reads extension
// headers up to p.L4, which must not be 0 over IPv6. b is the frame that was parsed.
func SourceRouted(b []byte, p *Parsed) bool {
	switch p.Family {
	case 4:
		return routed4(b, p)
	case 6:
		return routed6(b, p)
	}
	return false
}

func routed4(b []byte, p *Parsed) bool {
	at, end := int(p.L3)+IPv4Len, int(p.L3)+int(b[p.L3]&0xf)*4
	if end > len(b) {
		return true
	}
	for at < end { // each iteration uses at least one of at most 40 octets
		switch option := b[at]; {
		case option == optionEnd:
			return false
		case option == optionNOP:
			at++
			continue
		case option == optionLooseRoute, option == optionStrictRoute, at+1 == end, b[at+1] < ipv4OptionShortest:
			return true
		}
		at += int(b[at+1])
	}
	return false
}

func routed6(b []byte, p *Parsed) bool {
	next, off := b[p.L3+6], int(p.L3)+IPv6Len
	for n := 0; n < maxExtHeaders && off < int(p.L4); n++ {
		if next == ProtoRouting && b[off+3] != 0 {
			return true
		}
		next, off = b[off], off+extHeaderLen(next, b[off+1])
	}
	return false
}
