package flowtable

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// An idle flow is gone one and a half aging periods after its last packet, an active one never, whatever the pace of the bursts.
func TestSweepCoversTableTwiceAnAgingPeriod(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const aging = 1_000_000
		flows := rapid.IntRange(1, 400).Draw(t, "flows")
		perLap := (flows + sweepWindow - 1) / sweepWindow // Sweeps that a round takes at the least
		bursts := rapid.IntRange(laps*perLap+1, 1000).Draw(t, "bursts an aging period")
		start := rapid.SampledFrom([]int64{0, 1767225600e9}).Draw(t, "start")
		tab, _ := New(make([]byte, Size(flows+1)), Config{Capacity: flows + 1, Aging: aging})
		keys := make([]Key, flows)
		for i := range keys {
			keys[i] = keyOf(uint64(i))
		}
		out := make([]Index, flows)
		tab.Lookup(keys, start, out)
		active, step := keyOf(1<<20), int64(aging/bursts)
		x := one(tab, active, start)
		for now := start; now <= start+aging*3/2+2*step; now += step {
			if one(tab, active, now) != x {
				t.Fatal("the active flow has moved")
			}
			before := tab.Stats().Flows
			tab.Sweep(now)
			gone := before - tab.Stats().Flows
			if gone > sweepWindow {
				t.Fatalf("one sweep removed %d flows", gone)
			}
			if gone > 0 && now-start <= aging {
				t.Fatalf("%d flows gone after %d ns", gone, now-start)
			}
		}
		if s := tab.Stats(); s.Flows != 1 || s.Aged != uint64(flows) {
			t.Fatalf("after one and a half aging periods: %+v", s)
		}
	})
}

// After a pause the next sweeps catch up with one round, whatever the clock says.
func TestSweepCatchesUp(t *testing.T) {
	tab := newTable(t, Config{Capacity: 1000, Aging: 100})
	for n := range uint64(1000) {
		one(tab, keyOf(n), 0)
	}
	const later = int64(1e18)
	for left := uint64(1000); left > 0; left -= min(left, sweepWindow) {
		if n := tab.Stats().Flows; n != left {
			t.Fatalf("%d flows left, want %d", n, left)
		}
		tab.Sweep(later)
	}
	if n := tab.Stats().Flows; n != 0 {
		t.Fatalf("%d flows left", n)
	}
	one(tab, keyOf(1), later)
	tab.Sweep(5) // the clock goes back
	for now := int64(5); now < 1000; now += 5 {
		tab.Sweep(now)
	}
	if n := tab.Stats().Flows; n != 1 {
		t.Fatalf("%d flows, want the one that was last seen in the future", n)
	}
}

func TestNoAging(t *testing.T) {
	tab := newTable(t, Config{Capacity: 10})
	one(tab, keyOf(1), 0)
	for range 10 {
		tab.Sweep(1e18)
	}
	one(tab, keyOf(1), 1e18)
	if s := tab.Stats(); s != (Stats{Flows: 1, Insertions: 1}) {
		t.Fatalf("stats %+v", s)
	}
}

