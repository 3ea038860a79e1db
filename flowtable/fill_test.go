package flowtable

import (
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/cnpgate/cnpgate/internal/testkit/effort"
)

// fillFlows is how many flows TestFillsToCapacity adds to each table.
const fillFlows = 100_000*effort.Short + 2_000*effort.Race + 100_000*effort.Long

// A table holds as many random flows as its capacity without an eviction, also after every flow was replaced.
func TestFillsToCapacity(t *testing.T) {
	for _, capacity := range []int{1, 2, 7, 8, 9, 16, 17, 100, 1000, fillFlows} {
		rounds := fillFlows / capacity
		var evicted, turned uint64
		for round := range rounds {
			rng := rand.New(rand.NewPCG(uint64(capacity), uint64(round)))
			tab := newTable(t, Config{Capacity: capacity, Aging: 1000, Seed: rng.Uint64()})
			keys := randomKeys(3*capacity, rng.Uint64)
			out := make([]Ref, len(keys))
			tab.Lookup(records(keys[:capacity]...), 0, out)
			evicted += tab.Stats().Evictions + tab.Stats().Refused
			for i, k := range keys[capacity:] { // the oldest flow ages when the next one is added
				oldest := tab.find(&keys[i], tab.hash(&keys[i]))
				tab.end(oldest, tab.entries[oldest].lastSeen+1001)
				one(tab, k, 1)
			}
			turned += tab.Stats().Evictions + tab.Stats().Refused
		}
		t.Logf("capacity %d: %d of %d insertions evicted while filling, %d more in two turnovers",
			capacity, evicted, capacity*rounds, turned-evicted)
		if turned > uint64(capacity*rounds)/10000 {
			t.Errorf("capacity %d: %d evictions", capacity, turned)
		}
	}
}

// Flipping any bit of a key flips each bit of its hash half of the time.
func TestHashAvalanche(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	tab := newTable(t, Config{Capacity: 1, Seed: 3})
	const trials = 1000
	for bit := range 8 * keyWords * 8 {
		var flips [64]int
		for range trials {
			k := randomKeys(1, rng.Uint64)[0]
			o := k
			flip(&o, bit)
			for d := tab.hash(&k) ^ tab.hash(&o); d != 0; d &= d - 1 {
				flips[bits.TrailingZeros64(d)]++
			}
		}
		for i, n := range flips {
			if n < trials*2/5 || n > trials*3/5 {
				t.Fatalf("key bit %d flips hash bit %d in %d of %d keys", bit, i, n, trials)
			}
		}
	}
}
