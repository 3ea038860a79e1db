package pairing

import (
	"testing"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
)

func pairsMap(t *testing.T, pairs ...QPPair) *QPMap {
	t.Helper()
	m, err := NewQPMap(pairs, 1)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// lonely is a worker whose source QPs come only from maps.
func lonely(t *testing.T, capacity int, static *QPMap) *worker {
	t.Helper()
	p, err := New(make([]byte, Size(64)), Config{Flows: 64, Egress: []int{1, 0}})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorker(t, p, capacity, 1)
	w.SetStatic(static)
	w.Learner.Sweep()
	return w
}

// TestSourceQP: UD packets carry their source QP; for others the operator's map names it, in both directions, and a new map reaches
// existing flows with the next sweep.
func TestSourceQP(t *testing.T) {
	a, b := packet.Addr{Lo: 1}, packet.Addr{Lo: 2}
	keys := []flowtable.Key{
		{Src: a, Dst: b, DestQP: 18},
		{Src: b, Dst: a, DestQP: 17, Port: 1, OuterTag: 0x1005},
		{Src: a, Dst: b, DestQP: 20},
		{Src: a, Dst: b, DestQP: 18, SourceQP: 99},
	}
	w := lonely(t, 100, pairsMap(t, QPPair{a, b, 17, 18, false, 0, false}))
	ended := map[flowtable.Key]Description{}
	w.ended = func(k *flowtable.Key, v Description) { ended[*k] = v }
	out := make([]flowtable.Ref, len(keys))
	w.lookup(keys, 1, out)
	unknown, ud := Answer(0), makeAnswer(99, Confirmed, EvidenceDETH)
	static := func(qp uint32) Answer { return makeAnswer(qp, Confirmed, EvidenceStatic) }
	check := func(when string, want ...Answer) {
		t.Helper()
		for i, answer := range want {
			if got := w.Describe(out[i].Index).Answer; got != answer {
				t.Errorf("%s: flow %d: %v, want %v", when, i, got, answer)
			}
			if qp, ok := w.SourceQP(out[i].Index); ok != (answer != 0) || qp != answer.SourceQP() {
				t.Errorf("%s: flow %d comes from %d, %v", when, i, qp, ok)
			}
			if found, ok := w.find(&keys[i]); !ok || found != answer {
				t.Errorf("%s: flow %d: a reader finds %v", when, i, found)
			}
		}
	}
	check("at first", static(17), static(18), unknown, ud)
	w.SetStatic(pairsMap(t, QPPair{a, b, 19, 20, false, 0, false}, QPPair{a, b, 16, 18, false, 0, false}))
	check("before the next sweep", static(17), static(18), unknown, ud)
	w.Learner.Sweep()
	check("after a new map", static(16), unknown, static(19), ud)
	w.SetStatic(nil)
	w.Learner.Sweep()
	check("without a map", unknown, unknown, unknown, ud)
	if _, ok := w.SourceQP(flowtable.None); ok {
		t.Error("no flow has a source QP")
	}
	for range 200 {
		w.Table.Sweep(1e12)
	}
	if v := ended[keys[3]]; v.Took != 1 || v.SourceQP() != 99 {
		t.Errorf("the UD flow ended as %+v", v)
	}
}

// TestNewMapReachesAllFlows, whatever their number and the gaps between them, even if maps change faster than the sweep can scan the flows.
func TestNewMapReachesAllFlows(t *testing.T) {
	const flows = 4*recheckBatch + 7
	w := lonely(t, flows, nil)
	var keys []flowtable.Key
	var pairs []QPPair
	for n := range uint32(flows) {
		k := flowtable.Key{Src: packet.Addr{Lo: uint64(n)}, Dst: bob, DestQP: 2 + n}
		keys, pairs = append(keys, k), append(pairs, QPPair{k.Src, k.Dst, 100000 + n, k.DestQP, false, 0, false})
	}
	w.lookup(keys, 1, make([]flowtable.Ref, flows))
	m := pairsMap(t, pairs[:flows-5]...)
	for range flows/recheckBatch + 1 {
		w.SetStatic(pairsMap(t, pairs[:flows-5]...))
		w.Learner.Sweep()
	}
	w.SetStatic(m)
	for range flows/recheckBatch + 1 {
		w.Learner.Sweep()
	}
	for n := range keys {
		if a, ok := w.find(&keys[n]); !ok || a.Usable() != (n < flows-5) {
			t.Fatalf("flow %d: %v, %v", n, a, ok)
		}
	}
	if c := w.counts.Confirmed[EvidenceStatic]; c != flows-5 {
		t.Errorf("%d flows are counted as confirmed by the map, want %d", c, flows-5)
	}
}

// TestNewMapLeavesClosedRecords: they keep their answers, for the report.
func TestNewMapLeavesClosedRecords(t *testing.T) {
	w := newWire(t)
	w.connect(100, 200)
	w.talk(100, 200, psnB, 3, 7)
	w.release(0)
	w.setStatic(pairsMap(t, QPPair{alice, bob, 555, 200, false, 0, false}))
	w.sweep()
	if a := w.view(0, 200); a.Ended() != EndedDREQ || a.SourceQP() != 100 || a.Evidence() != EvidenceCM {
		t.Errorf("%v", a)
	}
}

// TestMappedFlowsTakeNoSlot: there is nothing to learn about them; when the map no longer names them they are learned like others.
func TestMappedFlowsTakeNoSlot(t *testing.T) {
	w := newWire(t)
	w.setStatic(pairsMap(t, QPPair{alice, bob, 100, 200, false, 0, false}))
	w.sweep()
	w.talk(100, 200, 5, 50, 52769)
	w.is(0, 200, 100, EvidenceStatic)
	if _, ok := w.workers[0].slotOf(w.find(0, 200)); ok {
		t.Error("it has a slot")
	}
	w.setStatic(nil)
	w.sweep()
	w.is(0, 200, 0, 0)
	w.talk(100, 200, 55, 50, 52769)
	w.is(0, 200, 100, EvidencePort)
	w.is(1, 100, 200, EvidencePort)
}

// TestMapReachesOneWorkerFirst: a hint that agrees with a pair doesn't end it, though one worker applies it before the other one, and from
// then on publishes no PSNs of its flow. A hint with another QP doesn't change the checks.
func TestMapReachesOneWorkerFirst(t *testing.T) {
	for name, c := range map[string]struct {
		source uint32 // by the hint
		side   int    // of the worker that applies it
		want   bool   // the other side's flow stays confirmed
	}{
		"the requester's worker": {100, 0, true},
		"the responder's worker": {100, 1, true},
		"another QP":             {101, 0, false},
	} {
		w := newWire(t)
		w.talk(100, 200, 5, 100, 52769)
		w.is(1, 100, 200, EvidencePort)
		hint := QPPair{Source: alice, Destination: bob, SourceQP: c.source, DestinationQP: 200}
		w.pairing.SetHints(pairsMap(t, hint))
		w.workers[c.side].Sweep(w.now)
		for psn := uint32(105); psn < 1<<18; psn += 32 { // far more PSNs without a response than put a flow suspended
			w.talk(100, 200, psn, 1, 52769)
			if other := 1 - c.side; c.want && !w.usable(other) {
				t.Fatalf("%s: PSN %d: the other flow is %v", name, psn, w.view(other, [2]uint32{200, 100}[other]))
			}
		}
		if n := w.workers[1-c.side].counts.Contradictions; (n == 0) != c.want {
			t.Errorf("%s: %d contradictions", name, n)
		}
	}
}

// TestNewMapNamesNewFlows: a flow that begins after a map was set gets its QP from this map at once, not from an earlier one.
func TestNewMapNamesNewFlows(t *testing.T) {
	hint := pairsMap(t, QPPair{Source: alice, Destination: bob, SourceQP: 100, DestinationQP: 200})
	for name, set := range map[string]func(w *wire, m *QPMap){
		"static": func(w *wire, m *QPMap) { w.setStatic(m) },
		"hints":  func(w *wire, m *QPMap) { w.pairing.SetHints(m) },
	} {
		w := newWire(t)
		set(w, hint)
		w.send(0, 200, packet.RCSendOnly, 5, 7)
		if v := w.view(0, 200); v.SourceQP() != 100 || !v.Usable() {
			t.Errorf("%s: %v", name, v)
		}
		set(w, nil)
		w.send(1, 100, packet.RCSendOnly, 5, 7)
		if v := w.view(1, 100); v.Usable() {
			t.Errorf("%s, withdrawn: %v", name, v)
		}
	}
}

// TestResponsesOfMappedFlows: while a map names a flow its responses don't count as its requests, also after the map is gone.
func TestResponsesOfMappedFlows(t *testing.T) {
	w := newWire(t)
	w.connect(100, 200)
	w.talk(100, 200, psnB, 100, 7)
	w.pairing.SetHints(pairsMap(t, QPPair{Source: alice, Destination: bob, SourceQP: 100, DestinationQP: 200}))
	w.sweep()
	w.talk(100, 200, psnB+100, 10, 7)
	for i := range uint32(100) {
		w.send(1, 100, packet.RCSendOnly, psnB+0x10000+i, 7)
		w.send(0, 200, packet.RCAcknowledge, psnB+0x10000+i, 7)
	}
	w.pairing.SetHints(nil)
	w.sweep()
	w.send(0, 200, packet.RCSendOnly, psnB+110, 7)
	if n := w.flow(0, 200); n.high != psnB+110 {
		t.Errorf("the highest PSN is %d, want %d", n.high, psnB+110)
	}
}
