package fleet

import (
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/fleet/bus"
	"github.com/cnpgate/cnpgate/fleet/wire"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit/effort"
	"github.com/cnpgate/cnpgate/internal/testkit/synth"
	"github.com/cnpgate/cnpgate/pairing"
)

// box is a gateway of one worker, without a dataplane, and its member.
type box struct {
	*Member
	pairing *pairing.Pairing
	learner *pairing.Learner
	table   *flowtable.Table
	number  int
	head    [synth.HeadLen]byte
	found   [1]flowtable.Ref
	record  [1]packet.Record
}

func (b *box) Begin(x flowtable.Index)                   { b.learner.Begin(x) }
func (b *box) End(x flowtable.Index, _ flowtable.Ending) { b.learner.End(x) }

// site is boxes on a simulated bus.
type site struct {
	t     testing.TB
	bus   *bus.Bus
	boxes []*box
	trust []Party
	keys  []party
	now   int64
	flows int
	last  *result
	deaf  int64 // until then box 0 gets no flows, as if these were lost, or it had no slot for them
}

func newSite(t testing.TB, boxes, flows int, c bus.Config) *site {
	s := &site{t: t, bus: bus.New(c), now: 1e9, flows: flows}
	for i := range boxes {
		p := makeParty(fmt.Sprintf("gw%d", i), byte(i+1))
		s.keys, s.trust = append(s.keys, p), append(s.trust, p.Party)
	}
	for i := range boxes {
		s.boxes = append(s.boxes, nil)
		s.start(i)
	}
	return s
}

// start starts a box, or starts it again.
func (s *site) start(i int) {
	s.t.Helper()
	b := &box{number: i}
	must := func(err error) {
		if err != nil {
			s.t.Helper()
			s.t.Fatal(err)
		}
	}
	var err error
	b.pairing, err = pairing.New(make([]byte, pairing.Size(2*s.flows)), pairing.Config{Flows: 2 * s.flows, Egress: []int{1, 0}, Aging: 60e9, Seed: 1})
	must(err)
	b.table, err = flowtable.New(make([]byte, flowtable.Size(s.flows)), flowtable.Config{Capacity: s.flows, Aging: 60e9, Observer: b})
	must(err)
	b.learner, err = b.pairing.Join(b.table, make([]byte, pairing.LearnerSize(s.flows, 2*s.flows)))
	must(err)
	peers, err := b.pairing.JoinPeers(make([]byte, pairing.PeersSize(s.flows, 2*s.flows)), s.flows, FlowLifetime, 3)
	must(err)
	trust, err := NewTrust("dc", s.trust)
	must(err)
	first := s.boxes[i] == nil
	if first {
		s.bus.Attach(func(subject string, m []byte, now int64) {
			if i == 0 && now < s.deaf && strings.Contains(subject, wire.Flows.String()) {
				return
			}
			s.boxes[i].Receive(subject, m, now)
		})
	}
	b.Member = NewMember(Config{
		Site: "dc", Name: s.trust[i].Name, Version: "test", Trust: trust, Pairing: b.pairing, Peers: peers, Pairs: s.flows, Started: s.now,
		Sign:   func(m []byte) ([]byte, error) { return ed25519.Sign(s.keys[i].private, m), nil },
		Send:   func(subject string, m []byte) { s.bus.Send(i, subject, m, s.now) },
		Answer: func(q []byte) []byte { return []byte(fmt.Sprintf(`{"of":%d,"asked":%s}`, i, q)) },
	})
	s.boxes[i] = b
}

// until lets time pass.
func (s *site) until(at int64) {
	const step = 5e6
	for s.now+step <= at {
		s.now += step
		s.bus.Deliver(s.now)
		for _, b := range s.boxes {
			b.Tick(s.now)
			b.learner.Sweep()
			b.table.Sweep(s.now)
		}
	}
}

// show shows a box a packet, and returns its flow.
func (b *box) show(e *synth.Event, now int64) flowtable.Index {
	p := &e.Packet
	b.learner.StartBurst()
	h := b.head[:synth.Head(e, b.head[:])]
	k := flowtable.Key{Src: p.Src, Dst: p.Dst, DestQP: p.DestQP, SourceQP: p.SourceQP, Port: uint16(e.From), OuterTag: p.OuterTag}
	if p.Opcode == packet.CNP {
		b.learner.Observe(flowtable.None, &k, p, h, now)
		return flowtable.None
	}
	b.record[0].Set(p)
	b.record[0].Flow = k.Words()
	b.table.Lookup(b.record[:], now, b.found[:])
	if b.learner.Routine(b.found[:], b.record[:], 0) == 0 {
		b.learner.Observe(b.found[0].Index, &k, p, h, now)
	}
	return b.found[0].Index
}

