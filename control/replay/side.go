package replay

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"github.com/cnpgate/cnpgate/internal/packet"
)

const (
	etherTypeARP = 0x0806
	arpLen       = 28 // of ARP for IPv4 over Ethernet (RFC 826)
	arpSender    = 14 // offset of the sender's protocol address
	// arpIPv4 is its beginning: hardware type 1, protocol type, 6 and 4 octets of address.
	arpIPv4 = 1<<48 | packet.EtherTypeIPv4<<32 | 6<<24 | 4<<16
)

// fromFabric reports whether a frame's sender is inside one of the prefixes. Frames without a sender count as from the WAN.
func fromFabric(octets []byte, length uint32, fabric []netip.Prefix) bool {
	return slices.ContainsFunc(senders(octets, length), func(source netip.Addr) bool {
		return slices.ContainsFunc(fabric, func(p netip.Prefix) bool { return p.Contains(source) })
	})
}

// senders are an IP packet's source or an ARP packet's sender; other frames have none. A RoCEv2 packet in an IP tunnel has two: where the
// tunnel begins, and the host.
func senders(octets []byte, length uint32) []netip.Addr {
	var p packet.Parsed
	packet.Parse(octets, length, &p)
	switch {
	case p.Family == 0:
		return sendersOf(octets, &p)
	case p.Outer != p.L3:
		return append(sourceAt(octets[p.Outer:]), p.Src.Netip())
	}
	return []netip.Addr{p.Src.Netip()}
}

// sendersOf is the sender of an ARP packet, or the source in an invalid IP header, for instance one with a wrong length: the
// source still shows the port.
func sendersOf(octets []byte, p *packet.Parsed) []netip.Addr {
	at := min(packet.EthernetLen+int(p.Tags)*packet.VLANTagLen, len(octets))
	switch b := octets[at:]; {
	case p.EtherType == packet.EtherTypeIPv4 && len(b) >= packet.IPv4Len && b[0]>>4 == 4,
		p.EtherType == packet.EtherTypeIPv6 && len(b) >= packet.IPv6Len && b[0]>>4 == 6:
		return sourceAt(b)
	case p.EtherType == etherTypeARP && len(b) >= arpLen && binary.BigEndian.Uint64(b)>>16 == arpIPv4>>16:
		return []netip.Addr{packet.AddrFrom4(b[arpSender:]).Netip()}
	}
	return nil
}

// sourceAt is the source in a whole IP header.
func sourceAt(header []byte) []netip.Addr {
	if header[0]>>4 == 4 {
		return []netip.Addr{packet.AddrFrom4(header[12:]).Netip()}
	}
	return []netip.Addr{packet.AddrFrom16(header[8:]).Netip()}
}
