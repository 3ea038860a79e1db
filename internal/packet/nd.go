package packet

import "encoding/binary"

const (
	icmpv6NeighborSolicitation  = 135
	icmpv6NeighborAdvertisement = 136

	neighborLen    = 24 // octets of either message without options (RFC 4861 4.3, 4.4)
	linkOptionLen  = 8  // octets of an option with an Ethernet address (RFC 2464 6)
	sourceLinkType = 1  // Source Link-Layer Address option
	targetLinkType = 2  // Target Link-Layer Address option

	// NeighborAdvertisementLen is the length of a NeighborAdvertisement in octets.
	NeighborAdvertisementLen = neighborLen + linkOptionLen
	// NeighborHopLimit is the hop limit of each message of Neighbor Discovery: no router has forwarded it (RFC 4861 11.2).
	NeighborHopLimit = 255
)

// AllNodes is the link-local address of all nodes, ff02::1 (RFC 4291 2.7.1), and AllNodesMAC its Ethernet address (RFC 2464 7).
var (
	AllNodes    = Addr{0xff02 << 48, 1}
	AllNodesMAC = MAC{0x33, 0x33, 0, 0, 0, 1}
)

// SolicitedNode is the solicited-node multicast address of an IPv6 address (RFC 4291 2.7.1).
func SolicitedNode(a Addr) Addr { return Addr{0xff02 << 48, 1<<32 | 0xff<<24 | a.Lo&0xffffff} }

// NeighborSolicitation has the fields of a Neighbor Solicitation (RFC 4861 4.3) that an answer needs.
type NeighborSolicitation struct {
	Target  Addr
	Link    MAC // of the sender: its Source Link-Layer Address option; without one, the frame's source
	Probing bool
}

// DecodeNeighborSolicitation reads a parsed packet. It returns false if the packet isn't a Neighbor Solicitation, or a node must silently
// discard it (RFC 4861 7.1.1): hop limit 255, code 0, a right checksum, at least 24 octets, a unicast target, no option of length 0; and from the
// unspecified address (Probing: Duplicate Address Detection) only to a solicited-node multicast address and without the sender's link-layer address.
func DecodeNeighborSolicitation(b []byte, p *Parsed) (s NeighborSolicitation, ok bool) {
	message := neighborMessage(b, p, icmpv6NeighborSolicitation)
	if message == nil {
		return s, false
	}
	s.Target, s.Link, s.Probing = AddrFrom16(message[8:]), SourceMAC(b), p.Src == Addr{}
	link, whole := linkOption(message[neighborLen:], sourceLinkType)
	switch {
	case !whole, s.Target.Hi>>56 == 0xff, s.Probing && (link != nil || p.Dst != SolicitedNode(s.Target)):
		return s, false
	case link != nil:
		s.Link = MAC(link)
	}
	return s, true
}

// AdvertisedTarget is the address that the sender of a parsed packet claims in a Neighbor Advertisement; false if the packet isn't one that a
// node processes (RFC 4861 7.1.2).
func AdvertisedTarget(b []byte, p *Parsed) (Addr, bool) {
	message := neighborMessage(b, p, icmpv6NeighborAdvertisement)
	if message == nil {
		return Addr{}, false
	}
	return AddrFrom16(message[8:]), true
}

// neighborMessage is a parsed packet's ICMPv6 message if it is of the type and RFC 4861 7.1 allows to process it, otherwise nil.
func neighborMessage(b []byte, p *Parsed, kind uint8) []byte {
	at, end := int(p.L4), int(p.IPEnd)
	if p.Family != 6 || p.Proto != ProtoICMPv6 || at == 0 || end > len(b) || end-at < neighborLen || b[at] != kind || b[at+1] != 0 {
		return nil
	}
	const hopLimit = 7 // offset in the IPv6 header
	message := b[at:end]
	if b[int(p.L3)+hopLimit] != NeighborHopLimit || binary.BigEndian.Uint16(message[2:]) != ICMPv6Checksum(p.Src, p.Dst, message) {
		return nil
	}
	return message
}

// linkOption returns the Ethernet address in the first option of the type, nil if there is none. whole: each option is at least 8 octets long and ends
// within the list, as RFC 4861 4.6 requires. Each iteration uses at least 8 octets.
func linkOption(options []byte, kind uint8) (address []byte, whole bool) {
	for len(options) > 0 {
		if len(options) < linkOptionLen {
			return nil, false
		}
		size := 8 * int(options[1])
		if size == 0 || size > len(options) {
			return nil, false
		}
		if options[0] == kind && size == linkOptionLen && address == nil {
			address = options[2:linkOptionLen]
		}
		options = options[size:]
	}
	return address, true
}

// NeighborAdvertisement is a Neighbor Advertisement (RFC 4861 4.4) with a Target Link-Layer Address option:
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  Type = 136   |   Code = 0    |          Checksum             |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|R|S|O|                     Reserved                            |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                      Target Address (16)                      ~
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|   Type = 2    |  Length = 1   |    Link-Layer Address (6)     ~
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//
// R is 0: the gateway is no router. O is 1: the address in it replaces what the neighbor knows.
type NeighborAdvertisement struct {
	Solicited bool
	Target    Addr
	Link      MAC
}

// Put writes NeighborAdvertisementLen octets, with the checksum for a packet from src to dst.
func (a *NeighborAdvertisement) Put(b []byte, src, dst Addr) {
	const override = 0x20
	b = b[:NeighborAdvertisementLen]
	binary.BigEndian.PutUint64(b, icmpv6NeighborAdvertisement<<56|uint64(bit(a.Solicited, 0x40)|override)<<24)
	a.Target.Put16(b[8:])
	b[neighborLen], b[neighborLen+1] = targetLinkType, 1
	copy(b[neighborLen+2:], a.Link[:])
	binary.BigEndian.PutUint16(b[2:], ICMPv6Checksum(src, dst, b))
}
