package dataplane

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
)

// TestKeptShares: whenever a queue's shares are kept, they are what a walk over the queue finds; when they aren't, no account says anything;
// and they are kept while the queue is long.
func TestKeptShares(t *testing.T) {
	const flows, frames = 30, 1000
	everything := 0
	rapid.Check(t, func(t *rapid.T) {
		table, index := tableOf(t, flows)
		c := Config{Allocate: func(octets int) ([]byte, error) { return make([]byte, octets), nil }}
		q := &egress{}
		if err := q.init(newLine(1e9), &PortConfig{Classes: 1, Frames: frames}, &c); err != nil {
			t.Fatal(err)
		}
		q.shares[0].eager = rapid.Bool().Draw(t, "eager")
		t.Repeat(map[string]func(*rapid.T){
			"enter": func(t *rapid.T) {
				for range min(rapid.IntRange(1, 200).Draw(t, "frames"), frames-q.classes[0].n) {
					e := entry{burst.Frame{Buf: 1, Len: rapid.Uint32Range(60, 1500).Draw(t, "octets")}, flowtable.None}
					if n := rapid.IntRange(-2, flows-1).Draw(t, "flow"); n >= 0 {
						e.tag = index[n]
					}
					q.enter(0, e, table)
				}
			},
			"leave": func(t *rapid.T) {
				q.leaveAll(0, rapid.IntRange(0, q.classes[0].n).Draw(t, "frames"), table)
			},
			"one leaves": func(*rapid.T) {
				if q.classes[0].n > 0 {
					q.leave(0, table)
				}
			},
			"ask": func(t *rapid.T) {
				q.keep(0, table)
				if got, want := q.largest(0, table), largestOf(q); got != want {
					t.Fatalf("the largest has %d, want %d", got, want)
				}
			},
			"bound": func(t *rapid.T) {
				if got, want := q.atMost(0, table), largestOf(q); got < want {
					t.Fatalf("no flow has more than %d, but one has %d", got, want)
				}
			},
			"": func(t *rapid.T) {
				checkKept(t, q, table)
				if q.shares[0].ranked {
					everything++
				}
			},
		})
	})
	if everything == 0 {
		t.Error("no queue was ever ranked")
	}
}

// walk is what each flow has in the first class of a queue.
func walk(q *egress) map[flowtable.Index]uint32 {
	found, r := map[flowtable.Index]uint32{}, &q.classes[0]
	for i := range r.n {
		found[r.tags[r.place(i)]] += r.frames[r.place(i)].Len
	}
	return found
}

func largestOf(q *egress) uint64 {
	most := uint32(0)
	for x, octets := range walk(q) {
		if x != flowtable.None {
			most = max(most, octets)
		}
	}
	return uint64(most)
}

func checkKept(t *rapid.T, q *egress, table *flowtable.Table) {
	found, s := walk(q), &q.shares[0]
	if q.classes[0].n > someFrames && !s.kept {
		t.Fatalf("the shares of %d frames aren't kept", q.classes[0].n)
	}
	table.Each(func(x flowtable.Index, _ *flowtable.Key, _ *flowtable.Flow) bool {
		want := found[x]
		if !s.kept {
			want = 0
		}
		if a := table.Account(x); a.Queued != want || a.Rank != 0 != (s.ranked && want > 0) {
			t.Fatalf("flow %d has %d octets and rank %d, want %d octets", x, a.Queued, a.Rank, want)
		}
		return true
	})
	if s.kept && s.other != uint64(found[flowtable.None]) {
		t.Fatalf("%d octets of no flow, want %d", s.other, found[flowtable.None])
	}
}
