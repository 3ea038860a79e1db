package egress

import (
	"testing"

	"github.com/cnpgate/cnpgate/dataplane/account"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
	"pgregory.net/rapid"
)

// TestShareModel: whatever enters and leaves in whichever class, a flow's bytes in each class, the largest of them, those of no flow, and
// every flow's place in the heap are those of a plain map.
func TestShareModel(t *testing.T) {
	const flows = 40
	rapid.Check(t, func(t *rapid.T) {
		classes := rapid.IntRange(1, account.MaxClasses).Draw(t, "classes")
		a, index := accountsOf(t, flows)
		s, models := make([]Shares, classes), make([]shareModel, classes)
		for class := range s {
			s[class] = newShares(make([]byte, 8*(flows+1)), a, class)
			s[class].Ranked = true
			models[class].bytes = map[flowtable.Index]uint64{}
		}
		type frame struct {
			tag   flowtable.Ref // whose it is
			class int
			bytes uint32
		}
		var queue []frame
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				x := flowtable.None
				if n := rapid.IntRange(-2, flows-1).Draw(t, "flow"); n >= 0 {
					x = index[n]
				}
				f := frame{a.Flows.Ref(x), rapid.IntRange(0, classes-1).Draw(t, "class"), rapid.Uint32Range(60, 300).Draw(t, "bytes")}
				s[f.class].add(x, a.Get(x), f.bytes)
				models[f.class].bytes[x] += uint64(f.bytes)
				queue = append(queue, f)
			},
			"remove": func(t *rapid.T) {
				if len(queue) == 0 {
					return
				}
				i := rapid.IntRange(0, len(queue)-1).Draw(t, "place")
				f := queue[i]
				queue = append(queue[:i:i], queue[i+1:]...)
				s[f.class].remove(f.tag, f.bytes)
				if x := f.tag.Index; a.Flows.Ref(x) == f.tag {
					models[f.class].bytes[x] -= uint64(f.bytes)
				} else {
					models[f.class].ended -= uint64(f.bytes)
				}
			},
			"end": func(t *rapid.T) { // and another flow has the index
				x := rapid.SampledFrom(index).Draw(t, "flow")
				for class := range models {
					if f := a.Find(x); f != nil {
						s[class].end(x, f)
					}
					models[class].ended += models[class].bytes[x]
					models[class].bytes[x] = 0
				}
				if f := a.Find(x); f != nil {
					f.Begin(f.Generation.Load() + 1)
				}
				a.Flows.Renew(x, 2)
			},
			"": func(t *rapid.T) {
				for class := range s {
					checkShare(t, &s[class], index, &models[class])
				}
			},
		})
	})
}

// shareModel is what Shares has of a class: the bytes of each flow, of no flow, and of flows that have ended.
type shareModel struct {
	bytes map[flowtable.Index]uint64
	ended uint64
}

// accountsOf are the accounts of a table of so many flows, with space for more.
func accountsOf(t *rapid.T, flows int) (*account.Accounts, []flowtable.Index) {
	a := newAccounts(t, flowtable.Config{Capacity: 4 * flows})
	keys, found, index := make([]flowtable.Key, flows), make([]flowtable.Ref, flows), make([]flowtable.Index, flows)
	for i := range keys {
		keys[i] = flowtable.Key{Src: packet.Addr{Lo: uint64(i)}, DestQP: uint32(i + 2)}
	}
	a.Flows.Lookup(records(keys...), 1, found)
	for i := range found {
		index[i] = found[i].Index
	}
	return a, index
}

func checkShare(t *rapid.T, s *Shares, index []flowtable.Index, model *shareModel) {
	largest, squares, inHeap := uint64(0), uint64(0), 0
	for _, x := range index {
		f, want := s.accounts.Share(x, s.accounts.Get(x), s.class), model.bytes[x]
		largest = max(largest, want)
		squares += want * want
		if uint64(f.Queued) != want || (f.Rank != 0) != (want > 0) {
			t.Fatalf("flow %d: %d bytes and place %d, expected %d bytes", x, f.Queued, f.Rank, want)
		}
		if f.Rank == 0 {
			continue
		}
		inHeap++
		if int(f.Rank) > s.n || s.heap[f.Rank] != want<<32|uint64(x) {
			t.Fatalf("flow %d: place %d of %d says %x, expected %x", x, f.Rank, s.n, s.heap[f.Rank], want<<32|uint64(x))
		}
	}
	for place := 2; place <= s.n; place++ {
		if s.heap[place/2]>>32 < s.heap[place]>>32 {
			t.Fatalf("place %d has more than place %d above it", place, place/2)
		}
	}
	if other := model.bytes[flowtable.None]; s.largest() != largest || s.n != inHeap || s.Other != other || s.Ended != model.ended {
		t.Fatalf("largest %d, %d flows, other %d, ended %d, expected %d, %d, %d, %d",
			s.largest(), s.n, s.Other, s.Ended, largest, inHeap, other, model.ended)
	}
	if s.squares != squares {
		t.Fatalf("sum of squares %d, expected %d", s.squares, squares)
	}
}
