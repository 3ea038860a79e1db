package dataplane

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
)

// TestTrackedShares: while a queue's shares are tracked, they are what a walk over the queue finds; while they aren't, no account has any;
// and they are tracked while the queue is long.
func TestTrackedShares(t *testing.T) {
	const flows, frames = 30, 1000
	everything := 0
	rapid.Check(t, func(t *rapid.T) {
		a, index := accountsOf(t, flows)
		c := Config{Allocate: func(bytes int) ([]byte, error) { return make([]byte, bytes), nil }}
		q := &egress{}
		if err := q.init(newLine(1e9), &PortConfig{Classes: 1, Queue: Queue{Frames: frames}}, a, &c); err != nil {
			t.Fatal(err)
		}
		t.Repeat(map[string]func(*rapid.T){
			"enter": func(t *rapid.T) {
				for range min(rapid.IntRange(1, 200).Draw(t, "frames"), frames-q.classes[0].n) {
					x := flowtable.None
					if n := rapid.IntRange(-2, flows-1).Draw(t, "flow"); n >= 0 {
						x = index[n]
					}
					q.enter(0, burst.Frame{Buf: 1, Len: rapid.Uint32Range(60, 1500).Draw(t, "bytes")}, x)
				}
			},
			"leave": func(t *rapid.T) {
				q.leaveAll(0, rapid.IntRange(0, q.classes[0].n).Draw(t, "frames"))
			},
			"one leaves": func(*rapid.T) {
				if q.classes[0].n > 0 {
					q.leave(0)
				}
			},
			"end": func(t *rapid.T) {
				x := rapid.SampledFrom(index).Draw(t, "flow")
				if f := a.Find(x); f != nil {
					q.shares[0].end(x, f)
					f.Begin(f.Generation.Load() + 1)
				}
				a.Flows.Renew(x, 2)
			},
			"ask": func(t *rapid.T) {
				q.track(0)
				if got, want := q.largest(0), largestOf(q); got != want {
					t.Fatalf("the largest has %d, want %d", got, want)
				}
			},
			"bound": func(t *rapid.T) {
				if got, want := q.largest(0), largestOf(q); got < want {
					t.Fatalf("no flow has more than %d, but one has %d", got, want)
				}
			},
			"": func(t *rapid.T) {
				checkTracked(t, q, index)
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

// walk is what each flow has in the first class of a queue, and what those have that have ended.
func walk(q *egress) (found map[flowtable.Index]uint32, ended uint64) {
	found = map[flowtable.Index]uint32{}
	r := &q.classes[0]
	for i := range r.n {
		t, bytes := r.tags[r.place(i)], r.frames[r.place(i)].Len
		if q.flows.Ref(t.Index) == t {
			found[t.Index] += bytes
		} else {
			ended += uint64(bytes)
		}
	}
	return found, ended
}

func largestOf(q *egress) uint64 {
	most := uint32(0)
	found, _ := walk(q)
	for x, bytes := range found {
		if x != flowtable.None {
			most = max(most, bytes)
		}
	}
	return uint64(most)
}

func checkTracked(t *rapid.T, q *egress, index []flowtable.Index) {
	s := &q.shares[0]
	found, ended := walk(q)
	if q.classes[0].n > someFrames && !s.tracked {
		t.Fatalf("the shares of %d frames aren't tracked", q.classes[0].n)
	}
	all := sums{}
	for _, x := range index {
		want := found[x]
		if !s.tracked {
			want = 0
		}
		all.bytes += uint64(want)
		all.squares += uint64(want) * uint64(want)
		if a := s.accounts.Get(x); a.Queued != want || a.Rank != 0 != (s.ranked && want > 0) {
			t.Fatalf("flow %d has %d bytes and rank %d, want %d bytes", x, a.Queued, a.Rank, want)
		}
	}
	if got := q.sums(0); s.tracked && got != all {
		t.Fatalf("sums %+v, want %+v", got, all)
	}
	if s.tracked && s.other != uint64(found[flowtable.None]) {
		t.Fatalf("%d bytes of no flow, want %d", s.other, found[flowtable.None])
	}
	if s.tracked && s.ended != ended {
		t.Fatalf("%d bytes of flows that have ended, want %d", s.ended, ended)
	}
}
