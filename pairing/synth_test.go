package pairing

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit/synth"
)

// worker is a flow table and its learner.
type worker struct {
	*flowtable.Table
	*Learner
	ended func(k *flowtable.Key, v Description)
}

func (w *worker) Begin(x flowtable.Index) { w.Learner.Begin(x) }

func (w *worker) End(x flowtable.Index, why flowtable.Ending) {
	if w.ended != nil {
		v := w.Describe(x)
		if why != flowtable.Renewed {
			v.Answer = v.closed(EndedAged)
		}
		w.ended(w.Key(x), v)
	}
	w.Learner.End(x)
}

// Sweep does what a worker does once a step.
func (w *worker) Sweep(now int64) {
	w.Table.Sweep(now)
	w.Learner.Sweep()
}

// find returns what a reader finds about a flow.
func (w *worker) find(k *flowtable.Key) (a Answer, ok bool) {
	_, s, ok := w.Find(k)
	return Answer(s.Answer()), ok
}

func newWorker(t testing.TB, p *Pairing, flows int, seed uint64) *worker {
	t.Helper()
	w := &worker{}
	var err error
	if w.Table, err = flowtable.New(make([]byte, flowtable.Size(flows)), flowtable.Config{Capacity: flows, Aging: 60e9, Seed: seed, Observer: w}); err != nil {
		t.Fatal(err)
	}
	if w.Learner, err = p.Join(w.Table, make([]byte, LearnerSize(flows, p.flows))); err != nil {
		t.Fatal(err)
	}
	return w
}

// gateway is two workers. Each sees the frames of one port.
type gateway struct {
	pairing *Pairing
	workers [2]*worker
	head    [synth.HeadLen]byte
	flow    [1]flowtable.Ref
	key     [1]flowtable.Key
	back    packet.Parsed
	scope   func(port uint16, p *packet.Parsed) packet.Scope // of a packet that comes in by a port; nil: its VLAN
}

const synthEpoch = 1e9

