package replay

import (
	"encoding/binary"
	"fmt"

	"github.com/cnpgate/cnpgate/health"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// unreachable counts ICMP errors (RFC 792, RFC 4443 3) about RoCEv2 packets: routers and hosts that say why they discard them.
type unreachable map[unreachableKey]uint64

type unreachableKey struct {
	says     packet.Addr // who
	from, to packet.Addr // of the packet
	why      complaint
	mtu      uint32
}

// complaint is what an ICMP error says, by its type and code.
type complaint uint8

const (
	noComplaint complaint = iota
	noRoute
	noPort
	prohibited
	tooBig
	looping
)

var complaints = [...]struct{ says, advice string }{
	noRoute:    {"it has no route to the destination, or the host doesn't answer ARP or ND", "check the routes there, and that the host is up"},
	noPort:     {"nothing receives UDP port 4791 at the destination", "the host has no RoCEv2 at this address: check the GID index and the address that the application chose, and that the RDMA driver is loaded"},
	prohibited: {"a filter prohibits it", "permit UDP port 4791 there"},
	tooBig:     {"it is too large for a link", "raise the MTU of that link, or lower the path MTU of the QP (the interface's MTU at both hosts)"},
	looping:    {"its TTL or hop limit has run out", "raise that with which it was sent, if it is small (hop_limit in ibv_modify_qp); else look for a routing loop"},
}

// mostUnreachable bounds the kinds.
const mostUnreachable = 1 << 12

// note reads a packet that isn't RoCEv2 in the last pass.
func (s *unreachable) note(b []byte, p *packet.Parsed) {
	if p.Kind != packet.IP || int(p.L4)+packet.ICMPLen > len(b) || p.L4 == 0 {
		return
	}
	const mtuLen = 4
	m := b[p.L4:]
	key, quoted := unreachableKey{says: p.Src}, m[packet.ICMPLen:]
	switch p.Proto {
	case packet.ProtoICMP:
		key.why = complaintOf4(m[0], m[1])
		key.mtu = uint32(binary.BigEndian.Uint16(m[6:]))
	case packet.ProtoICMPv6:
		key.why = complaintOf6(m[0], m[1])
		key.mtu = binary.BigEndian.Uint32(m[packet.ICMPLen-mtuLen:])
	}
	if key.why != tooBig {
		key.mtu = 0
	}
	var ok bool
	if key.from, key.to, ok = aboutRoCE(quoted, p.Family); key.why == noComplaint || !ok {
		return
	}
	if *s == nil {
		*s = unreachable{}
	}
	if _, known := (*s)[key]; known || len(*s) < mostUnreachable {
		(*s)[key]++
	}
}

func complaintOf4(kind, code uint8) complaint {
	const destination, exceeded = 3, 11
	switch {
	case kind == exceeded && code == 0:
		return looping
	case kind != destination:
		return noComplaint
	}
	switch code {
	case 2, 3:
		return noPort
	case 4:
		return tooBig
	case 9, 10, 13:
		return prohibited
	}
	return noRoute
}

func complaintOf6(kind, code uint8) complaint {
	const destination, big, exceeded = 1, 2, 3
	switch {
	case kind == big:
		return tooBig
	case kind == exceeded && code == 0:
		return looping
	case kind != destination:
		return noComplaint
	}
	switch code {
	case 1, 5:
		return prohibited
	case 4:
		return noPort
	}
	return noRoute
}

// aboutRoCE reads the part of a packet that an ICMP error quotes; ok: it is a RoCEv2 packet.
func aboutRoCE(b []byte, family uint8) (from, to packet.Addr, ok bool) {
	const protocol4, source4, protocol6, source6 = 9, 12, 6, 8
	var udp int
	switch {
	case family == 4 && len(b) >= packet.IPv4Len && b[protocol4] == packet.ProtoUDP:
		from, to, udp = packet.AddrFrom4(b[source4:]), packet.AddrFrom4(b[source4+4:]), int(b[0]&15)*4
	case family == 6 && len(b) >= packet.IPv6Len && b[protocol6] == packet.ProtoUDP:
		from, to, udp = packet.AddrFrom16(b[source6:]), packet.AddrFrom16(b[source6+16:]), packet.IPv6Len
	default:
		return from, to, false
	}
	return from, to, udp+4 <= len(b) && binary.BigEndian.Uint16(b[udp+2:]) == packet.RoCEv2Port
}

// verdicts are those about discarded packets.
func (s unreachable) verdicts() (all []health.Verdict) {
	for key, n := range s {
		c := complaints[key.why]
		what := c.says
		if key.mtu > 0 {
			what += fmt.Sprintf(" with an MTU of %d", key.mtu)
		}
		all = append(all, health.Verdict{
			Name: health.Unreachable, Subject: fmt.Sprintf("%v -> %v", key.from.Netip(), key.to.Netip()), Weight: n, Advice: c.advice,
			Evidence: fmt.Sprintf("%v says by ICMP of %d packets that it discarded them: %s", key.says.Netip(), n, what),
		})
	}
	return all
}
