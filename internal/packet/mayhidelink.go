package packet

import "encoding/binary"

// linkMayHide judges a frame in which Parse found no valid IP packet.
func linkMayHide(b []byte, p *Parsed) bool {
	at := EthernetLen + VLANTagLen*int(p.Tags)
	switch {
	case at > len(b):
		return false
	case isl(b):
		return true
	case p.EtherType == 0:
		return llcMayHide(b[at:], maxSNAP)
	}
	return typeMayHide(p.EtherType, b[at:], maxSNAP)
}

// maxSNAP bounds how many SNAP headers are read within each other; with more, anything may follow.
const maxSNAP = 3

// typeMayHide judges what follows an EtherType; left SNAP headers are read.
func typeMayHide(etherType uint16, b []byte, left int) bool {
	const (
		oui   = 0x88b7 // OUI Extended EtherType (IEEE 802): as in SNAP
		jumbo = 0x8870 // LLC, in frames too long for a length, such as those of IS-IS
	)
	switch {
	case carries(etherType):
		return true
	case selfContained(etherType):
		return false
	case etherType == jumbo, etherType < minEtherType: // a length, where SNAP has an EtherType
		return left == 0 || llcMayHide(b, left-1) || etherType != jumbo && tagsMayHide(b, left)
	case etherType == oui:
		return snapMayHide(b, left)
	}
	return tagsMayHide(b, left)
}

// carries reports whether frames or packets follow an EtherType (IEEE 802 numbers, RFC 9542).
func carries(etherType uint16) bool {
	switch etherType {
	case EtherTypeIPv4, EtherTypeIPv6, // a header that Parse refuses
		EtherTypeCTag, EtherTypeSTag, EtherTypeQinQ, // more tags than Parse skips, or a truncated one
		0x9200, 0x9300, // tags of equipment older than 802.1ad
		0x893f, 0x8926, 0xf1c1, 0x892f, 0x8909, // tags of 802.1BR, VN-tag, 802.1CB, HSR, Cisco metadata
		0x88e5, 0x88e7, // MACsec, 802.1ah
		EtherTypeMPLS, EtherTypeMPLSUp,
		0x880b, 0x8864, // PPP, PPPoE
		etherTypeBridging, // Ethernet
		0xa0ed, 0xab37,    // 6LoWPAN, BIER
		0x22f3, 0x8903, 0x894f: // TRILL, FabricPath, NSH
		return true
	}
	return false
}

// selfContained reports whether an EtherType is of a common protocol that carries no others. Its contents, a MAC address for example, are
// not read as tags.
func selfContained(etherType uint16) bool {
	switch etherType {
	case 0x0806, 0x8035, // ARP, RARP
		EtherTypeMACControl,
		0x8809, 0x88cc, 0x8902, 0x88f5, 0x88f6, 0x22ea, // slow protocols, LLDP, CFM, MVRP, MMRP, MSRP
		0x888e, 0x88f7, // 802.1X, PTP
		0x8863,                 // PPPoE discovery
		0x8906, 0x8914, 0x8915, // FCoE, FIP, RoCEv1
		0x88a2, 0x88ca, // AoE, TIPC
		0x8892, 0x88a4, 0x88b8, 0x88ba: // PROFINET, EtherCAT, IEC 61850
		return true
	}
	return false
}

// tagsMayHide reports whether tags with unknown TPIDs may precede IP, or an EtherType that carries others: a switch's TPID can be configured
// to any number. b begins with the tag control information of the first tag. Tags of four octets are read as such; as a tag can have any
// other even length, an IP header counts wherever it follows its EtherType.
func tagsMayHide(b []byte, left int) bool {
	const window = 64
	tags := true // only tags of four octets precede at
	for at := 2; at < window && at+2 < len(b); at += 2 {
		etherType, next := binary.BigEndian.Uint16(b[at:]), b[at+2:]
		if startsIP(etherType, next[0]) {
			return true
		}
		if !tags || at%VLANTagLen != 2 {
			continue
		}
		switch {
		case etherType == EtherTypeIPv4, etherType == EtherTypeIPv6, selfContained(etherType):
			tags = false
		case (etherType < minEtherType || etherType == 0x8870) && llcMayHide(next, left), carries(etherType):
			return true
		case etherType < minEtherType:
			tags = false
		}
	}
	return false
}

// startsIP reports whether an EtherType and the first octet behind it are those of an IP packet.
func startsIP(etherType uint16, first byte) bool {
	return etherType == EtherTypeIPv4 && first >= 0x45 && first <= 0x4f || etherType == EtherTypeIPv6 && first>>4 == 6
}

// isl reports whether a frame's destination is that of Cisco's Inter-Switch Link, which wraps an Ethernet frame in LLC.
func isl(b []byte) bool {
	return b[0]&^2 == 0x01 && b[1] == 0x00 && b[2] == 0x0c && b[3] == 0 && b[4] == 0
}

// llcMayHide judges an IEEE 802.3 frame from its 802.2 LLC header on. The lowest bit of an address marks a group or a response. Either address
// counts, as a receiver may look at one only.
func llcMayHide(b []byte, left int) bool {
	const (
		ip, snap, osi = 0x06, 0xaa, 0xfe
		unnumbered    = 3 // in the lowest bits of the control field: it has one octet, otherwise two
	)
	if len(b) < 4 {
		return false
	}
	has := func(sap byte) bool { return b[0]&^1 == sap || b[1]&^1 == sap }
	switch rest := b[3:]; {
	case has(ip):
		return true
	case has(snap):
		return snapMayHide(rest, left) || b[2]&unnumbered != unnumbered && snapMayHide(rest[1:], left)
	case has(osi):
		return nlpidCarries(rest[0]) || b[2]&unnumbered != unnumbered && len(rest) > 1 && nlpidCarries(rest[1])
	}
	return false
}

// nlpidCarries reports whether a Network Layer Protocol Identifier (ISO 9577, RFC 2427) is that of SNAP, IPv6, IPv4, PPP, or of compressed or
// fragmented packets. IS-IS, ES-IS and CLNP have others.
func nlpidCarries(nlpid byte) bool {
	switch nlpid {
	case 0x80, 0x8e, 0xcc, 0xcf, 0xb0, 0xb1:
		return true
	}
	return false
}

// snapMayHide judges what follows an LLC header of SNAP: an organization, and its protocol number.
func snapMayHide(b []byte, left int) bool {
	const (
		rfc1042, bridgeTunnel = 0x000000, 0x0000f8 // RFC 1042, IEEE 802.1H: the number is an EtherType
		bridged, bpdu         = 0x0080c2, 0x000e   // RFC 2684: a frame, of any kind of LAN; or spanning tree
		length                = 5
	)
	switch {
	case len(b) < length:
		return false
	case left == 0:
		return true
	}
	number := binary.BigEndian.Uint16(b[3:])
	switch binary.BigEndian.Uint32(b) >> 8 {
	case rfc1042, bridgeTunnel:
		return typeMayHide(number, b[length:], left-1)
	case bridged:
		return number != bpdu
	}
	return false
}
