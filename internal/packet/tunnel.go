package packet

import "encoding/binary"

const (
	vxlanPort = 4789 // UDP destination port (RFC 7348 5)
	vxlanLen  = 8    // octets of the VXLAN header

	etherTypeBridging = 0x6558 // an Ethernet frame in GRE (RFC 1701)
)

// GRE (RFC 2784, RFC 2890): flags and version, an EtherType, then four octets for each of the three flags.
const (
	greLen     = 4
	greFlags   = 0xb000 // checksum, key, sequence number
	greUnknown = 0x4fff // routing (RFC 1701), reserved bits, version
)

// greMayHide judges the payload of a GRE header.
func greMayHide(b []byte, c *CodePoints) bool {
	if len(b) < greLen {
		return true
	}
	flags, at := binary.BigEndian.Uint16(b), greLen
	if flags&greUnknown != 0 {
		return true
	}
	for f := flags & greFlags; f != 0; f &= f - 1 {
		at += 4
	}
	if at > len(b) {
		return true
	}
	switch binary.BigEndian.Uint16(b[2:]) {
	case EtherTypeIPv4, EtherTypeIPv6:
		return packetInside(b[at:], c)
	case etherTypeBridging:
		return frameInside(b[at:], c)
	}
	return true
}

// packetInside judges an IP packet that a tunnel carries. An invalid one may be anything.
func packetInside(b []byte, c *CodePoints) bool {
	var p Parsed
	ParseIP(b, &p)
	return p.Kind == Other || inside(b, &p, c)
}

// frameInside judges an Ethernet frame that a tunnel carries.
func frameInside(b []byte, c *CodePoints) bool {
	var p Parsed
	Parse(b, uint32(len(b)), &p)
	return inside(b, &p, c)
}

// inside reports whether a tunnel's payload is a notification, or may hide one. A standard CNP doesn't count: the domain filter always lets
// it pass.
func inside(b []byte, p *Parsed, c *CodePoints) bool {
	return Classify(b, p, c) > StandardCNP || mayHide(b, p, c, true)
}
