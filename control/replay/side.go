package replay

import (
	"net/netip"

	"github.com/cnpgate/cnpgate/internal/packet"
)

const (
	etherTypeARP = 0x0806
	// arpSender is where an ARP packet for IPv4 over Ethernet has its sender's protocol address, and arpLen its length (RFC 826).
	arpSender = 14
	arpLen    = 28
)

// fromFabric tells whether a frame's sender is inside one of the prefixes: an IP packet's source, an ARP packet's sender. Other
// frames have none and come from the WAN.
func fromFabric(octets []byte, length uint32, fabric []netip.Prefix) bool {
	var p packet.Parsed
	packet.Parse(octets, length, &p)
	source := p.Src.Netip()
	if p.Family == 0 {
		at := packet.EthernetLen + int(p.Tags)*packet.VLANTagLen
		if p.EtherType != etherTypeARP || len(octets) < at+arpLen {
			return false
		}
		source = packet.AddrFrom4(octets[at+arpSender:]).Netip()
	}
	for _, prefix := range fabric {
		if prefix.Contains(source) {
			return true
		}
	}
	return false
}
