package dataplane_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/internal/burst/inmem"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/prefix"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/pairing"
)

// member is a sender of a crowd.
type member struct {
	rate     float64 // that it offers, bytes/ns
	qps      int     // 0: datagrams, each to another QP
	together int     // packets of one QP at once, then the next one's
	spoofs   bool    // every eighth packet has an address that no other has
	obeys    bool
	size     int // bytes of a packet

	header []byte
	next   float64 // when its next packet comes, ns
	sent   int     // packets
	pace   float64 // the part of its rate that it sends: less than 1 after a notification to one that obeys
	asked  int
	first  int64 // when it was asked first, ns
}

// crowd is some senders in front of one line, in virtual time: a whole gateway, which gets only the headers of packets.
type crowd struct {
	*testkit.Rig
	t        testkit.T
	members  []member
	line     float64 // bytes/ns
	capacity int
	depth    uint64                        // in the last half of the time, the most
	heard    func(m *member, s inmem.Sent) // a notification; nil: nobody listens
}

const gigabit = 0.125 // bytes/ns

// newCrowd is a crowd in front of a line of a rate (bytes/ns) and a queue of a capacity (bytes).
func newCrowd(t testkit.T, workers int, line float64, capacity, frames int, members ...member) *crowd {
	return newCrowdWith(func(*testkit.Setup) {}, t, workers, line, capacity, frames, members...)
}

// newCrowdWith is newCrowd with another setup.
func newCrowdWith(change func(*testkit.Setup), t testkit.T, workers int, line float64, capacity, frames int, members ...member) *crowd {
	c := &crowd{t: t, members: members, line: line, capacity: capacity}
	rate := uint64(8e9 * line)
	p := notifying(byAnything...)
	p.Ports[wan].Law = congestion.NewLaw(rate, uint64(capacity), 0)
	setup := testkit.Setup{Workers: workers, Policy: p, Rate: rate, Capacity: uint64(capacity), Frames: frames, Buffers: 2*frames + 4096, BufferSize: 128, Burst: 64, Flows: 1 << 15, Sent: c.sent}
	change(&setup)
	c.Rig = testkit.New(t, setup)
	for i := range members {
		m := &c.members[i]
		f := data(true, 0)
		f.Src = fmt.Sprintf("fd00:18::1:%x", i+1)
		if m.qps == 0 {
			f.Opcode, f.SourceQP = packet.UDSendOnly, 77
		}
		f.Size = 0
		m.header, m.pace, m.next, m.first = f.Frame(), 1, float64(c.Now), math.MaxInt64
		m.together = max(m.together, 1)
	}
	return c
}

// sent finds the notifications among the frames that the gateway sends.
func (c *crowd) sent(_ int, s inmem.Sent) {
	const to = packet.EthernetLen + 24 // destination of an IPv6 packet
	if !s.Built || s.Port != fabric || s.Octets[to+11] != 0 {
		return
	}
	m := &c.members[binary.BigEndian.Uint32(s.Octets[to+12:])&0xffff-1]
	m.asked++
	m.first = min(m.first, c.Now)
	if c.heard != nil {
		c.heard(m, s)
	}
	if m.obeys {
		m.pace = max(m.pace/2, 0.01)
	}
}

// packets sends the packets of a member that are due.
func (c *crowd) packets(m *member, now float64) {
	for m.next <= now {
		for range m.together {
			qp := m.sent
			if m.qps > 0 {
				qp = m.sent / m.together % m.qps
			}
			const source, bth = packet.EthernetLen + 8, packet.EthernetLen + packet.IPv6Len + packet.UDPLen
			binary.BigEndian.PutUint32(m.header[bth+4:], uint32(100+qp)&0xffffff)
			if binary.BigEndian.PutUint32(m.header[source+8:], 0); m.spoofs && m.sent%8 == 0 {
				binary.BigEndian.PutUint32(m.header[source+8:], uint32(m.sent)<<8|1)
			}
			c.InjectCut(c.t, qp%len(c.Backends), fabric, m.header, uint32(m.size))
			m.sent++
		}
		m.next += float64(m.together*(m.size+24)) / (m.rate * m.pace)
		m.pace = min(1, m.pace+0.02)
	}
}

// run runs the crowd for a time, ns.
func (c *crowd) run(ns int64) {
	until := c.Now + ns
	for c.Now < until {
		for i := range c.members {
			c.packets(&c.members[i], float64(c.Now))
		}
		c.Settle()
		if until-c.Now < ns/2 {
			c.depth = max(c.depth, c.Plane.Port(wan).Depth[0])
		}
		c.Advance(2000)
	}
}

