package cnpdec

import "github.com/cnpgate/cnpgate/internal/packet"

// addressesOK reports whether source and destination of an IP header can be hosts' addresses: a notification is sent by unicast (draft-tian
// 5.5 step 5), and no access list should have to check an invalid address.
func (n *Notification) addressesOK() bool {
	return unicast(n.Family, n.Src) && unicast(n.Family, n.Dst)
}

// unicast reports whether an address of the IP version can be a host's.
func unicast(family uint8, a packet.Addr) bool {
	return a.Unicast() && !impostor(family, a)
}

// impostor reports whether an address of the IP version is an IPv4-mapped one in IPv6. No packet may have it on the wire (RFC 4038 4.2),
// and Addr, access lists and flows would confuse it with the IPv4 host's.
func impostor(family uint8, a packet.Addr) bool { return family == 6 && a.Is4() }
