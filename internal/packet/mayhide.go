package packet

import "encoding/binary"

// MayHide reports whether a frame may be or carry a notification, or a part of one, although Classify finds none, or only a standard CNP:
// Parse couldn't read the frame completely, and the part that it read doesn't rule out a notification. Such frames are
//
//   - a frame whose EtherType says IP and whose IP header is not valid, jumbograms (RFC 2675) included;
//   - more VLAN tags than MaxTags, any other EtherType that carries frames or packets, what looks like a tag of another TPID, and IP in
//     IEEE 802.2 LLC or SNAP (RFC 1042);
//   - an IP fragment of UDP, of a protocol below or, over IPv6, of ICMPv6 or with extension headers after the Fragment header;
//   - a chain of IPv6 extension headers that Parse can't read;
//   - an upper-layer protocol that carries others where they can't be read (ESP, for example);
//   - a tunnel (IP in IP, GRE, VXLAN) around any of these or around a notification, and a tunnel in a tunnel;
//   - a truncated UDP or ICMPv6 header; UDP to RoCEv2Port with a CNP's opcode that is no valid RoCEv2 packet; a CNP with broken IPv6 options.
//
// A UDP datagram to any other port is no notification, whatever it carries. b is the parsed frame or its beginning, p the result of Parse;
// bytes after the IP packet don't matter.
func MayHide(b []byte, p *Parsed, c *CodePoints) bool { return mayHide(b, p, c, false) }

// mayHide is MayHide for a frame or, with inside, for the payload of a tunnel.
func mayHide(b []byte, p *Parsed, c *CodePoints, inside bool) bool {
	switch {
	case p.Kind == Other:
		return linkMayHide(b, p)
	case p.Kind == RoCEv2:
		return p.Opcode == CNP && p.Family == 6 && !optionsWhole(b, p, c)
	case p.Kind != IP:
		return false
	case p.L4 == 0:
		return fragmentMayHide(p)
	}
	return upperMayHide(b, p, c, inside)
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

// upperMayHide judges a packet whose upper-layer header is at p.L4.
func upperMayHide(b []byte, p *Parsed, c *CodePoints, inside bool) bool {
	at, end := int(p.L4), min(int(p.IPEnd), len(b))
	switch p.Proto {
	case ProtoUDP:
		return udpMayHide(b, at, end, p, c, inside)
	case ProtoICMPv6:
		return p.Family == 6 && at >= end
	case ProtoIPv4, ProtoIPv6:
		return inside || at >= end || packetInside(b[at:end], c)
	case ProtoGRE:
		return inside || at >= end || greMayHide(b[at:end], c)
	case protoMobility, protoHIP, protoShim6: // extension headers (RFC 7045) that Parse doesn't skip; usually the last header
		return at >= end || b[at] != ProtoNoNext
	}
	return opaque(p.Proto)
}

// udpMayHide judges a datagram that isn't RoCEv2 and isn't to a proxy.
func udpMayHide(b []byte, at, end int, p *Parsed, c *CodePoints, inside bool) bool {
	at += UDPLen
	if at > end {
		return true
	}
	switch p.DstPort {
	case RoCEv2Port:
		return at == end || Opcode(b[at]) == CNP
	case vxlanPort:
		return inside || at+vxlanLen > end || frameInside(b[at+vxlanLen:end], c)
	}
	return false
}

// Protocol numbers of IPv6 extension headers (RFC 7045) that Parse treats as an upper layer.
const (
	protoMobility = 135
	protoHIP      = 139
	protoShim6    = 140
)

// opaque reports whether a protocol carries others in a way that isn't read here.
func opaque(proto uint8) bool {
	switch proto {
	case 50, // ESP (RFC 4303), also of NULL encryption: nothing in the packet tells
		ProtoAH,    // over IPv4; over IPv6 it is an extension header
		55,         // minimal encapsulation (RFC 2004)
		94, 97, 98, // IPIP, EtherIP (RFC 3378), ENCAP (RFC 1241)
		108,      // IPComp (RFC 3173)
		115,      // L2TP (RFC 3931)
		137,      // MPLS in IP (RFC 4023)
		142, 143, // ROHC (RFC 5858), Ethernet (RFC 8986)
		253, 254: // experiments (RFC 3692, RFC 4727), as an upper layer and as an extension header
		return true
	}
	return false
}

// linkMayHide judges a frame in which Parse found no valid IP packet.
func linkMayHide(b []byte, p *Parsed) bool {
	at := EthernetLen + VLANTagLen*int(p.Tags)
	if at > len(b) {
		return false
	}
	switch {
	case p.EtherType == 0:
		return llcMayHide(b[at:])
	case carries(p.EtherType):
		return true
	}
	return looksTagged(b[at:])
}

// carries reports whether frames or IP packets follow an EtherType (IEEE 802 numbers, RFC 9542).
func carries(etherType uint16) bool {
	switch etherType {
	case EtherTypeIPv4, EtherTypeIPv6, // a header that Parse refuses
		EtherTypeCTag, EtherTypeSTag, EtherTypeQinQ, // more tags than Parse skips, or a truncated one
		0x9200, 0x9300, // tags of equipment older than 802.1ad
		0x893f, 0x8926, 0xf1c1, 0x892f, 0x8909, // tags of 802.1BR, VN-tag, 802.1CB, HSR, Cisco metadata
		0x88e5, 0x88e7, // MACsec, 802.1ah
		0x8847, 0x8848, // MPLS
		0x880b, 0x8864, // PPP, PPPoE
		etherTypeBridging, 0x8870, // Ethernet, LLC of jumbo frames
		0x22f3, 0x8903, 0x894f: // TRILL, FabricPath, NSH
		return true
	}
	return false
}

// looksTagged reports whether an IP header follows one to four tags of four octets: a switch's TPID can be configured to any number. b
// begins with the tag control information of the first.
func looksTagged(b []byte) bool {
	const most = 4
	for n := 0; n < most && len(b) > VLANTagLen; n++ {
		etherType, first := binary.BigEndian.Uint16(b[2:]), b[VLANTagLen]
		if etherType == EtherTypeIPv4 && first >= 0x45 && first <= 0x4f || etherType == EtherTypeIPv6 && first>>4 == 6 {
			return true
		}
		b = b[VLANTagLen:]
	}
	return false
}

// llcMayHide judges an IEEE 802.3 frame from its 802.2 LLC header on: IP has its own DSAP, or its EtherType in SNAP.
func llcMayHide(b []byte) bool {
	const dsapIP, snapLen = 0x06, 8
	if len(b) < snapLen {
		return false
	}
	switch {
	case b[0] == dsapIP:
		return true
	case binary.BigEndian.Uint32(b) == 0xaaaa0300 && (b[4] == 0 && b[5] == 0 || b[4] == 0 && b[5] == 0xf8): // RFC 1042, IEEE 802.1H
		etherType := binary.BigEndian.Uint16(b[6:])
		return carries(etherType) || looksTagged(b[snapLen:])
	}
	return false
}
