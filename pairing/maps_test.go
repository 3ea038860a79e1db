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

// lonely is a worker whose flows only maps know.
func lonely(t *testing.T, capacity int, static *QPMap) *worker {
	t.Helper()
	p, err := New(make([]byte, Size(64)), Config{Flows: 64, Peers: []int{1, 0}, Static: static})
	if err != nil {
		t.Fatal(err)
	}
	return newWorker(t, p, capacity, 1)
}

// TestSourceQP: UD packets carry their source QP; of the others the operator's map names it, in both directions, and a new map reaches the
// flows there are with the next sweep.
func TestSourceQP(t *testing.T) {
	a, b := packet.Addr{Lo: 1}, packet.Addr{Lo: 2}
	keys := []flowtable.Key{
		{Src: a, Dst: b, DestQP: 18},
		{Src: b, Dst: a, DestQP: 17, Port: 1, OuterTag: 0x1005},
		{Src: a, Dst: b, DestQP: 20},
		{Src: a, Dst: b, DestQP: 18, SourceQP: 99},
	}
	w := lonely(t, 100, pairsMap(t, QPPair{a, b, 17, 18}))
	ended := map[flowtable.Key]View{}
	w.ended = func(k *flowtable.Key, v View) { ended[*k] = v }
	out := make([]flowtable.Index, len(keys))
	w.Lookup(keys, 1, out)
	unknown, ud := Answer(0), makeAnswer(99, Confirmed, EvidenceDETH)
	static := func(qp uint32) Answer { return makeAnswer(qp, Confirmed, EvidenceStatic) }
	check := func(when string, want ...Answer) {
		t.Helper()
		for i, answer := range want {
			if got := w.View(out[i]).Answer; got != answer {
				t.Errorf("%s: flow %d: %v, want %v", when, i, got, answer)
			}
			if qp, ok := w.SourceQP(out[i]); ok != (answer != 0) || qp != answer.SourceQP() {
				t.Errorf("%s: flow %d comes from %d, %v", when, i, qp, ok)
			}
			if found, ok := w.find(&keys[i]); !ok || found != answer {
				t.Errorf("%s: flow %d: a reader finds %v", when, i, found)
			}
		}
	}
	check("at first", static(17), static(18), unknown, ud)
	w.pairing.SetStatic(pairsMap(t, QPPair{a, b, 19, 20}, QPPair{a, b, 16, 18}))
	check("before the next sweep", static(17), static(18), unknown, ud)
	w.Learner.Sweep()
	check("after a new map", static(16), unknown, static(19), ud)
	w.pairing.SetStatic(nil)
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

// TestNewMapReachesAllFlows, however many and with whatever gaps between them, and maps that come faster than the flows can be gone through
// keep the latest from none.
func TestNewMapReachesAllFlows(t *testing.T) {
	const flows = 4*recheckBatch + 7
	w := lonely(t, flows, nil)
	var keys []flowtable.Key
	var pairs []QPPair
	for n := range uint32(flows) {
		k := flowtable.Key{Src: packet.Addr{Lo: uint64(n)}, Dst: bob, DestQP: 2 + n}
		keys, pairs = append(keys, k), append(pairs, QPPair{k.Src, k.Dst, 100000 + n, k.DestQP})
	}
	w.Lookup(keys, 1, make([]flowtable.Index, flows))
	m := pairsMap(t, pairs[:flows-5]...)
	for range flows/recheckBatch + 1 {
		w.pairing.SetStatic(pairsMap(t, pairs[:flows-5]...))
		w.Learner.Sweep()
	}
	w.pairing.SetStatic(m)
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

// TestNewMapLeavesClosedRecords: they keep what was learned, for the report.
func TestNewMapLeavesClosedRecords(t *testing.T) {
	w := newWire(t)
	w.connect(100, 200)
	w.talk(100, 200, psnB, 3, 7)
	w.release(0)
	w.pairing.SetStatic(pairsMap(t, QPPair{alice, bob, 555, 200}))
	w.sweep()
	if a := w.view(0, 200); a.Ended() != EndedDREQ || a.SourceQP() != 100 || a.Evidence() != EvidenceCM {
		t.Errorf("%v", a)
	}
}

// TestMappedFlowsTakeNoPlace: there is nothing to learn about them; when the map names them no more they are learned like any others.
func TestMappedFlowsTakeNoPlace(t *testing.T) {
	w := newWire(t)
	w.pairing.SetStatic(pairsMap(t, QPPair{alice, bob, 100, 200}))
	w.sweep()
	w.talk(100, 200, 5, 50, 52769)
	w.is(0, 200, 100, EvidenceStatic)
	if _, ok := w.workers[0].place(w.find(0, 200)); ok {
		t.Error("it has a place")
	}
	w.pairing.SetStatic(nil)
	w.sweep()
	w.is(0, 200, 0, 0)
	w.talk(100, 200, 55, 50, 52769)
	w.is(0, 200, 100, EvidencePort)
	w.is(1, 100, 200, EvidencePort)
}
