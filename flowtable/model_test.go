package flowtable

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// model is what a Table should be: a map, with the rules for who may leave it.
type model struct {
	t      *rapid.T
	tab    *Table
	now    int64
	held   int64
	aging  int64
	burst  []Key // keys of the Lookup under way
	sweeps bool  // a Sweep is under way
	flows  map[Key]*modelFlow
	stats  Stats
}

type modelFlow struct {
	Flow
	held     uint32 // what its account has queued
	index    Index
	notified int64
	lastSeen int64
}

const modelKeys = 80

func newModel(t *rapid.T) *model {
	m := &model{t: t, held: unseen, flows: map[Key]*modelFlow{}, aging: rapid.SampledFrom([]int64{0, 100}).Draw(t, "aging")}
	c := Config{Capacity: rapid.IntRange(1, 40).Draw(t, "capacity"), Aging: m.aging, Seed: rapid.Uint64().Draw(t, "seed"), Ended: m.ended}
	tab, err := New(make([]byte, Size(c.Capacity)), c)
	if err != nil {
		t.Fatal(err)
	}
	m.tab = tab
	m.now = rapid.SampledFrom([]int64{0, 1, 1767225600e9}).Draw(t, "start")
	return m
}

func (m *model) capacity() int { return len(m.tab.entries) - 1 }

// ended checks that the flow may end, with everything counted.
func (m *model) ended(k *Key, f *Flow, v View) {
	was := m.flows[*k]
	if was == nil {
		m.t.Fatalf("a flow ended that there was not: %v", *k)
		return
	}
	if *f != was.Flow {
		m.t.Fatalf("flow is %+v, want %+v", *f, was.Flow)
	}
	if want := (View{Notified: was.notified, Ended: v.Ended}); v != want || v.Ended < EndedAged {
		m.t.Fatalf("%v ended as %+v, notified at %d", *k, v, was.notified)
	}
	delete(m.flows, *k)
	idle := m.aging > 0 && m.now-was.lastSeen > m.aging
	switch {
	case was.lastSeen >= m.held:
		m.t.Fatalf("a flow ended that may have frames queued: %v", *k)
	case idle:
		m.stats.Aged++
	case m.sweeps:
		m.t.Fatalf("a sweep removed a flow that was not idle: %v", *k)
	case slices.Contains(m.burst, *k):
		m.t.Fatalf("a lookup evicted a flow it gives out: %v", *k)
	default:
		m.stats.Evictions++
		m.mustBeOldest(was)
	}
}

// mustBeOldest holds for tables so small that every flow is a candidate.
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
	return f.lastSeen < m.held && f.lastSeen != m.now && !slices.Contains(m.burst, *k)
}

func (m *model) mustAgree(want *modelFlow) {
	x := want.index
	if got := m.tab.Flow(x); got != want.Flow {
		m.t.Fatalf("flow is %+v, want %+v", got, want.Flow)
	}
	if got := m.tab.Account(x).Queued; got != want.held {
		m.t.Fatalf("flow has %d queued, want %d", got, want.held)
	}
}

func (m *model) lookup() {
	m.now += rapid.SampledFrom([]int64{0, 0, 1, 10, 50, 101, 300, -5}).Draw(m.t, "step")
	n := rapid.IntRange(0, 2*maxBurst).Draw(m.t, "burst")
	if n > maxBurst {
		n -= maxBurst // 64 more often than by chance
	}
	m.burst = make([]Key, n)
	for i := range m.burst {
		m.burst[i] = keyOf(rapid.Uint64Range(0, modelKeys-1).Draw(m.t, "key"))
	}
	out := make([]Index, n)
	m.tab.Lookup(m.burst, m.now, out)
	for i, x := range out {
		if x != None {
			m.found(m.burst[i], x)
		}
	}
	for i, x := range out {
		if x == None {
			m.refused(&m.burst[i])
		}
	}
	m.burst = nil
}

func (m *model) found(k Key, x Index) {
	f := m.flows[k]
	if f == nil {
		f = &modelFlow{index: x}
		m.flows[k] = f
		m.stats.Insertions++
	}
	if f.index != x {
		m.t.Fatalf("%v: flow %d, was %d", k, x, f.index)
	}
	f.lastSeen = m.now
	f.Packets++
	f.Bytes += 64
	m.tab.Observe(x, &packet.Parsed{Len: 64}, nil, m.now)
}

