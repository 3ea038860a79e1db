package replay

import (
	"encoding/binary"
	"net/netip"

	"github.com/cnpgate/cnpgate/internal/packet"
)

const (
	etherTypeARP = 0x0806
	arpLen       = 28 // of ARP for IPv4 over Ethernet (RFC 826)
	arpSender    = 14 // where it has its sender's protocol address
	// arpIPv4 is how it begins: hardware type 1, protocol type, 6 and 4 octets of address.
	arpIPv4 = 1<<48 | packet.EtherTypeIPv4<<32 | 6<<24 | 4<<16
)

// fromFabric tells whether a frame's sender is inside one of the prefixes: an IP packet's source, an ARP packet's sender. Other
// frames have none and come from the WAN.
func fromFabric(octets []byte, length uint32, fabric []netip.Prefix) bool {
	var p packet.Parsed
	packet.Parse(octets, length, &p)
	source := p.Src.Netip()
	if p.Family == 0 {
		var ok bool
		if source, ok = senderOf(octets, &p); !ok {
			return false
		}
	}
	for _, prefix := range fabric {
		if prefix.Contains(source) {
			return true
		}
	}
	return false
}

// senderOf is the sender of an ARP packet, or the source in an IP header that isn't sound, for instance for a wrong length: the
// frame came from somewhere all the same.
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