// result counts what boxes knew of the flows of traffic.
type result struct {
	flows, confirmed, wrong  int
	packets, known           int   // of flows, and those whose flow was confirmed then
	firstAt, slowest         int64 // when the first flow was confirmed, and the longest time that one took, ns
	began, confirmedAt, seen map[flowID]int64
}

type flowID struct {
	conn int32
	from synth.End
}

// run passes traffic: each packet is seen by the box that by names. Time is stretched, so that connections last for seconds.
func (s *site) run(c synth.Config, stretch int64, by func(e *synth.Event) int, each func(at int64)) *result {
	r := &result{began: map[flowID]int64{}, confirmedAt: map[flowID]int64{}, seen: map[flowID]int64{}}
	s.last = r
	traffic, from := synth.New(c), s.now
	for e, ok := traffic.Next(); ok; e, ok = traffic.Next() {
		at := from + e.Time*stretch
		s.until(at)
		if each != nil {
			each(at - from)
		}
		b := s.boxes[by(&e)]
		x := b.show(&e, at)
		if x == flowtable.None || e.Forged || e.MAD != nil || e.Packet.SourceQP != 0 {
			continue
		}
		id := flowID{int32(e.Conn), e.From}
		if r.seen[id]++; r.seen[id] == 1 { // until then no box could know it
			r.began[id], r.began[flowID{id.conn, 1 - id.from}] = at, at
		}
		qp, ok := b.learner.SourceQP(x)
		r.packets++
		switch {
		case ok && qp != e.SourceQP:
			r.wrong++
		case ok:
			r.known++
			if r.confirmedAt[id] == 0 {
				r.confirmedAt[id] = at
				took := at - r.began[id]
				r.slowest = max(r.slowest, took)
				if r.firstAt == 0 {
					r.firstAt = took
				}
			}
		}
	}
	for id, n := range r.seen {
		if n >= 8 && r.seen[flowID{id.conn, 1 - id.from}] >= 8 {
			r.flows++
			if r.confirmedAt[id] != 0 {
				r.confirmed++
			}
		}
	}
	return r
}

func byDirection(e *synth.Event) int { return int(e.From) }

// TestAsymmetric: two boxes that each see one direction confirm the flows that one box would, over a bus that delays and loses messages, and
// none wrong.
func TestAsymmetric(t *testing.T) {
	for _, c := range []bus.Config{{Delay: 100_000}, {Delay: 20e6, Jitter: 20e6, Loss: .1, Seed: 3}} {
		s := newSite(t, 2, 2048, c)
		r := s.run(synth.Config{Seed: 1, Messages: 64, Connections: 64, Mix: synth.Mix{Write: 3, Read: 1}}, 2000, byDirection, nil)
		t.Logf("%+v: %d of %d flows confirmed, %d wrong, first after %d ms, slowest %d ms; bus %d messages, %d bytes; %+v", c, r.confirmed, r.flows, r.wrong,
			r.firstAt/1e6, r.slowest/1e6, s.bus.Messages, s.bus.Bytes, s.boxes[0].Stats())
		if r.wrong > 0 || r.flows == 0 || r.confirmed*100 < r.flows*99 || r.firstAt > 1e9 {
			t.Errorf("%d of %d flows confirmed, %d wrong, the first after %d ms", r.confirmed, r.flows, r.wrong, r.firstAt/1e6)
		}
	}
}

// TestLostFlows: a box that has lost all that it was sent of its flows' peer flows, while the other box knows its own pairs, asks again.
func TestLostFlows(t *testing.T) {
	s := newSite(t, 2, 2048, bus.Config{Delay: 100_000})
	s.deaf = s.now + 5e9
	r := s.run(synth.Config{Seed: 1, Messages: 256, Connections: 64, Mix: synth.Mix{Write: 1}}, 4000, byDirection, nil)
	t.Logf("%d of %d flows confirmed, %d wrong, the slowest after %d ms; %d messages, %d bytes", r.confirmed, r.flows, r.wrong, r.slowest/1e6, s.bus.Messages, s.bus.Bytes)
	if r.flows == 0 || r.confirmed != r.flows || r.wrong > 0 || r.slowest > 25e9 {
		t.Errorf("%d of %d flows confirmed, %d wrong, the slowest after %d ms", r.confirmed, r.flows, r.wrong, r.slowest/1e6)
	}
}

