// Package cnpgen builds the notifications that a gateway sends: standard CNP, Fast CNP, Long-haul CNP as a RoCEv2 packet or as an
// ICMPv6 message, PPFC notification, and notification to a proxy, one format a file. A builder takes the data packet that met
// congestion and writes one whole Ethernet frame, without FCS, into the caller's buffer. The package doesn't decide who is told,
// what, or how often, apart from refusing to answer what is not a RoCEv2 data packet; it reads no clock, allocates nothing and
// keeps nothing.
package cnpgen

import "github.com/cnpgate/cnpgate/internal/packet"

// MaxLen is the length in octets of the longest frame that any builder writes: two VLAN tags and an IPv6 packet of maxIPv6 octets.
const MaxLen = packet.EthernetLen + packet.MaxTags*packet.VLANTagLen + maxIPv6

// The longest IP packets that every link and host must take unfragmented (RFC 791 3.1, RFC 8200 5), in octets. No notification is
// longer.
const (
	maxIPv4 = packet.MaxProxyIPv4
	maxIPv6 = packet.MaxProxyIPv6
)

// hopLimit is the TTL or hop limit that a notification starts with.
const hopLimit = 64

// Gateway is what notifications say of their sender. It is read only: workers may share one.
type Gateway struct {
	IPv4, IPv6       packet.Addr // source addresses
	HasIPv4, HasIPv6 bool        // whether the gateway has an address of the family; without one nothing of it is built
	DSCP             uint8       // 6 bits
	Code             packet.CodePoints
	// ICRCExtensionHeaders takes IPv6 extension headers into the ICRC as they are sent. No specification says whether they
	// are, so an operator can have them left out for endpoints that do so.
	ICRCExtensionHeaders bool
}

// answerable tells whether frame is a RoCEv2 data packet. A CNP is never answered, whoever sent it: two gateways would keep
// answering each other. frame is at least as long as the header that is answered with.
func answerable(frame []byte, p *packet.Parsed) bool {
	return p.Kind == packet.RoCEv2 && p.Opcode != packet.CNP && len(frame) >= ethernetLen(p)
}

// ethernetLen is the length of the notification's Ethernet header: the data frame's.
func ethernetLen(p *packet.Parsed) int { return packet.EthernetLen + packet.VLANTagLen*int(p.Tags) }

// ipLen is the length of the IP header of a notification about a packet of the given family.
func ipLen(family uint8) int {
	if family == 6 {
		return packet.IPv6Len
	}
	return packet.IPv4Len
}

// has tells whether the gateway has an address of the given family.
func (g *Gateway) has(family uint8) bool { return family == 6 && g.HasIPv6 || family != 6 && g.HasIPv4 }

// source is the gateway's address of the given family.
func (g *Gateway) source(family uint8) *packet.Addr {
	if family == 6 {
		return &g.IPv6
	}
	return &g.IPv4
}

// putIP writes the IP header of a notification with n octets behind it, 20 or 40 octets.
func putIP(b []byte, family uint8, g *Gateway, src, dst *packet.Addr, proto uint8, n int) {
	if family == 6 {
		packet.PutIPv6(b, uint16(n), g.DSCP, proto, hopLimit, src, dst)
		return
	}
	packet.PutIPv4(b, uint16(packet.IPv4Len+n), g.DSCP, hopLimit, proto, uint32(src.Lo), uint32(dst.Lo))
}

// cnpUDPLen is the length of a CNP's UDP datagram with n octets between BTH and ICRC.
func cnpUDPLen(n int) int { return packet.UDPLen + packet.BTHLen + n + packet.ICRCLen }

// reply starts a RoCEv2 notification from the gateway to the data packet's source: all up to the BTH, for n octets between BTH and
// ICRC. It returns these and the frame's length, or 0 when the notification can't be built.
func reply(out, frame []byte, p *packet.Parsed, g *Gateway, n int, flags uint8, destQP uint32) (body []byte, end int) {
	if !g.has(p.Family) || !answerable(frame, p) {
		return nil, 0
	}
	l3, size := ethernetLen(p), cnpUDPLen(n)
	udp := l3 + ipLen(p.Family)
	end = udp + size
	if len(out) < end {
		return nil, 0
	}
	packet.ReplyEthernet(out, frame, p)
	putIP(out[l3:end], p.Family, g, g.source(p.Family), &p.Src, packet.ProtoUDP, size)
	packet.PutCNP(out[udp:end], p.SrcPort, size, flags, destQP)
	return out[end-packet.ICRCLen-n : end-packet.ICRCLen], end
}

// seal ends a RoCEv2 notification that reply has started: the ICRC.
func seal(out []byte, p *packet.Parsed, g *Gateway, end int) int {
	l3 := ethernetLen(p)
	packet.PutICRC(out[:end], l3, l3+ipLen(p.Family)+packet.UDPLen, end-packet.ICRCLen, g.ICRCExtensionHeaders)
	return end
}
