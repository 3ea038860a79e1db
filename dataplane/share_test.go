package dataplane

import (
	"testing"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
	"pgregory.net/rapid"
)

// TestShareModel: whatever enters and leaves, a flow's octets, the largest of them, those of no flow, and every flow's place in the
// heap are those of a plain map.
func TestShareModel(t *testing.T) {
	const flows = 40
	rapid.Check(t, func(t *rapid.T) {
		table, index := tableOf(t, flows)
		s := newShare(make([]byte, 8*(flows+1)))
		s.ranked = true
		type frame struct {
			flow   flowtable.Index
			octets uint32
		}
		var queue []frame
		model := map[flowtable.Index]uint64{}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				f := frame{flowtable.None, rapid.Uint32Range(60, 300).Draw(t, "octets")}
				if n := rapid.IntRange(-2, flows-1).Draw(t, "flow"); n >= 0 {
					f.flow = index[n]
				}
				s.enter(f.flow, table.Account(f.flow), 0, f.octets, table)
				model[f.flow] += uint64(f.octets)
				queue = append(queue, f)
			},
			"remove": func(t *rapid.T) {
				if len(queue) == 0 {
					return
				}
				i := rapid.IntRange(0, len(queue)-1).Draw(t, "place")
				f := queue[i]
				queue = append(queue[:i:i], queue[i+1:]...)
				s.remove(table, f.flow, f.octets)
				if model[f.flow] -= uint64(f.octets); model[f.flow] == 0 {
					delete(model, f.flow)
				}
			},
			"": func(t *rapid.T) { checkShare(t, &s, table, index, model) },
		})
	})
}

// tableOf is a table of so many flows, with room for more.
func tableOf(t *rapid.T, flows int) (*flowtable.Table, []flowtable.Index) {
	table, err := flowtable.New(make([]byte, flowtable.Size(4*flows)), flowtable.Config{Capacity: 4 * flows})
	if err != nil {
		t.Fatal(err)
	}
	keys, index := make([]flowtable.Key, flows), make([]flowtable.Index, flows)
	for i := range keys {
		keys[i] = flowtable.Key{Src: packet.Addr{Lo: uint64(i)}, DestQP: uint32(i + 2)}
	}
	table.Lookup(keys, 1, index)
	return table, index
}

func checkShare(t *rapid.T, s *share, table *flowtable.Table, index []flowtable.Index, model map[flowtable.Index]uint64) {
	largest, inHeap := uint64(0), 0
	for _, x := range index {
		f, want := table.Account(x), model[x]
		largest = max(largest, want)
		if uint64(f.Queued) != want || (f.Rank != 0) != (want > 0) {
			t.Fatalf("flow %d: %d octets and place %d, expected %d octets", x, f.Queued, f.Rank, want)
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
	if s.largest() != largest || s.n != inHeap || s.other != model[flowtable.None] {
		t.Fatalf("largest %d, %d flows, other %d, expected %d, %d, %d", s.largest(), s.n, s.other, largest, inHeap, model[flowtable.None])
	}
}