// TestNewConnection: beside thousands of others, two boxes that each see one direction of a connection know it within six ticks of its first answer, whether a message
// comes each millisecond or each 50 ms.
func TestNewConnection(t *testing.T) {
	for _, stretch := range []int64{20, 1000} {
		s := newSite(t, 2, 1<<15, bus.Config{Delay: 100_000})
		const others = 2048*effort.Short + 512*effort.Race + 8192*effort.Long
		s.run(synth.Config{Seed: 2, Messages: 2, Connections: others, Hosts: [2]int{128, 128}}, 100, byDirection, nil)
		s.until(s.now + 2e9)
		r := s.run(synth.Config{Seed: 1, Messages: 256, Connections: 1, Mix: synth.Mix{Write: 1}}, stretch, byDirection, nil)
		t.Logf("%d of %d flows confirmed, %d wrong, the slower one after %.1f ms", r.confirmed, r.flows, r.wrong, float64(r.slowest)/1e6)
		if r.flows == 0 || r.confirmed != r.flows || r.wrong > 0 || r.slowest > 30e6 {
			t.Errorf("%d of %d flows confirmed, %d wrong, the slower one after %.1f ms", r.confirmed, r.flows, r.wrong, float64(r.slowest)/1e6)
		}
	}
}

// TestProportional: gateways that see both directions ask for nothing, and send no flows.
func TestProportional(t *testing.T) {
	s := newSite(t, 2, 2048, bus.Config{Delay: 100_000})
	r := s.run(synth.Config{Seed: 1, Messages: 32, Connections: 64}, 2000, func(*synth.Event) int { return 0 }, nil)
	if n := s.boxes[0].Stats().Sent[wire.Flows] + s.boxes[1].Stats().Sent[wire.Flows]; n != 0 || r.confirmed < r.flows || r.wrong > 0 {
		t.Errorf("%d messages with flows; %d of %d flows confirmed, %d wrong", n, r.confirmed, r.flows, r.wrong)
	}
}

// TestNoPairOfUnknownFlows: a gateway that sees one direction of its flows, and hears nobody, passes none of them on to one that starts.
func TestNoPairOfUnknownFlows(t *testing.T) {
	s := newSite(t, 2, 64, bus.Config{})
	s.bus.Loss = 2
	r := s.run(synth.Config{Seed: 1, Messages: 16, Connections: 8, Requesters: synth.FromBoth}, 4000, byDirection, nil)
	for i, b := range s.boxes {
		if n := len(b.transfer.allPairs()) / wire.PairSize; n > 0 || r.flows == 0 || r.confirmed > 0 {
			t.Errorf("gw%d passes on %d pairs; %d of %d flows are confirmed", i, n, r.confirmed, r.flows)
		}
	}
}

// TestRestart: a gateway that starts again gets the pairs back from the other, and knows its flows sooner than without a fleet.
func TestRestart(t *testing.T) {
	share := func(fleet bool) float64 {
		s := newSite(t, 2, 2048, bus.Config{Delay: 100_000})
		if !fleet {
			s.bus.Loss = 2
		}
		restarted, known, packets := false, 0, 0
		traffic := synth.Config{Seed: 1, Messages: 64, Connections: 64, Requesters: synth.FromBoth}
		total := synth.New(traffic)
		end := int64(0)
		for e, ok := total.Next(); ok; e, ok = total.Next() {
			end = e.Time
		}
		r := s.run(traffic, 4000, func(*synth.Event) int { return 0 }, func(at int64) {
			if !restarted && at > end*4000/2 {
				restarted = true
				s.start(0)
				s.until(s.now + 500e6)
				known, packets = s.last.known, s.last.packets
			}
		})
		known, packets = r.known-known, r.packets-packets
		t.Logf("fleet %v: %d of %d packets of known flows; adopted %d, pairs of gw1 %d; %d wrong", fleet, known, packets, s.boxes[0].Stats().Adopted, s.boxes[1].Stats().Pairs, r.wrong)
		if r.wrong > 0 {
			t.Errorf("%d wrong", r.wrong)
		}
		return float64(packets-known) / float64(packets)
	}
	with, without := share(true), share(false)
	t.Logf("share of packets whose flow is unknown: with the fleet %.4f, without %.4f", with, without)
	if with >= without {
		t.Error("no gain")
	}
}