func TestSourceQP(t *testing.T) {
	a, b := packet.Addr{Lo: 1}, packet.Addr{Lo: 2}
	pairs := func(p ...QPPair) *QPMap {
		m, err := NewQPMap(p)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	type knows struct {
		qp       uint32
		ok       bool
		state    QPState
		evidence Evidence
	}
	unknown := knows{}
	keys := []Key{
		{Src: a, Dst: b, DestQP: 18},
		{Src: b, Dst: a, DestQP: 17, Port: 1, OuterVID: 5},
		{Src: a, Dst: b, DestQP: 20},
		{Src: a, Dst: b, DestQP: 18, SourceQP: 99},
	}
	ud := knows{99, true, Confirmed, EvidenceDETH}
	ended := map[Key]View{}
	tab := newTable(t, Config{Capacity: 100, Aging: 1e9, Static: pairs(QPPair{a, b, 17, 18}),
		Ended: func(k *Key, _ *Flow, v View) { ended[*k] = v }})
	out := make([]Index, len(keys))
	tab.Lookup(keys, 1, out)
	check := func(when string, want ...knows) {
		t.Helper()
		for i, w := range want {
			qp, ok := tab.SourceQP(out[i])
			if got := (knows{qp, ok, tab.QPState(out[i]), tab.Evidence(out[i])}); got != w {
				t.Errorf("%s: flow %d: %+v, want %+v", when, i, got, w)
			}
			if v, found := tab.Find(&keys[i]); !found || v.SourceQP != w.qp || v.State != w.state || v.Evidence != w.evidence {
				t.Errorf("%s: flow %d: a reader finds %+v", when, i, v)
			}
		}
	}
	static := func(qp uint32) knows { return knows{qp, true, Confirmed, EvidenceStatic} }
	check("at first", static(17), static(18), unknown, ud)
	tab.SetStatic(pairs(QPPair{a, b, 19, 20}, QPPair{a, b, 16, 18}))
	check("before the next sweep", static(17), static(18), unknown, ud)
	tab.Sweep(1)
	check("after a new map", static(16), unknown, static(19), ud)
	tab.SetStatic(nil)
	tab.Sweep(1)
	check("without a map", unknown, unknown, unknown, ud)
	tab.SetStatic(pairs(QPPair{a, b, 17, 18}))
	k := Key{Src: a, Dst: b, DestQP: 18, Port: 7}
	if qp, ok := tab.SourceQP(one(tab, k, 1)); qp != 17 || !ok {
		t.Errorf("a flow that begins after SetStatic has source QP %d, %v", qp, ok)
	}
	if _, ok := tab.SourceQP(None); ok {
		t.Error("no flow has a source QP")
	}
	for range 10 {
		tab.Sweep(1e10)
	}
	if got, want := ended[k], (View{SourceQP: 17, State: Confirmed, Evidence: EvidenceStatic, Ended: EndedAged, Took: 1}); got != want {
		t.Errorf("a flow ended as %+v, want %+v", got, want)
	}
	if got, want := ended[keys[3]], (View{SourceQP: 99, State: Confirmed, Evidence: EvidenceDETH, Ended: EndedAged, Took: 1}); got != want {
		t.Errorf("a flow ended as %+v, want %+v", got, want)
	}
}

// A new map reaches every flow, however many and with whatever gaps between them.
func TestNewMapReachesAllFlows(t *testing.T) {
	const flows = 500
	tab := newTable(t, Config{Capacity: flows, Aging: 1000})
	var pairs []QPPair
	for n := range uint64(flows) {
		k := keyOf(n)
		one(tab, k, int64(n/2)*1000)
		pairs = append(pairs, QPPair{k.Src, k.Dst, uint32(1000 + n), max(k.DestQP, 2)})
	}
	m, err := NewQPMap(pairs[2:200])
	if err != nil {
		t.Fatal(err)
	}
	tab.SetStatic(m)
	for range flows/recheckBatch + 1 {
		tab.Sweep(0)
	}
	for n := range uint64(flows) {
		k := keyOf(n)
		if v, ok := tab.Find(&k); !ok || (v.State == Confirmed) != (n >= 2 && n < 200) {
			t.Fatalf("flow %d: %+v, %v", n, v, ok)
		}
	}
}

// Maps that change faster than the table can be gone through keep the latest from no flow, and each flow it gives its source QP counts.
func TestManyMapsReachAllFlows(t *testing.T) {
	const flows = 4 * recheckBatch
	tab := newTable(t, Config{Capacity: flows})
	var pairs []QPPair
	for n := uint64(2); n < flows+2; n++ {
		k := keyOf(n)
		k.DestQP = 2 + uint32(n)
		one(tab, k, 1)
		pairs = append(pairs, QPPair{k.Src, k.Dst, uint32(1000 + n), k.DestQP})
	}
	m, err := NewQPMap(pairs)
	if err != nil {
		t.Fatal(err)
	}
	for range flows / recheckBatch {
		tab.SetStatic(m)
		tab.Sweep(1)
	}
	for n := uint64(2); n < flows+2; n++ {
		k := keyOf(n)
		k.DestQP = 2 + uint32(n)
		if v, _ := tab.Find(&k); v.State != Confirmed {
			t.Fatalf("flow %d: %+v", n, v)
		}
	}
	if s := tab.Stats(); s.Confirmed[EvidenceStatic] != flows || s.Evidence[EvidenceStatic] != flows {
		t.Errorf("%+v, want %d flows confirmed by the map", s, flows)
	}
}

// A closed record stays closed and keeps what it had learned, whatever map comes.
func TestNewMapLeavesClosedRecords(t *testing.T) {
	tab := newTable(t, Config{Capacity: 4})
	k := keyOf(1)
	x := one(tab, k, 1)
	e := &tab.entries[x]
	e.change(state(e.state.Load()), qpWord(17, Confirmed, EvidenceCM))
	e.close(state(e.state.Load()), EndedDREQ)
	m, err := NewQPMap([]QPPair{{k.Src, k.Dst, 99, max(k.DestQP, 2)}})
	if err != nil {
		t.Fatal(err)
	}
	tab.SetStatic(m)
	tab.Sweep(1)
	if v := tab.View(x); v.Ended != EndedDREQ || v.SourceQP != 17 || v.Evidence != EvidenceCM {
		t.Errorf("%+v", v)
	}
}
