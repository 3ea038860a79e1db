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
	source, ok := sender(octets, length)
	return ok && slices.ContainsFunc(fabric, func(p netip.Prefix) bool { return p.Contains(source) })
}

// sender is an IP packet's source or an ARP packet's sender; other frames have none.
func sender(octets []byte, length uint32) (netip.Addr, bool) {
	var p packet.Parsed
	packet.Parse(octets, length, &p)
	if p.Family == 0 {
		return senderOf(octets, &p)
	}
	return p.Src.Netip(), true
}

// senderOf is the sender of an ARP packet, or the source in an invalid IP header, for instance one with a wrong length: the
// source still shows the port.
func senderOf(octets []byte, p *packet.Parsed) (netip.Addr, bool) {
	at := min(packet.EthernetLen+int(p.Tags)*packet.VLANTagLen, len(octets))
	switch b := octets[at:]; {
	case p.EtherType == packet.EtherTypeIPv4 && len(b) >= packet.IPv4Len && b[0]>>4 == 4:
		return packet.AddrFrom4(b[12:]).Netip(), true
	case p.EtherType == packet.EtherTypeIPv6 && len(b) >= packet.IPv6Len && b[0]>>4 == 6:
		return packet.AddrFrom16(b[8:]).Netip(), true
	case p.EtherType == etherTypeARP && len(b) >= arpLen && binary.BigEndian.Uint64(b)>>16 == arpIPv4>>16:
		return packet.AddrFrom4(b[arpSender:]).Netip(), true
	}
	return netip.Addr{}, false
}
