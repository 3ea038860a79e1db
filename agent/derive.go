package agent

import (
	"cmp"
	"net/netip"

	"github.com/cnpgate/cnpgate/fleet"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/rdma"
)

// MaxHints bounds the hints of a host, and so the agent's memory: about 64 MiB. A gateway takes 65,536 of all hosts together.
const MaxHints = 1 << 17

// Snapshot is what the kernel says of a host's connections at a time.
type Snapshot struct {
	Devices   []rdma.Device
	QPs       []rdma.QP
	CMIDs     []rdma.CMID
	Addresses map[Port][]netip.Addr // of each port that a QP has
}

// Port is a port of an RDMA device.
type Port struct{ Device, Number uint32 }

// Left counts the connected QPs without a hint.
type Left struct {
	NoAddress int // their port has no address that RoCEv2 packets could have
	Ambiguous int // another QP of the host is connected to a QP of the same number, and nothing tells the two hosts apart
	Local     int // they are connected to the host itself: no gateway sees their packets
	TooMany   int // beyond MaxHints
}

// sending is what the packets of a QP show of it where the destination's address is unknown.
type sending struct {
	source netip.Addr
	qp     uint32 // destination QP
}

// Derive makes the hints of a snapshot. RDMA-CM knows both addresses of its QPs. For another QP there is a hint without a destination for each
// address of its port, as the kernel doesn't say which one it uses, but only where no other QP of the host sends to a QP of the same number.
func Derive(s *Snapshot) (hints []fleet.Hint, left Left) {
	type qp struct{ device, number uint32 }
	known := make(map[qp]*rdma.CMID, len(s.CMIDs))
	for i := range s.CMIDs {
		c := &s.CMIDs[i]
		known[qp{c.Device, c.QP}] = c
	}
	own := map[netip.Addr]bool{}
	for _, addresses := range s.Addresses {
		for _, a := range addresses {
			own[a] = true
		}
	}
	senders := make(map[sending]int, len(s.QPs)) // number of QPs
	for i := range s.QPs {
		if q := &s.QPs[i]; connected(q) {
			for _, a := range sources(s, q, known[qp{q.Device, q.Local}]) {
				senders[sending{a, q.Remote}]++
			}
		}
	}
	for i := range s.QPs {
		q := &s.QPs[i]
		if !connected(q) {
			continue
		}
		id := known[qp{q.Device, q.Local}]
		from := sources(s, q, id)
		switch {
		case len(from) == 0:
			left.NoAddress++
		case len(hints)+len(from) > MaxHints:
			left.TooMany++
		case id != nil && own[id.Destination]:
			left.Local++
		case id != nil && id.Destination.IsValid():
			hints = append(hints, fleet.Hint{Source: id.Source, Destination: id.Destination, SourceQP: q.Local, DestinationQP: q.Remote})
		default:
			n := len(hints)
			for _, a := range from {
				if senders[sending{a, q.Remote}] == 1 {
					hints = append(hints, fleet.Hint{Source: a, SourceQP: q.Local, DestinationQP: q.Remote})
				}
			}
			if len(hints) == n {
				left.Ambiguous++
			}
		}
	}
	return hints, left
}

func connected(q *rdma.QP) bool {
	return q.Connected() && packet.ConnectionQP(q.Local) && packet.ConnectionQP(q.Remote)
}

// sources are the addresses that a QP's packets may come from; id is its RDMA-CM ID, or nil.
func sources(s *Snapshot, q *rdma.QP, id *rdma.CMID) []netip.Addr {
	if id != nil && usable(id.Source) {
		return []netip.Addr{id.Source}
	}
	return s.Addresses[Port{q.Device, q.Port}]
}

func usable(a netip.Addr) bool { return a.IsValid() && !a.IsUnspecified() && !a.IsLinkLocalUnicast() }

// compare orders hints.
func compare(a, b fleet.Hint) int {
	return cmp.Or(a.Source.Compare(b.Source), a.Destination.Compare(b.Destination), cmp.Compare(a.DestinationQP, b.DestinationQP), cmp.Compare(a.SourceQP, b.SourceQP))
}