// refused checks that nobody could have made room. The search goes beyond the candidate buckets unless these are full, and the
// table is so small that it then sees every flow.
func (m *model) refused(k *Key) {
	m.stats.Refused++
	left, right := m.tab.bucketsOf(m.tab.hash(k))
	l, r := left.free(), right.free()
	if len(m.flows) < m.capacity() && l+r > 0 {
		m.t.Fatalf("refused a flow with %d of %d there", len(m.flows), m.capacity())
	}
	for k, f := range m.flows {
		if m.evictable(&k, f) && l+r > 0 {
			m.t.Fatalf("refused a flow, %v could have been evicted", k)
		}
	}
}

func (m *model) someFlow() *modelFlow {
	var known []Key
	m.tab.Each(func(_ Index, k *Key, _ *Flow) bool { known = append(known, *k); return true })
	if len(known) == 0 {
		return nil
	}
	return m.flows[rapid.SampledFrom(known).Draw(m.t, "flow")]
}

func (m *model) mark() {
	if f := m.someFlow(); f != nil {
		a := m.tab.Account(f.index)
		f.held = rapid.SampledFrom([]uint32{0, 1, 1500}).Draw(m.t, "queued")
		a.Queued = f.held
		a.Marked++
		a.Notified[4]++
		f.Marked++
		f.Notified[4]++
	}
}

func (m *model) hold() {
	m.held = m.now - rapid.SampledFrom([]int64{0, 1, 30, 200, -1, -1 << 60}).Draw(m.t, "held")
	m.tab.Hold(m.held)
}

func (m *model) notify() {
	if want := m.someFlow(); want != nil {
		m.tab.Account(want.index).SetTold(m.now, true)
		if want.notified = m.now; m.now == 0 {
			want.notified = 1
		}
	}
}

func (m *model) sweep() {
	m.now += rapid.SampledFrom([]int64{0, 1, 10, 101, 300}).Draw(m.t, "step")
	m.sweeps = true
	m.tab.Sweep(m.now)
	m.sweeps = false
}

// check compares the whole table with the model.
func (m *model) check() {
	m.stats.Flows = uint64(len(m.flows))
	if s := m.tab.Stats(); s != m.stats {
		m.t.Fatalf("stats are %+v, want %+v", s, m.stats)
	}
	for n := range uint64(modelKeys) {
		k := keyOf(n)
		f := m.flows[k]
		v, ok := m.tab.Find(&k)
		if ok != (f != nil) {
			m.t.Fatalf("%v: found %v, want %v", k, ok, f != nil)
		}
		if f == nil {
			continue
		}
		m.mustAgree(f)
		if v.Notified != f.notified || m.tab.Account(f.index).Told() != f.notified {
			m.t.Fatalf("%v: notified at %d, want %d", k, v.Notified, f.notified)
		}
	}
	last, n := None, 0
	m.tab.Each(func(x Index, k *Key, f *Flow) bool {
		if x <= last || m.flows[*k] == nil || m.flows[*k].index != x || *f != m.tab.Flow(x) || k != m.tab.Key(x) {
			m.t.Fatalf("each gives flow %d %v after flow %d", x, *k, last)
		}
		last = x
		n++
		return true
	})
	if n != len(m.flows) {
		m.t.Fatalf("each gives %d flows, want %d", n, len(m.flows))
	}
}

func TestAgreesWithModel(t *testing.T) {
	var total Stats
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		t.Repeat(map[string]func(*rapid.T){
			"lookup": func(*rapid.T) { m.lookup() },
			"mark":   func(*rapid.T) { m.mark() },
			"hold":   func(*rapid.T) { m.hold() },
			"notify": func(*rapid.T) { m.notify() },
			"sweep":  func(*rapid.T) { m.sweep() },
			"":       func(*rapid.T) { m.check() },
		})
		total.Aged += m.stats.Aged
		total.Evictions += m.stats.Evictions
		total.Refused += m.stats.Refused
	})
	t.Logf("in all %d flows aged, %d were evicted, %d were refused", total.Aged, total.Evictions, total.Refused)
	if total.Aged == 0 || total.Evictions == 0 || total.Refused == 0 {
		t.Fatal("the model went nowhere interesting")
	}
}

// randomKeys draws keys as a data centre has them: few hosts, many QPs.
func randomKeys(n int, next func() uint64) []Key {
	keys := make([]Key, n)
	for i := range keys {
		a, b := next(), next()
		keys[i] = Key{
			Src:    packet.Addr{Lo: 0xffff_0a00_0000 | a&0xffff},
			Dst:    packet.Addr{Lo: 0xffff_0a01_0000 | a>>16&0xffff},
			DestQP: uint32(b & qpMask),
			Port:   uint16(b >> 24 & 1),
		}
	}
	return keys
}
