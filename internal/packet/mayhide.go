package packet

// MayHide reports whether a frame may be or carry a notification, or a part of one, although Classify finds none, or only a standard CNP:
// Parse couldn't read the frame completely, and the part that it read doesn't rule out a notification. Such frames are
//
//   - a frame whose EtherType says IP and whose IP header is not valid, jumbograms (RFC 2675) included;
//   - more VLAN tags than MaxTags, any other EtherType that carries frames or packets, what looks like tags of other TPIDs before one of
//     these, and IP or bridged frames in IEEE 802.2 LLC or SNAP (RFC 1042, RFC 2684);
//   - an IP fragment of UDP, of a protocol below or, over IPv6, of ICMPv6 or with extension headers after the Fragment header;
//   - a chain of IPv6 extension headers that Parse can't read;
//   - an upper-layer protocol that carries others where they can't be read (ESP, for example);
//   - a tunnel (IP in IP, GRE, VXLAN and others in UDP) around any of these or around a notification, and a tunnel in a tunnel;
//   - a truncated UDP or ICMPv6 header; UDP to RoCEv2Port with a CNP's opcode that is no valid RoCEv2 packet; a CNP with broken IPv6 options.
//
// A UDP datagram to the port of none of these is no notification, whatever it carries. b is the parsed frame or its beginning, p the result of Parse;
// bytes after the IP packet don't matter.
func MayHide(b []byte, p *Parsed, c *CodePoints) bool {
	if p.Encapsulated() {
		return p.tunnel.opaque || payloadMayHide(b, 0, p, c)
	}
	return mayHide(b, 0, p, c)
}

// payloadMayHide reports whether a tunnel's payload, which begins at start, is a notification, or may hide one. A standard CNP doesn't count:
// the domain filter always lets it pass.
func payloadMayHide(b []byte, start int, p *Parsed, c *CodePoints) bool {
	n := classify(b, p, c)
	return n != NotANotification && n != StandardCNP || mayHide(b, start, p, c)
}

// mayHide is MayHide for a frame or, if start isn't 0, for the payload of a tunnel that begins there.
func mayHide(b []byte, start int, p *Parsed, c *CodePoints) bool {
	switch {
	case p.Kind == Other:
		return linkMayHide(b[min(start, len(b)):], p)
	case p.Kind == RoCEv2:
		return p.Opcode == CNP && p.Family == 6 && !optionsWhole(b, p, c)
	case p.Kind != IP:
		return false
	case p.L4 == 0:
		return fragmentMayHide(p)
	}
	return upperMayHide(b, start != 0, p, c)
}

func optionsWhole(b []byte, p *Parsed, c *CodePoints) bool {
	whole, _ := OptionsOK(b, p, c)
	return whole
}

// fragmentMayHide judges a fragment by the protocol that its own header names. In IPv6 only the first fragment's Next Header counts
// (RFC 8200 4.5); without that fragment the others are useless, and it gets the same result.
func fragmentMayHide(p *Parsed) bool {
	switch p.Proto {
	case 0, ProtoUDP, ProtoIPv4, ProtoIPv6, ProtoGRE, protoMobility, protoHIP, protoShim6: // 0: not a fragment, and the chain has no known end
		return true
	case ProtoICMPv6:
		return p.Family == 6
	}
	return p.Family == 6 && isExtHeader(p.Proto) || opaque(p.Proto)
}

// upperMayHide judges a packet whose upper-layer header is at p.L4. inside: the packet itself is in a tunnel.
func upperMayHide(b []byte, inside bool, p *Parsed, c *CodePoints) bool {
	at, end := int(p.L4), min(int(p.IPEnd), len(b))
	if opaque(p.Proto) {
		return true
	}
	l := payloadOf(b, p)
	if p.Proto == ProtoUDP && l.what == nothing {
		l = udpPayload(b, p)
	}
	if l.what != nothing {
		return inside || l.mayHide(b, c)
	}
	switch p.Proto {
	case ProtoUDP:
		return udpMayHide(b, at, end, p)
	case ProtoICMPv6:
		return p.Family == 6 && at >= end
	case protoMobility, protoHIP, protoShim6: // extension headers (RFC 7045) that Parse doesn't skip; usually the last header
		return at >= end || b[at] != ProtoNoNext
	}
	return false
}

// mayHide judges what a tunnel carries. An IP packet without a valid header may be anything.
func (l *payload) mayHide(b []byte, c *CodePoints) bool {
	if l.what == unreadable || l.what == labelStack || l.tunnel.opaque {
		return true
	}
	var p Parsed
	l.parse(b, &p)
	return l.what == ipPacket && p.Kind == Other || payloadMayHide(b[:min(len(b), l.end)], l.at, &p, c)
}

// udpMayHide judges a datagram that isn't RoCEv2, isn't to a proxy and isn't in a tunnel.
func udpMayHide(b []byte, at, end int, p *Parsed) bool {
	at += UDPLen
	if at > end {
		return true
	}
	return p.DstPort == RoCEv2Port && (at == end || Opcode(b[at]) == CNP)
}

// Protocol numbers that only this package needs: IPv6 extension headers (RFC 7045) that Parse treats as an upper layer, and a label stack in
// IP (RFC 4023).
const (
	protoMobility = 135
	protoMPLS     = 137
	protoHIP      = 139
	protoShim6    = 140
)

// opaque reports whether a protocol carries others in a way that isn't read here.
func opaque(proto uint8) bool {
	switch proto {
	case 50, // ESP (RFC 4303), also of NULL encryption: nothing in the packet says which
		ProtoAH,    // over IPv4; over IPv6 it is an extension header
		55,         // minimal encapsulation (RFC 2004)
		94, 97, 98, // IPIP, EtherIP (RFC 3378), ENCAP (RFC 1241)
		108, // IPComp (RFC 3173)
		115, // L2TP (RFC 3931)
		protoMPLS,
		53,       // SwIPe
		142,      // ROHC (RFC 5858)
		144, 145, // AGGFRAG (RFC 9347), NSH (RFC 9491)
		ProtoEthernet,
		253, 254: // experiments (RFC 3692, RFC 4727), as an upper layer and as an extension header
		return true
	}
	return false
}
