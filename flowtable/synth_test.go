package flowtable

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit/synth"
)

// gateway is two workers' tables, of which each sees the frames of one port.
type gateway struct {
	pairing *Pairing
	tables  [2]*Table
	head    [synth.HeadLen]byte
	index   [1]Index
	key     [1]Key
}

const synthEpoch = 1e9

func newGateway(t testing.TB, flows int) *gateway {
	t.Helper()
	p, err := NewPairing(make([]byte, PairingSize(2*flows)), PairingConfig{Flows: 2 * flows, Peers: []int{1, 0}, Aging: 60e9, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	g := &gateway{pairing: p}
	for i := range g.tables {
		g.tables[i], err = New(make([]byte, Size(flows)), Config{Capacity: flows, Aging: 60e9, Seed: uint64(i), Pairing: p})
		if err != nil {
			t.Fatal(err)
		}
	}
	return g
}

// take shows the gateway a packet, and returns its flow.
func (g *gateway) take(e *synth.Event) (*Table, Index) {
	p := &e.Packet
	table := g.tables[e.From]
	k := &g.key[0]
	*k = Key{Src: p.Src, Dst: p.Dst, DestQP: p.DestQP, SourceQP: p.SourceQP, Port: uint16(e.From), OuterVID: p.OuterVID}
	if p.Opcode == packet.CNP {
		table.ObserveCNP(k)
		return table, None
	}
	now := synthEpoch + e.Time
	table.Lookup(g.key[:], now, g.index[:])
	b := g.head[:synth.Head(e, g.head[:])]
	if m, ok := packet.CMMessage(b, p); ok {
		table.ObserveCM(k, &m, now)
	} else {
		observe(table, g.index[0], p, b, now)
	}
	return table, g.index[0]
}

// knows tells whether the flow that e's packet answers is confirmed with the QP that the packet goes to.
func (g *gateway) knows(e *synth.Event) bool {
	p := &e.Packet
	v, ok := g.tables[1-e.From].Find(&Key{Src: p.Dst, Dst: p.Src, DestQP: e.SourceQP, Port: uint16(1 - e.From), OuterVID: p.OuterVID})
	return ok && v.State == Confirmed && v.Ended == Open && v.SourceQP == p.DestQP
}

// score is what came of a run.
type score struct {
	flows, confirmed int // those of connections that are seen both ways, with at least minPackets, and that can be told apart
	wrong            int // packets whose flow was confirmed with another QP than theirs
	took             []uint32
	by               [Evidences]int
	stats            Stats
	why              string
}

func (s *score) recall() float64 { return float64(s.confirmed) / float64(max(s.flows, 1)) }

func (s *score) String() string {
	slices.Sort(s.took)
	median, p99 := uint32(0), uint32(0)
	if n := len(s.took); n > 0 {
		median, p99 = s.took[n/2], s.took[n*99/100]
	}
	return fmt.Sprintf("%d flows, %.4f confirmed, %d wrong, took %d (p99 %d), by %v, contradictions %d, reuses %d, skipped %d %s",
		s.flows, s.recall(), s.wrong, median, p99, s.by, s.stats.Contradictions, s.stats.Reuses, s.stats.Skipped, s.why)
}

func (s *score) add(o *score) {
	s.flows, s.confirmed, s.wrong = s.flows+o.flows, s.confirmed+o.confirmed, s.wrong+o.wrong
	s.took = append(s.took, o.took...)
	for i := range s.by {
		s.by[i] += o.by[i]
	}
	s.stats.Contradictions += o.stats.Contradictions
	s.stats.Reuses += o.stats.Reuses
	s.stats.Skipped += o.stats.Skipped
	if s.why == "" {
		s.why = o.why
	}
}

// progress is what has become of one direction of a connection.
type progress struct {
	packets, took uint32
	by            Evidence
}

// minPackets is what a flow must have been seen of for its recall to count.
const minPackets = 4

// learn runs traffic past a gateway, and compares what it learns with the truth at every packet.
func learn(t testing.TB, c synth.Config) *score {
	t.Helper()
	flows := max(c.Connections, 256) * max(1, c.Tenants) * (c.Generations + 1) * 2
	g := newGateway(t, flows+1024)
	traffic := synth.New(c)
	s := &score{}
	var seen [][2]progress
	for e, ok := traffic.Next(); ok; e, ok = traffic.Next() {
		table, x := g.take(&e)
		if x == None || e.Forged || e.MAD != nil || e.Packet.SourceQP != 0 {
			continue
		}
		for int(e.Conn) >= len(seen) {
			seen = append(seen, [2]progress{})
		}
		p := &seen[e.Conn][e.From]
		p.packets++
		qp, ok := table.SourceQP(x)
		if ok && qp != e.SourceQP {
			if s.wrong++; s.why == "" {
				s.why = fmt.Sprintf("\n  first wrong: %+v is said to come from %d by %v, comes from %d; connection %+v",
					e.Packet, qp, table.Evidence(x), e.SourceQP, traffic.Conns()[e.Conn])
			}
		}
		if ok && qp == e.SourceQP && p.took == 0 {
			p.took, p.by = p.packets, table.Evidence(x)
			if back := &seen[e.Conn][1-e.From]; back.took == 0 && back.packets > 0 && g.knows(&e) {
				back.took, back.by = back.packets, p.by
			}
		}
	}
	conns := traffic.Conns()
	same := map[uint16]int{}
	for i := range conns {
		same[conns[i].Port[0]]++
	}
	for i := range seen {
		if c.StartPSN != synth.PSNRandom && c.Ports != synth.PortsSymmetric && same[conns[i].Port[0]] > 1 {
			continue // can't be told from the other one with the port
		}
		if !conns[i].Seen[0] || !conns[i].Seen[1] || conns[i].Start == math.MaxInt64 {
			continue
		}
		for end := range 2 {
			p := &seen[i][end]
			if p.packets < minPackets || seen[i][1-end].packets < minPackets {
				continue
			}
			s.flows++
			if p.took > 0 {
				s.confirmed++
				s.took = append(s.took, p.took)
				s.by[p.by]++
			}
		}
	}
	for _, table := range g.tables {
		table.Sweep(synthEpoch)
		one := table.Stats()
		s.stats.Contradictions += one.Contradictions
		s.stats.Reuses += one.Reuses
		s.stats.Skipped += one.Skipped
	}
	return s
}
