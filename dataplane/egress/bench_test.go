package egress

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/flowtable"
)

// BenchmarkChoose is what it takes to choose whom to notify in a queue with so many flows: "round" is the choice of the 16 largest of them, "frame" a
// frame of any flow that enters and one that leaves, with the heap kept in order.
func BenchmarkChoose(b *testing.B) {
	for _, size := range []struct {
		name  string
		flows int
	}{{"1Ki flows", 1 << 10}, {"32Ki flows", 1 << 15}, {"1Mi flows", 1 << 20}} {
		b.Run(size.name, func(b *testing.B) {
			s, flows := manyShares(b, size.flows)
			b.Run("round", func(b *testing.B) {
				var top [congestion.MaxFlowsPerRound]uint64
				for b.Loop() {
					s.top(top[:])
				}
				if top[len(top)-1] == 0 || top[0] < top[len(top)-1] {
					b.Errorf("the largest are %v", top)
				}
			})
			b.Run("frame", func(b *testing.B) {
				r := rand.New(rand.NewPCG(1, 2))
				for b.Loop() {
					x := flows[r.IntN(len(flows))]
					s.add(x, s.accounts.Known(x), 1000)
					x = flows[r.IntN(len(flows))]
					if s.accounts.Known(x).Queued > 1000 {
						s.remove(s.accounts.Flows.Ref(x), 1000)
					}
				}
			})
		})
	}
}

// manyShares is a queue in which each of so many flows has up to 100 frames of 1000 bytes.
func manyShares(b *testing.B, n int) (*Shares, []flowtable.Index) {
	words := make([]uint64, n+2)
	a := newAccounts(b, flowtable.Config{Capacity: n + n/4})
	s := newShares(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 8*len(words)), a, 0)
	s.Tracked, s.Ranked = true, true
	r, flows := rand.New(rand.NewPCG(3, 4)), make([]flowtable.Index, n)
	for i := range flows {
		var found [1]flowtable.Ref
		a.Flows.Lookup(records(flowtable.Key{DestQP: uint32(2 + i)}), 1, found[:])
		x := found[0].Index
		if x == flowtable.None {
			b.Fatalf("no place for flow %d", i)
		}
		flows[i] = x
		s.add(x, a.Get(x), 1000*(1+uint32(r.IntN(100))))
	}
	return &s, flows
}
