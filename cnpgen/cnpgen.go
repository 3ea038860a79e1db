// Package cnpgen builds the notifications that a gateway sends: standard CNP, Fast CNP, Long-haul CNP as a RoCEv2 packet or as an ICMPv6
// message, PPFC notification, and notification to a proxy, one format a file. A builder takes a Target, which has the sender's address and
// identifies the flow, and writes one complete Ethernet frame, without FCS, into the caller's buffer. It returns the frame's length in
// bytes, or 0 if the frame can't be built; then it has written nothing. The package doesn't decide which senders are notified, of what, or
// how often, except that it makes a Target only from a RoCEv2 data packet. It reads no clock, doesn't allocate and has no state.
package cnpgen

import (
	"unsafe"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// MaxLen is the length in bytes of the longest frame that any builder writes: two VLAN tags and an IPv6 packet of maxIPv6 bytes.
const MaxLen = LinkLen + maxIPv6

// The longest IP packets that every link and host must accept unfragmented (RFC 791 3.1, RFC 8200 5), in bytes. No notification is
// longer.
const (
	maxIPv4 = packet.MaxProxyIPv4
	maxIPv6 = packet.MaxProxyIPv6
)

// hopLimit is the initial TTL or hop limit of a notification.
const hopLimit = 64

// Gateway has the originating gateway's fields of notifications. It is read-only: workers may share one.
type Gateway struct {
	IPv4, IPv6       packet.Addr // source addresses
	HasIPv4, HasIPv6 bool        // whether the gateway has an address of the family, which most formats need
	DSCP             uint8       // 6 bits
	Code             packet.CodePoints
	// ICRCExtensionHeaders includes IPv6 extension headers, as sent, in the ICRC. No specification says whether they belong to it, so an
	// operator can exclude them for endpoints that do so.
	ICRCExtensionHeaders bool
	// FlowPKey gives CNPs of any format the flow's partition key, if the Target has a valid one. Otherwise they have 0xFFFF. draft-tian
	// 6.2.3 allows both and requires the flow's where partitions are used.
	FlowPKey bool
	CNP      CNPFields // of standard CNPs
}

// Owns reports whether a is one of the gateway's source addresses.
func (g *Gateway) Owns(a packet.Addr) bool {
	return g.HasIPv4 && a == g.IPv4 || g.HasIPv6 && a == g.IPv6
}

// source returns the gateway's address of the given family, nil without one.
func (g *Gateway) source(family uint8) *packet.Addr {
	switch {
	case family == 6 && g.HasIPv6:
		return &g.IPv6
	case family == 4 && g.HasIPv4:
		return &g.IPv4
	}
	return nil
}

// pKey is the partition key of a CNP to t.
func (g *Gateway) pKey(t *Target) uint16 {
	if g.FlowPKey && packet.ValidPKey(t.PKey) {
		return t.PKey
	}
	return packet.DefaultPKey
}

// ipLen is the length of the IP header of a notification over the given family.
func ipLen(family uint8) int {
	if family == 6 {
		return packet.IPv6Len
	}
	return packet.IPv4Len
}

func maxIP(family uint8) int {
	if family == 6 {
		return maxIPv6
	}
	return maxIPv4
}

// ends are the variable fields of a notification's IP header.
type ends struct {
	family   uint8
	src, dst *packet.Addr // src is nil if the gateway has no address of the family
	proto    uint8
}

// putOuter writes the Ethernet and IP headers of a notification with n bytes after them. It returns the frame in its final length, and the
// offset of those bytes; nil if t is not valid, there is no source address, the destination is a sender in a tunnel, the IP packet would
// exceed the maximum, or out is too short.
func putOuter(out []byte, t *Target, g *Gateway, e ends, n int) (frame []byte, at int) {
	l3 := t.linkLen()
	at = l3 + ipLen(e.family)
	if !t.valid() || e.src == nil || t.Encapsulated && e.dst == &t.Src || at-l3+n > maxIP(e.family) || len(out) < at+n {
		return nil, 0
	}
	frame = out[:at+n]
	if e.family == 6 {
		t.putLink(unsafe.Pointer(unsafe.SliceData(frame)), packet.EtherTypeIPv6)
		packet.PutIPv6(frame[l3:], uint16(n), g.DSCP<<2, e.proto, hopLimit, e.src, e.dst)
	} else {
		t.putLink(unsafe.Pointer(unsafe.SliceData(frame)), packet.EtherTypeIPv4)
		packet.PutIPv4(frame[l3:], uint16(packet.IPv4Len+n), g.DSCP<<2, hopLimit, e.proto, uint32(e.src.Lo), uint32(e.dst.Lo))
	}
	return frame, at
}
