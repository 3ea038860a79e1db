// Package cnpgen builds the notifications that a gateway sends: Fast CNP, and Long-haul CNP as a RoCEv2 packet or as an ICMPv6
// message, one format a file. A builder takes the data packet that met congestion and writes one whole Ethernet frame, without
// FCS, into the caller's buffer. The package doesn't decide who is told, what, or how often, apart from refusing to answer
// what is not a RoCEv2 data packet; it reads no clock, allocates nothing and keeps nothing.
package cnpgen

import "github.com/cnpgate/cnpgate/internal/packet"

// MaxLen is the length in octets of the longest frame that any builder writes: a Fast CNP with two VLAN tags.
const MaxLen = packet.EthernetLen + packet.MaxTags*packet.VLANTagLen + packet.IPv6Len + fastCNPHeaderLen + fastCNPUDPLen

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

// putIPv4 writes the IPv4 header of a notification with n octets behind it, to the data packet's source.
func putIPv4(b []byte, p *packet.Parsed, g *Gateway, proto uint8, n int) {
	h := packet.IPv4Header{
		TotalLen: uint16(packet.IPv4Len + n), DSCP: g.DSCP, TTL: hopLimit, Proto: proto, Src: g.IPv4, Dst: p.Src,
	}
	h.Put(b)
}

// putIPv6 writes the IPv6 header of a notification with n octets behind it, to the data packet's source.
func putIPv6(b []byte, p *packet.Parsed, g *Gateway, next uint8, n int) {
	h := packet.IPv6Header{
		PayloadLen: uint16(n), DSCP: g.DSCP, NextHeader: next, HopLimit: hopLimit, Src: g.IPv6, Dst: p.Src,
	}
	h.Put(b)
}

// putCNP writes the UDP header and BTH that start the n octets of a CNP's UDP datagram (IBTA Annex A17). The source port is
// the data packet's, so that a network which spreads load over paths by it treats both alike; the UDP checksum is 0.
func putCNP(b []byte, p *packet.Parsed, n int, flags uint8, destQP uint32) {
	udp := packet.UDPHeader{SrcPort: p.SrcPort, DstPort: packet.RoCEv2Port, Length: uint16(n)}
	udp.Put(b)
	bth := packet.BTH{Opcode: packet.CNP, PKey: packet.DefaultPKey, Flags: flags, DestQP: destQP}
	bth.Put(b[packet.UDPLen:])
}
