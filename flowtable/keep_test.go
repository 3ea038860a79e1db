package flowtable

import (
	"testing"

	"pgregory.net/rapid"
)

// TestKeep: a flow that Keep is about, with at least one packet a second, is never evicted, however many flows begin; without packets for a second it is.
func TestKeep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacity := rapid.IntRange(1, 300).Draw(t, "capacity")
		tab, err := New(make([]byte, Size(capacity)), Config{Capacity: capacity, Aging: 60e9, Seed: rapid.Uint64().Draw(t, "seed"), Keep: func(a Answer) bool { return a == 7 }})
		if err != nil {
			t.Fatal(err)
		}
		kept, now, next := map[Key]Index{}, int64(1e9), uint64(1)
		begin := func(keep bool) Index {
			k := keyOf(next)
			next++
			x := one(tab, k, now)
			if keep && x != None {
				tab.SetAnswer(x, tab.State(x), 7)
				kept[k] = x
			}
			return x
		}
		for range rapid.IntRange(0, capacity).Draw(t, "kept") {
			begin(true)
		}
		for range rapid.IntRange(1, 20).Draw(t, "seconds") {
			for range rapid.IntRange(0, 500).Draw(t, "flows") {
				now += 1e6
				begin(false)
				tab.Sweep(now)
			}
			now += rapid.Int64Range(0, 4e8).Draw(t, "pause")
			for k, x := range kept {
				if got := one(tab, k, now); got != x || tab.State(x).Answer() != 7 {
					t.Fatalf("flow %d is %d with answer %d", x, got, tab.State(got).Answer())
				}
			}
		}
		if now += keptFor; begin(false) == None {
			t.Fatal("a flow gets no place though no other has packets")
		}
	})
}
