package replay

import (
	"encoding/binary"
	"fmt"
	"net"
	"slices"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/health"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// macs finds hosts whose packets pass with two MAC addresses. A host's packets come from its own as long as no router has passed them on, which their hop limit tells.
// If they come from two, or packets to it go to another one, too, then two hosts have its IP address, or it has two NICs (a bond). A MAC address that several IP addresses
// have is a router's, and tells nothing; nor does none, as of a virtual mirror.
type macs struct {
	latest [][2]uint64 // of a flow's packets, source and destination, by its index
	hosts  map[host]*neighbour
	owners map[owner]packet.Addr // by MAC address; the zero value: several
}

type host struct {
	addr  packet.Addr
	scope packet.Scope
	place int
}

type owner struct {
	mac   uint64
	place int
}

// neighbour is what is known of a host: the MAC addresses of its packets, and of those to it.
type neighbour struct {
	from, to [2]uint64
	routed   bool // its packets have passed a router
}

// mostNeighbours bounds the hosts.
const mostNeighbours = 1 << 16

// note notes a packet of a flow. b is the frame of which p was parsed.
func (m *macs) note(b []byte, p *packet.Parsed, flow flowtable.Index, capacity, place int) {
	if p.Outer != p.L3 || p.Src == p.Dst || p.Family == 4 && int(p.L3)+8 >= len(b) || p.Family == 6 && int(p.L3)+7 >= len(b) {
		return
	}
	if m.latest == nil {
		m.latest, m.hosts, m.owners = make([][2]uint64, capacity+1), map[host]*neighbour{}, map[owner]packet.Addr{}
	}
	to, from := binary.BigEndian.Uint64(b)>>16, binary.BigEndian.Uint64(b[packet.EthernetLen-8:])>>16
	if now := [2]uint64{from, to}; m.latest[flow] != now && len(m.hosts) < mostNeighbours {
		m.latest[flow] = now
		hops := b[p.L3+7]
		if p.Family == 4 {
			hops = b[p.L3+8]
		}
		scope := packet.ScopeOf(0, p).Named()
		src := m.host(host{p.Src, scope, place})
		src.routed = src.routed || !slices.Contains([]uint8{64, 128, 255}, hops) // what hosts begin with
		m.has(&src.from, from, p.Src, place)
		m.has(&m.host(host{p.Dst, scope, place}).to, to, p.Dst, place)
	}
}

func (m *macs) host(k host) *neighbour {
	if m.hosts[k] == nil {
		m.hosts[k] = &neighbour{}
	}
	return m.hosts[k]
}

// has notes that an address has a MAC address.
func (m *macs) has(all *[2]uint64, mac uint64, addr packet.Addr, place int) {
	switch {
	case mac == 0 || slices.Contains(all[:], mac):
	case all[0] == 0:
		all[0] = mac
	case all[1] == 0:
		all[1] = mac
	}
	k := owner{mac, place}
	if before, known := m.owners[k]; !known {
		m.owners[k] = addr
	} else if before != addr {
		m.owners[k] = packet.Addr{}
	}
}

// notes are those about hosts with two MAC addresses.
func (m *macs) notes() (all []health.Note) {
	own := func(k host, mac uint64) bool { return mac != 0 && m.owners[owner{mac, k.place}] == k.addr }
	for k, n := range m.hosts {
		name := func(mac uint64) string {
			return net.HardwareAddr(binary.BigEndian.AppendUint64(nil, mac)[2:]).String()
		}
		text := ""
		switch other := n.to[0] ^ n.to[1] ^ n.from[0]; {
		case n.routed || !own(k, n.from[0]):
		case own(k, n.from[1]):
			text = fmt.Sprintf("its packets come from %s and %s", name(n.from[0]), name(n.from[1]))
			if n.to[0] != 0 && n.to[1] == 0 {
				text += fmt.Sprintf(", and all that is sent to it goes to %s", name(n.to[0]))
			}
		case n.from[1] == 0 && slices.Contains(n.to[:], n.from[0]) && own(k, other):
			text = fmt.Sprintf("its packets come from %s, but some of those to it go to %s", name(n.from[0]), name(other))
		}
		if text != "" {
			all = append(all, health.Note{Name: health.NoteMACs, Subject: k.addr.Netip().String(), Text: text + ": two hosts have this address (arping -D), or one has two NICs; what the wrong one gets isn't answered"})
		}
	}
	return all
}