// TestHidingSenders: however a sender spreads more than its share over QPs, it is the one that is asked, and not those beside it that have less.
func TestHidingSenders(t *testing.T) {
	for name, greedy := range map[string]member{
		"300 slow QPs":        {qps: 300},
		"60 QPs in rotation":  {qps: 60, together: 7},
		"datagrams":           {},
		"spoofs":              {qps: 300, spoofs: true},
		"160 slow QPs, obeys": {qps: 160, obeys: true},
		"one QP":              {qps: 1},
	} {
		t.Run(name, func(t *testing.T) {
			greedy.rate, greedy.size = 1.25*gigabit, 4096
			c := newCrowd(t, 1, gigabit, 4_000_000, 1<<14, greedy, member{rate: 0.015 * gigabit, qps: 1, size: 1024}, member{rate: 0.1 * gigabit, qps: 1, size: 1024})
			c.run(60_000_000)
			for _, m := range c.members[1:] {
				if m.asked > 0 {
					t.Errorf("one with %.0f Mbit/s was asked %d times", m.rate/gigabit*1000, m.asked)
				}
			}
			if n := c.members[0].asked; n < 10 {
				t.Errorf("the greedy one was asked %d times", n)
			}
			if greedy.obeys && c.depth == 4_000_000 {
				t.Error("the queue is full, though the greedy one obeys")
			}
			c.Drain()
			c.Close(t)
		})
	}
}

// TestFairBetweenFlows: a sender of ten QPs has the most, and each of its flows the least. Between senders it is asked, and nobody else; between flows the others are, and it isn't. Slow
// QPs are no way to more in either case.
func TestFairBetweenFlows(t *testing.T) {
	for _, c := range []struct {
		name       string
		flows      bool
		qps        int
		many, less bool // whether the sender of many QPs is asked, and those of one
	}{
		{"senders", false, 10, true, false},
		{"flows", true, 10, false, true},
		{"senders, slow QPs", false, 300, true, false},
		{"flows, slow QPs", true, 300, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			of := func(part float64, qps int) member { return member{rate: part * gigabit, qps: qps, size: 1024} }
			g := newCrowdWith(func(s *testkit.Setup) { s.Policy.Ports[wan].Law.ByFlow = c.flows }, t, 1, gigabit, 4_000_000, 1<<14, of(0.57, c.qps), of(0.26, 1), of(0.22, 1))
			g.run(150_000_000)
			for i, want := range []bool{c.many, c.less, c.less} {
				if n := g.members[i].asked; (n >= 10) != want || (n > 0) != want {
					t.Errorf("sender %d was asked %d times, expected that: %v", i, n, want)
				}
			}
			g.Drain()
			g.Close(t)
		})
	}
}

// TestRotatingQPs: a sender that rotates over QPs, or sends datagrams to another QP each, is asked for a rate as one with a single QP is, and each notification names a QP that sends now: one that has just come, and not
// the one that was asked before.
func TestRotatingQPs(t *testing.T) {
	const first, behind = 100, 50_000 // QPs of the receiver, and how far the sender's are above them
	for name, m := range map[string]member{
		"60 QPs, bursts of 7":   {qps: 60, together: 7},
		"300 QPs":               {qps: 300},
		"10 QPs, bursts of 100": {qps: 10, together: 100},
		"datagrams":             {},
	} {
		t.Run(name, func(t *testing.T) {
			m.rate, m.size = 1.25*gigabit, 4096
			var pairs []pairing.QPPair
			for qp := range uint32(m.qps) {
				pairs = append(pairs, pairing.QPPair{Source: address("fd00:18::1:1"), Destination: address(data(true, 0).Dst), SourceQP: first + qp + behind, DestinationQP: first + qp})
			}
			static, err := pairing.NewQPMap(pairs, 1)
			if err != nil {
				t.Fatal(err)
			}
			c := newCrowdWith(func(s *testkit.Setup) {
				s.Static = static
				s.Policy.Who.Endpoints = prefix.New([]prefix.Entry[congestion.Preference]{grant("fd00:18::/32", packet.LongHaulCNP)})
			}, t, 1, gigabit, 4_000_000, 1<<14, m, member{rate: 0.1 * gigabit, qps: 1, size: 1024})
			late := 0
			c.heard = func(m *member, s inmem.Sent) {
				_, p := kindOf(testkit.Sent{Octets: s.Octets, Length: s.Length})
				now := 77 // of the datagrams
				if m.qps > 0 {
					now = first + behind + (m.sent-1)/m.together%m.qps
				}
				if int(p.DestQP) != now {
					late++
				}
			}
			c.run(60_000_000)
			if rotating, other := &c.members[0], &c.members[1]; rotating.asked < 10 || other.asked > 0 || late > 0 {
				t.Errorf("asked %d times, of these %d for a QP that doesn't send; the other sender %d times", rotating.asked, late, other.asked)
			}
			c.Drain()
			c.Close(t)
		})
	}
}