// TestPartition: while the bus is cut, members go on alone, and see it; afterwards they go on together.
func TestPartition(t *testing.T) {
	s := newSite(t, 3, 64, bus.Config{Delay: 100_000})
	s.until(s.now + 3e9)
	state := func(of int, name string) string {
		for _, v := range s.boxes[of].Views() {
			if v.Name == name {
				return v.State
			}
		}
		return ""
	}
	if got := state(0, "gw1"); got != "active" {
		t.Fatalf("gw1 is %s", got)
	}
	if v := s.boxes[0].Views(); v[1].RoundUS < 100 || v[1].RoundUS > 20_000 || v[1].Version != "test" || !v[0].Self {
		t.Errorf("views: %+v", v)
	}
	s.bus.Cut = func(from, to int) bool { return from == 1 || to == 1 }
	s.until(s.now + 10e9)
	if a, b := state(0, "gw1"), state(0, "gw2"); a != "silent" || b != "active" {
		t.Errorf("cut off: gw1 is %s, gw2 %s", a, b)
	}
	s.bus.Cut = nil
	s.until(s.now + 3e9)
	if got := state(0, "gw1"); got != "active" {
		t.Errorf("connected again: gw1 is %s", got)
	}
}

// TestQuestion: a question gets the answers of all members, or of those that answer in time.
func TestQuestion(t *testing.T) {
	s := newSite(t, 3, 64, bus.Config{Delay: 100_000})
	s.until(s.now + 2e9)
	for _, cut := range []bool{false, true} {
		var got map[string]json.RawMessage
		s.bus.Cut = func(from, to int) bool { return cut && (from == 2 || to == 2) }
		s.boxes[0].Question([]byte(`"flows"`), s.now, 1e9, func(a map[string]json.RawMessage) { got = a })
		s.until(s.now + 2e9)
		if string(got["gw1"]) != `{"of":1,"asked":"flows"}` || cut == (got["gw2"] != nil) {
			t.Errorf("cut %v: %s", cut, got)
		}
	}
}

// TestFlood: whatever a third party sends, valid and invalid, nothing grows beyond its bounds, and the members still hear each other.
func TestFlood(t *testing.T) {
	s := newSite(t, 2, 64, bus.Config{Delay: 100_000})
	s.until(s.now + 2e9)
	target := s.boxes[0]
	lie := makeParty("gw1", 9) // another key
	forged := lie.seal(t, wire.Header{Kind: wire.Status, Sender: "gw1", Sequence: 1 << 62}, "x")
	for range 20_000 {
		target.Receive("cnpgate.dc.gw1.status", forged, s.now)
		target.Receive("cnpgate.dc.gw1.status", []byte("hello"), s.now)
	}
	if got := target.Stats().Refused; got["signature"] > maxChecks || got["too_many"] < 10_000 || got["length"] != 20_000 {
		t.Errorf("refused: %v", got)
	}
	s.until(s.now + 5e9)
	if v := target.Views(); v[1].State != "active" {
		t.Errorf("after the flood: %+v", v)
	}
	member := s.keys[1]
	body := make([]byte, 0, wire.MaxBody)
	n := uint64(0)
	for range 28 { // a member that asks for, and shows, more than there is space for
		body = body[:0]
		for len(body) < 200_000 {
			n++
			body = (&wire.Wanted{Hosts: wire.Hosts{From: packet.Addr{Lo: n}}}).Append(body)
		}
		target.Receive("cnpgate.dc.gw1.want", member.seal(t, wire.Header{Kind: wire.Want, Sender: "gw1", Sequence: 1<<62 + n}, string(body)), s.now)
		body = body[:0]
		for len(body) < 200_000 {
			n++
			body = (&wire.Pair{Hosts: wire.Hosts{From: packet.Addr{Lo: n}}, QP: 2, SourceQP: 3}).Append(body)
		}
		target.Receive("cnpgate.dc.gw1.pairs", member.seal(t, wire.Header{Kind: wire.Pairs, Sender: "gw1", Sequence: 1<<62 + n}, string(body)), s.now)
	}
	if got := target.Stats(); got.Wanted > maxWants || got.Pairs > 64 || got.Full == 0 {
		t.Errorf("bounds: %+v", got)
	}
}