func newGateway(t testing.TB, flows int) *gateway {
	t.Helper()
	p, err := New(make([]byte, Size(2*flows)), Config{Flows: 2 * flows, Egress: []int{1, 0}, Aging: 60e9, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	g := &gateway{pairing: p}
	for i := range g.workers {
		g.workers[i] = newWorker(t, p, flows, uint64(i))
	}
	return g
}

// lookup finds the flows of packets with these keys.
func (w *worker) lookup(keys []flowtable.Key, now int64, out []flowtable.Ref) {
	var packets [burst.MaxSize]packet.Record // on the stack, so that tests can count allocations
	for at := 0; at < len(keys); at += burst.MaxSize {
		n := min(len(keys)-at, burst.MaxSize)
		for i := range n {
			packets[i].Flow = keys[at+i].Words()
		}
		w.Lookup(packets[:n], now, out[at:at+n])
	}
}

// observe passes a packet to the learner like the dataplane: Observe gets the packets at which Routine stops.
func (w *worker) observe(x flowtable.Index, k *flowtable.Key, p *packet.Parsed, b []byte, now int64) {
	var r packet.Record
	r.Set(p)
	r.Flow.QPs = uint64(p.DestQP) | uint64(p.SourceQP)<<32
	if w.Routine([]flowtable.Ref{{Index: x}}, []packet.Record{r}, 0) == 0 {
		w.Observe(x, k, p, b, now)
	}
}

// keyOf is the key of a packet that comes in by a port.
func (g *gateway) keyOf(port int, p *packet.Parsed) flowtable.Key {
	k := flowtable.Key{Src: p.Src, Dst: p.Dst, DestQP: p.DestQP, SourceQP: p.SourceQP, Port: uint16(port), OuterTag: p.OuterTag}
	if g.scope != nil {
		k.SetScope(g.scope(k.Port, p))
	}
	return k
}

// show passes a packet to the gateway, and returns its worker and flow.
func (g *gateway) show(e *synth.Event) (*worker, flowtable.Index) {
	p := &e.Packet
	w, k := g.workers[e.From], &g.key[0]
	*k = g.keyOf(int(e.From), p)
	now := synthEpoch + e.Time
	w.StartBurst()
	b := g.head[:synth.Head(e, g.head[:])]
	if p.Opcode == packet.CNP {
		w.Observe(flowtable.None, k, p, b, now)
		return w, flowtable.None
	}
	w.lookup(g.key[:], now, g.flow[:])
	w.observe(g.flow[0].Index, k, p, b, now)
	return w, g.flow[0].Index
}

// knows reports whether the flow that e's packet answers is confirmed with the QP that the packet goes to.
func (g *gateway) knows(e *synth.Event) bool {
	p := &e.Packet
	g.back.Src, g.back.Dst, g.back.DestQP, g.back.OuterTag = p.Dst, p.Src, e.SourceQP, p.OuterTag
	k := g.keyOf(1-int(e.From), &g.back)
	a, ok := g.workers[1-e.From].find(&k)
	return ok && a.Usable() && a.SourceQP() == p.DestQP
}

// score is the result of a run.
type score struct {
	packets          int
	flows, confirmed int // those of connections that are seen both ways, with at least minPackets, and that are distinguishable
	wrong            int // packets whose flow was confirmed with another QP than theirs
	took             []uint32
	by               [Evidences]int
	live, unknown    int64 // ns that flows lived after they were confirmed first, and in which they were not known then
	own, ownUnknown  int   // genuine packets of flows after they were confirmed first, and those whose flow was not known then
	stats            Stats
	why              string
}

func (s *score) recall() float64 { return float64(s.confirmed) / float64(max(s.flows, 1)) }

// forgotten is the share of time in which live flows that were confirmed once were not known.
func (s *score) forgotten() float64 { return float64(s.unknown) / float64(max(s.live, 1)) }

// missed is the share of the genuine packets of flows that were confirmed once, for which no notification could have been sent.
func (s *score) missed() float64 { return float64(s.ownUnknown) / float64(max(s.own, 1)) }

func (s *score) String() string {
	slices.Sort(s.took)
	median, p99 := uint32(0), uint32(0)
	if n := len(s.took); n > 0 {
		median, p99 = s.took[n/2], s.took[n*99/100]
	}
	return fmt.Sprintf("%d flows, %.4f confirmed, %d wrong, unknown %.5f of the time and %.5f of the packets, took %d (p99 %d), by %v, contradictions %d, reuses %d, skipped %d %s",
		s.flows, s.recall(), s.wrong, s.forgotten(), s.missed(), median, p99, s.by, s.stats.Contradictions, s.stats.Reuses, s.stats.Skipped, s.why)
}

func (s *score) add(o *score) {
	s.flows, s.confirmed, s.wrong = s.flows+o.flows, s.confirmed+o.confirmed, s.wrong+o.wrong
	s.took = append(s.took, o.took...)
	s.live, s.unknown = s.live+o.live, s.unknown+o.unknown
	for i := range s.by {
		s.by[i] += o.by[i]
	}
	s.stats.Contradictions += o.stats.Contradictions
	s.own, s.ownUnknown = s.own+o.own, s.ownUnknown+o.ownUnknown
	s.stats.Reuses += o.stats.Reuses
	s.stats.Skipped += o.stats.Skipped
	if s.why == "" {
		s.why = o.why
	}
}

// progress is the state of one direction of a connection.
type progress struct {
	packets, took uint32
	by            Evidence
	since         int64 // last check of the flow, after it was confirmed
	known         bool
}

// look records whether the flow is known now, and how long it was not.
func (p *progress) look(s *score, now int64, known bool) {
	if p.took == 0 {
		return
	}
	if p.since != 0 {
		s.live += now - p.since
		if !p.known {
			s.unknown += now - p.since
		}
	}
	p.since, p.known = now, known
}

// maxPackets ends a run.
const maxPackets = 500_000

// minPackets is the number of packets from which on a flow counts for recall.
const minPackets = 4

// learn runs traffic past a gateway, and compares what it learns with the truth at every packet.
func learn(t testing.TB, c synth.Config) *score { return learnIn(t, c, nil) }

// learnIn is learn for packets in these scopes.
func learnIn(t testing.TB, c synth.Config, scope func(port uint16, p *packet.Parsed) packet.Scope) *score {
	t.Helper()
	flows := max(c.Connections, 256) * max(1, c.Tenants) * (c.Generations + 1) * 2
	g := newGateway(t, flows+1024)
	g.scope = scope
	traffic := synth.New(c)
	s := &score{}
	var seen [][2]progress
	e, ok := traffic.Next() // one event for all packets: it escapes
	for ; ok; e, ok = traffic.Next() {
		worker, x := g.show(&e)
		if s.packets++; s.packets == maxPackets {
			break
		}
		if x == flowtable.None || e.Forged || e.MAD != nil || e.Packet.SourceQP != 0 {
			continue
		}
		for int(e.Conn) >= len(seen) {
			seen = append(seen, [2]progress{})
		}
		p := &seen[e.Conn][e.From]
		p.packets++
		qp, ok := worker.SourceQP(x)
		if ok && qp != e.SourceQP {
			if s.wrong++; s.why == "" {
				s.why = fmt.Sprintf("\n  first wrong: %+v is said to come from %d by %v, comes from %d; connection %+v",
					e.Packet, qp, worker.Describe(x).Evidence(), e.SourceQP, traffic.Conns()[e.Conn])
			}
		}
		if ok && qp == e.SourceQP && p.took == 0 {
			p.took, p.by = p.packets, worker.Describe(x).Evidence()
			if back := &seen[e.Conn][1-e.From]; back.took == 0 && back.packets > 0 && g.knows(&e) {
				back.took, back.by = back.packets, p.by
			}
		}
		if p.took != 0 && p.took != p.packets {
			s.own++
			if !ok {
				s.ownUnknown++
			}
		}
		p.look(s, e.Time, ok)
		seen[e.Conn][1-e.From].look(s, e.Time, g.knows(&e))
	}
	conns := traffic.Conns()
	same := map[uint16]int{}
	for i := range conns {
		same[conns[i].Port[0]]++
	}
	for i := range seen {
		if c.StartPSN != synth.PSNRandom && c.Ports != synth.PortsSymmetric && same[conns[i].Port[0]] > 1 {
			continue // can't be distinguished from the other one with the port
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
	for _, w := range g.workers {
		w.Learner.Sweep()
		one := w.Learner.Stats()
		s.stats.Contradictions += one.Contradictions
		s.stats.Reuses += one.Reuses
		s.stats.Skipped += one.Skipped
	}
	return s
}
