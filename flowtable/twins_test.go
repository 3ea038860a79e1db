package flowtable

import (
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/cnpgate/cnpgate/internal/testkit/effort"
)

// listMemory is the memory of a table's lists.
func listMemory(t *Table) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(t.twins.links))), twinsSize(t.Capacity()))
}

// wantTwins checks Twins for each flow of a table that has listed all.
func wantTwins(t *testing.T, tab *Table) {
	t.Helper()
	sameName := map[Key]int{}
	name := func(x Index) Key {
		k := *tab.Key(x)
		k.SetScope(0)
		return k
	}
	for x := Index(1); x <= tab.High(); x++ {
		if tab.State(x).Live() {
			sameName[name(x)]++
		}
	}
	for x := Index(1); x <= tab.High(); x++ {
		if !tab.State(x).Live() {
			continue
		}
		var found [8]Twin
		k, itself := name(x), false
		n := tab.Twins(&k, found[:])
		for _, f := range found[:n] {
			if name(f.Index) != k || !tab.Live(f.Ref) || f.Scope != tab.Key(f.Index).Scope() {
				t.Fatalf("%v: found %+v", k, f)
			}
			itself = itself || f.Index == x
		}
		if n != sameName[k] || !itself {
			t.Fatalf("%v: found %d, itself %v, want %d", k, n, itself, sameName[k])
		}
	}
}

// TestTwinsAreListedWhenNeeded: whatever flows begin, end and are renewed, the memory of the lists stays untouched until ListTwins. Then a
// bounded number of calls lists all flows, also those that begin and end meanwhile. Until then a search finds as many as fit.
func TestTwinsAreListedWhenNeeded(t *testing.T) {
	const capacity = 1000
	tab := newTable(t, Config{Capacity: capacity, Aging: 5000, Seed: 3})
	now, next := int64(0), uint64(0)
	churn := func(flows int) {
		for range flows {
			now++
			if x := one(tab, modelKey(next), now); x != None && next%7 == 0 {
				tab.Renew(x, now)
			}
			next++
			tab.Sweep(now)
		}
	}
	ambiguous := func(when string) {
		t.Helper()
		for _, n := range []uint64{next - 1, next + 100} {
			var found [8]Twin
			if k := modelKey(n); tab.TwinsListed() || tab.Twins(&k, found[:]) != len(found) || found != [8]Twin{} {
				t.Errorf("%s: flow %d: found %+v", when, n, found)
			}
		}
	}
	churn(3 * capacity)
	if s := tab.Stats(); s.Evictions == 0 {
		t.Fatalf("%+v: too few flows", s)
	}
	for i, b := range listMemory(tab) {
		if b != 0 {
			t.Fatalf("byte %d of the lists is %#x", i, b)
		}
	}
	ambiguous("before")
	for range capacity / listBatch {
		tab.ListTwins()
		churn(20)
		ambiguous("during")
	}
	tab.ListTwins()
	if !tab.TwinsListed() {
		t.Fatal("not all flows are listed")
	}
	wantTwins(t, tab)
	churn(2 * capacity)
	wantTwins(t, tab)
	now += 10_000 // all age
	for range capacity {
		now++
		tab.Sweep(now)
	}
	churn(50)
	wantTwins(t, tab)
}

// TestTwinsReadWhileListed: readers of a table whose owner begins to list its flows find as many as fit, or flows of that name.
func TestTwinsReadWhileListed(t *testing.T) {
	const flows = 40 * maxWalk
	for seed := range uint64(20 - 15*effort.Race) {
		tab := newTable(t, Config{Capacity: flows, Seed: seed})
		for n := range uint64(flows / 2) {
			one(tab, modelKey(n), int64(n))
		}
		var reading sync.WaitGroup
		var found atomic.Int64
		for reader := range uint64(2) {
			reading.Go(func() {
				for n := reader; ; n++ {
					var out [8]Twin
					k, complete := modelKey(n%(flows/2)), tab.TwinsListed()
					got := tab.Twins(&k, out[:])
					if complete && got < 4 {
						t.Errorf("%v: found %d", k, got)
						return
					}
					for _, f := range out[:got] {
						of, ok := tab.KeyAt(f.Index, tab.State(f.Index))
						if of.SetScope(k.Scope()); ok && tab.Live(f.Ref) && of != k {
							t.Errorf("%v: found %v", k, of)
							return
						}
					}
					if complete && found.Add(1) > 2*flows {
						return
					}
				}
			})
		}
		for n := uint64(flows / 2); !tab.TwinsListed(); n++ {
			tab.ListTwins()
			one(tab, modelKey(n), int64(n))
		}
		reading.Wait()
	}
}

// TestTwinsBehindWrappedGeneration: an entry whose flow has ended with the generation 0 isn't taken for the first unused one.
func TestTwinsBehindWrappedGeneration(t *testing.T) {
	tab, err := New(make([]byte, Size(4)), Config{Capacity: 4, Aging: 100, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	tab.entries[1].state.Store(^uint64(generationOne - 1)) // the next generation is 0
	var first, second [1]Ref
	tab.Lookup(records(keyOf(1)), 1000, first[:])
	tab.Lookup(records(keyOf(2)), 1090, second[:])
	tab.Sweep(1150)
	if s := tab.State(first[0].Index); s != 0 || first[0].Index != 1 {
		t.Fatalf("flow %d has the state %#x, want flow 1 ended with the generation 0", first[0].Index, s)
	}
	wantTwins(t, tab)
	if k := keyOf(2); tab.Twins(&k, make([]Twin, 8)) != 1 {
		t.Error("the flow behind it is not found")
	}
}
