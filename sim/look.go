package sim

import (
	"encoding/binary"

	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/telemetry"
)

// Passage is a notification, or a receiver's CNP, on one link. Times are ns since the simulation began.
type Passage struct {
	ID      uint64 // of the notification on its whole way
	Built   bool   // by a gateway; else it is a receiver's CNP
	From    int    // node
	To      int    // node
	Sent    int64  // when its first bit leaves
	Arrives int64  // when its last bit arrives; -1: the link loses it
	Frame   []byte // headers; they belong to the simulation
	Length  int    // bytes without FCS
}

// notices follow notifications through the network.
type notices struct {
	passed func(*Passage) // nil: nobody wants to know
	last   uint64         // ID
	known  map[int32]notice
	inside map[string]notice // by headers: in a gateway
}

// notice is what is known of a notification.
type notice struct {
	id    uint64
	built bool
}

// mostInside bounds notices.inside: a gateway may keep what it gets.
const mostInside = 1 << 12

func newNotices(passed func(*Passage)) notices {
	return notices{passed: passed, known: map[int32]notice{}, inside: map[string]notice{}}
}

// begin gives a notification a new ID.
func (n *notices) begin(f int32, built bool) {
	n.last++
	n.known[f] = notice{n.last, built}
}

// enter notes that a gateway gets a frame.
func (l *lines) enter(f int32) {
	if b := l.store.bytes(f); l.passed != nil && isNotification(b) && len(l.inside) < mostInside {
		l.inside[string(b)] = l.known[f]
	}
}

// leaves notes that a gateway sends a frame, which it has built or got.
func (l *lines) leaves(f int32, built bool) {
	if l.passed == nil {
		return
	}
	b := l.store.bytes(f)
	if found, ok := l.inside[string(b)]; ok && !built {
		delete(l.inside, string(b))
		l.known[f] = found
		return
	}
	if isNotification(b) {
		l.begin(f, built)
	}
}

// pass reports a frame that is put on the line of a port, if it is a notification.
func (l *lines) pass(n, f int32, now, arrives int64) {
	b := l.store.bytes(f)
	if !isNotification(b) {
		return
	}
	p := &l.ports[n]
	if l.kinds[p.node] == HostNode {
		l.begin(f, false)
	}
	if arrives > 0 {
		arrives -= epoch
	}
	l.passed(&Passage{
		ID: l.known[f].id, Built: l.known[f].built, From: int(p.node), To: int(l.ports[p.peer].node), Sent: now - epoch, Arrives: arrives,
		Frame: b, Length: int(l.store.at(f).length),
	})
}

// isNotification recognises notifications: IPv6 packets other than RoCEv2 without extension headers, and CNPs. Hosts send nothing else.
func isNotification(b []byte) bool {
	if len(b) < atL4+packet.UDPLen || binary.BigEndian.Uint16(b[atEtherType:]) != packet.EtherTypeIPv6 {
		return false
	}
	switch b[atNext] {
	case packet.ProtoUDP:
		return binary.BigEndian.Uint16(b[atL4+2:]) != packet.RoCEv2Port || isCNP(b)
	case packet.ProtoICMPv6:
		return true
	case packet.ProtoDestOpts:
		return true
	}
	return false
}

// Line is one direction of a link: the frames that wait for it, and those on it.
type Line struct {
	From, To int   // nodes
	Waiting  int64 // bytes of data that wait at a switch or a gateway
	Paced    int64 // bytes that a gateway holds back in front of its queue
	Flying   int64 // bytes
}

// Lines describes all links, in their order, each from A to B and then from B to A. It reuses the memory of `to`.
func (s *Sim) Lines(to []Line) []Line {
	to = to[:0]
	for i := range s.ports {
		p := &s.ports[i]
		l := Line{From: int(p.node), To: int(s.ports[p.peer].node), Waiting: p.queues[classData].bytes, Flying: p.flight.bytes}
		if s.kinds[p.node] == GatewayNode {
			stats := s.gateways[s.of[p.node]].plane.Port(s.portNumber[i])
			for _, depth := range stats.Depth {
				l.Waiting += int64(depth)
			}
			l.Paced = int64(stats.PacedBytes)
		}
		to = append(to, l)
	}
	return to
}

// Gateway is the dataplane of a node, nil if the node is no gateway. Between two calls of Run, its workers are at rest.
func (s *Sim) Gateway(node int) *dataplane.Dataplane {
	if s.kinds[node] != GatewayNode {
		return nil
	}
	return s.gateways[s.of[node]].plane
}

// lost is the number of packets that were lost so far: dropped at a full queue, or on a link.
func (s *Sim) lost() int64 {
	n := s.noBuffer + s.unroutable
	for i := range s.ports {
		n += s.ports[i].stats.Dropped.Frames + s.ports[i].stats.Lost.Frames
	}
	for _, g := range s.gateways {
		for port := range g.ports {
			stats := g.plane.Port(port)
			for _, counter := range drops {
				n += stats.Count[counter]
			}
		}
	}
	return int64(n)
}

// drops are the counters of packets that a gateway drops.
var drops = func() (all []int) {
	for n := range counters.Catalogue {
		if counters.Catalogue[n].Metric == telemetry.DroppedPackets {
			all = append(all, n)
		}
	}
	return all
}()
