package flowtable

import (
	"math/bits"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// model is a reference for Table: a map, with the rules for which flow may end. It is the table's Observer.
type model struct {
	t         *rapid.T
	tab       *Table
	now       int64
	aging     int64
	burst     []Key // keys of the current Lookup
	removals  int   // upper bound of the flows that the Lookup has evicted or aged, and of the keys that it refused
	sweeps    bool  // during a Sweep
	renews    bool  // during a Renew
	flows     map[Key]*modelFlow
	past      map[flowName]bool // flows that have been
	stale     []staleState      // previous states of flows
	stats     Stats
	published Stats
}

type modelFlow struct {
	index    Index
	state    State
	lastSeen int64
}

// flowName is unique for each flow of a table.
type flowName struct {
	index      Index
	generation uint32
}

type staleState struct {
	index Index
	state State
}

const modelKeys = 80

func newModel(t *rapid.T) *model {
	m := &model{t: t, flows: map[Key]*modelFlow{}, past: map[flowName]bool{}, aging: rapid.SampledFrom([]int64{0, 100}).Draw(t, "aging")}
	c := Config{Capacity: rapid.IntRange(1, 40).Draw(t, "capacity"), Aging: m.aging, Seed: rapid.Uint64().Draw(t, "seed"), Observer: m}
	tab, err := New(make([]byte, Size(c.Capacity)), c)
	if err != nil {
		t.Fatal(err)
	}
	m.tab = tab
	generation := rapid.SampledFrom([]uint64{0, 1<<28 - 2, 1<<32 - 2}).Draw(t, "generation") // it wraps in the pairing's references, and here
	for i := range c.Capacity {
		tab.entries[i+1].state.Store(generation * generationOne)
	}
	m.now = rapid.SampledFrom([]int64{0, 1, 1767225600e9}).Draw(t, "start")
	return m
}

// Begin checks that the flow is new, and records it.
func (m *model) Begin(x Index) {
	k, s := *m.tab.Key(x), m.tab.State(x)
	if m.flows[k] != nil {
		m.t.Fatalf("%v began although it was in the table", k)
	}
	for k, f := range m.flows {
		if f.index == x {
			m.t.Fatalf("flow %d began and %v has its index", x, k)
		}
	}
	if !s.Live() || s.Answer() != 0 {
		m.t.Fatalf("flow %d began with the state %#x", x, s)
	}
	if name := (flowName{x, s.Generation()}); m.past[name] {
		m.t.Fatalf("flow %d has the generation %d again", x, s.Generation())
	} else {
		m.past[name] = true
	}
	m.flows[k] = &modelFlow{x, s, m.now}
	m.stats.Insertions++
}

// End checks that the flow may end, and for which reason.
func (m *model) End(x Index, why Ending) {
	k := *m.tab.Key(x)
	was := m.flows[k]
	if was == nil {
		m.t.Fatalf("a flow ended that did not exist: %v", k)
		return
	}
	if s := m.tab.State(x); was.index != x || s != was.state {
		m.t.Fatalf("%v ended as flow %d with the state %#x, want %d and %#x", k, x, s, was.index, was.state)
	}
	delete(m.flows, k)
	m.removals++
	m.stale = append(m.stale, staleState{x, was.state})
	if want := m.ending(&k, was); why != want {
		m.t.Fatalf("%v ended for the reason %d, want %d", k, why, want)
	}
}

// ending is the reason for which a flow may end now.
func (m *model) ending(k *Key, was *modelFlow) Ending {
	switch {
	case m.renews:
		return Renewed
	case m.aging > 0 && m.now-was.lastSeen > m.aging:
		m.stats.Aged++
		return Aged
	case m.sweeps:
		m.t.Fatalf("a sweep removed a flow that was not idle: %v", *k)
	case slices.Contains(m.burst, *k):
		m.t.Fatalf("a lookup evicted a flow it gives out: %v", *k)
	}
	m.stats.Evictions++
	m.mustBeOldest(was)
	return Evicted
}

// mustBeOldest applies to tables so small that every flow is a candidate.
func (m *model) mustBeOldest(victim *modelFlow) {
	if len(m.tab.buckets) != 2 {
		return
	}
	for k, f := range m.flows {
		if m.evictable(&k, f) && f.lastSeen < victim.lastSeen {
			m.t.Fatalf("evicted a flow last seen at %d, there was one at %d", victim.lastSeen, f.lastSeen)
		}
	}
}

func (m *model) evictable(k *Key, f *modelFlow) bool {
	return f.lastSeen != m.now && !slices.Contains(m.burst, *k)
}

func (m *model) lookup() {
	m.now += rapid.SampledFrom([]int64{0, 0, 1, 10, 50, 101, 300, -5}).Draw(m.t, "step")
	n := rapid.IntRange(0, 2*maxBurst).Draw(m.t, "burst")
	if n > maxBurst {
		n -= maxBurst // 64 more often than by chance
	}
	m.burst, m.removals = make([]Key, n), 0
	for i := range m.burst {
		m.burst[i] = modelKey(rapid.Uint64Range(0, modelKeys-1).Draw(m.t, "key"))
	}
	out := make([]Ref, n)
	m.tab.Lookup(records(m.burst...), m.now, out)
	for i, x := range out {
		if x != (Ref{}) {
			m.found(m.burst[i], x.Index)
			if x != m.tab.Ref(x.Index) {
				m.t.Fatalf("%v: %+v, its state has %+v", m.burst[i], x, m.tab.Ref(x.Index))
			}
		}
	}
	for i, x := range out {
		if x == (Ref{}) {
			m.refused(&m.burst[i])
		}
	}
	m.burst = nil
	m.publishes()
}

func (m *model) found(k Key, x Index) {
	f := m.flows[k]
	if f == nil || f.index != x {
		m.t.Fatalf("%v: flow %d, want %+v", k, x, f)
	}
	f.lastSeen = m.now
}

// refused checks that no flow could have been evicted, or that the limit of evictions was reached. If the candidate buckets are not full,
// the search continues outside them, and the table is so small that it then covers every flow.
func (m *model) refused(k *Key) {
	m.stats.Refused++
	if m.removals++; m.removals > maxEvictions {
		return
	}
	left, right := m.tab.bucketsOf(m.tab.hash(k))
	l, r := bits.OnesCount64(left.empty()), bits.OnesCount64(right.empty())
	if len(m.flows) < m.tab.Capacity() && l+r > 0 {
		m.t.Fatalf("refused a flow with %d of %d there", len(m.flows), m.tab.Capacity())
	}
	for k, f := range m.flows {
		if m.evictable(&k, f) && l+r > 0 {
			m.t.Fatalf("refused a flow, %v could have been evicted", k)
		}
	}
}

// someFlow is the key of a flow, if there is one.
func (m *model) someFlow() (k Key, f *modelFlow) {
	var known []Key
	for x := Index(1); x <= m.tab.High(); x++ {
		if m.tab.State(x).Live() {
			known = append(known, *m.tab.Key(x))
		}
	}
	if len(known) == 0 {
		return k, nil
	}
	k = rapid.SampledFrom(known).Draw(m.t, "flow")
	return k, m.flows[k]
}

func (m *model) answer() {
	_, f := m.someFlow()
	if f == nil {
		return
	}
	a := Answer(rapid.Uint32Range(0, answerMask).Draw(m.t, "answer"))
	if !m.tab.SetAnswer(f.index, f.state, a) {
		m.t.Fatalf("flow %d takes no answer", f.index)
	}
	m.stale = append(m.stale, staleState{f.index, f.state})
	f.state = f.state&^answerMask | State(a)
}

// answerLate sets an answer for a flow that has ended, or has got another answer meanwhile.
func (m *model) answerLate() {
	if len(m.stale) == 0 {
		return
	}
	was := rapid.SampledFrom(m.stale).Draw(m.t, "stale")
	s := m.tab.State(was.index)
	if m.tab.SetAnswer(was.index, was.state, 99) && s != was.state {
		m.t.Fatalf("flow %d with the state %#x took an answer for %#x", was.index, s, was.state)
	} else if s == was.state { // the flow has the same answer as then
		f := m.flows[*m.tab.Key(was.index)]
		f.state = f.state&^answerMask | 99
	}
}

func (m *model) renew() {
	k, f := m.someFlow()
	if f == nil {
		return
	}
	m.renews = true
	m.tab.Renew(f.index, m.now)
	m.renews = false
	if again := m.flows[k]; again == nil || again == f || again.index != f.index {
		m.t.Fatalf("%v was renewed as %+v, was %+v", k, again, f)
	}
}

func (m *model) sweep() {
	m.now += rapid.SampledFrom([]int64{0, 1, 10, 101, 300}).Draw(m.t, "step")
	m.sweeps = true
	m.tab.Sweep(m.now)
	m.sweeps = false
	m.publishes()
}

func (m *model) publishes() {
	m.stats.Flows = uint64(len(m.flows))
	m.published = m.stats
}

// check compares the whole table with the model.
func (m *model) check() {
	if s := m.tab.Stats(); s != m.published {
		m.t.Fatalf("stats are %+v, want %+v", s, m.published)
	}
	for n := range uint64(modelKeys) {
		k := modelKey(n)
		f := m.flows[k]
		x, s, ok := m.tab.Find(&k)
		if ok != (f != nil) {
			m.t.Fatalf("%v: found %v, want %v", k, ok, f != nil)
		}
		if f != nil && (x != f.index || s != f.state || m.tab.State(x) != f.state || *m.tab.Key(x) != k) {
			m.t.Fatalf("%v: found flow %d with the state %#x, want %+v", k, x, s, *f)
		}
	}
	m.checkEntries()
	m.checkMoved()
	m.checkTwins()
}

// checkTwins checks that Twins finds the flows with a key's addresses and QPs, in all scopes, whether they are in lists or not.
func (m *model) checkTwins() {
	for n := range uint64(modelKeys) {
		k := modelKey(n)
		want := map[Twin]bool{}
		for other, f := range m.flows {
			twin := other
			twin.SetScope(k.Scope())
			if twin == k {
				want[Twin{Ref{f.index, f.state.Generation()}, other.Scope()}] = true
			}
		}
		var found [modelKeys]Twin
		got := m.tab.Twins(&k, found[:])
		for _, f := range found[:got] {
			if !want[f] {
				m.t.Fatalf("%v: found %+v, want %v", k, f, want)
			}
		}
		if got != len(want) || m.tab.Twins(&k, found[:1]) != min(len(want), 1) {
			m.t.Fatalf("%v: found %d, want %v", k, got, want)
		}
	}
}

// checkMoved checks that each bucket counts its flows that are in their second bucket.
func (m *model) checkMoved() {
	moved := map[*bucket]uint32{}
	for k, f := range m.flows {
		first, second := m.tab.bucketsOf(m.tab.hash(&k))
		for slot := range slots {
			if second.used()>>slot&1 == 1 && second.at(slot) == f.index {
				moved[first]++
			}
		}
	}
	for i := range m.tab.buckets {
		if b := &m.tab.buckets[i]; b.moved != moved[b] {
			m.t.Fatalf("bucket %d counts %d flows in their second buckets, %d are", i, b.moved, moved[b])
		}
	}
}

// checkEntries checks that each used entry is a flow's or in the free list, exactly once.
func (m *model) checkEntries() {
	free := map[Index]bool{}
	for x := Index(m.tab.unused.free); x != None; x = Index(m.tab.entries[x].lastSeen - unseen) {
		if free[x] || x > m.tab.High() || m.tab.State(x).Live() {
			m.t.Fatalf("the free list has entry %d, which is there twice, unused or a flow's", x)
		}
		free[x] = true
	}
	live := 0
	for x := Index(1); x <= m.tab.High(); x++ {
		if m.tab.State(x).Live() {
			live++
		} else if !free[x] {
			m.t.Fatalf("entry %d is lost", x)
		}
	}
	if live != len(m.flows) || int(m.tab.flows) != live {
		m.t.Fatalf("%d entries are live, the table counts %d, want %d", live, m.tab.flows, len(m.flows))
	}
}

func TestAgreesWithModel(t *testing.T) {
	var total Stats
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		t.Repeat(map[string]func(*rapid.T){
			"lookup":      func(*rapid.T) { m.lookup() },
			"answer":      func(*rapid.T) { m.answer() },
			"answer late": func(*rapid.T) { m.answerLate() },
			"renew":       func(*rapid.T) { m.renew() },
			"sweep":       func(*rapid.T) { m.sweep() },
			"list":        func(*rapid.T) { m.tab.ListTwins() },
			"":            func(*rapid.T) { m.check() },
		})
		total.Aged += m.stats.Aged
		total.Evictions += m.stats.Evictions
		total.Refused += m.stats.Refused
	})
	t.Logf("in all %d flows aged, %d were evicted, %d were refused", total.Aged, total.Evictions, total.Refused)
	if few := testing.Short(); !few && (total.Aged == 0 || total.Evictions == 0 || total.Refused == 0) {
		t.Fatal("no flow aged, was evicted or was refused: the actions above reach too little")
	}
}

// randomKeys draws keys as in a data centre: few hosts, many QPs.
func randomKeys(n int, next func() uint64) []Key {
	keys := make([]Key, n)
	for i := range keys {
		a, b := next(), next()
		keys[i] = Key{
			Src:    packet.Addr{Lo: 0xffff_0a00_0000 | a&0xffff},
			Dst:    packet.Addr{Lo: 0xffff_0a01_0000 | a>>16&0xffff},
			DestQP: uint32(b & 0xffffff),
			Port:   uint16(b >> 24 & 1),
		}
	}
	return keys
}

// modelKey is a key with three twins.
func modelKey(n uint64) Key {
	k := keyOf(n / 4)
	k.OuterTag = packet.Tag(n % 4)
	return k
}
