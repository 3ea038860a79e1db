package egress

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
)

// TestSpace: a class takes as many more bytes as its limits of bytes and frames allow, for frames as large as those that wait.
func TestSpace(t *testing.T) {
	q := Queue{Capacity: 100_000, Frames: 100}
	for _, c := range []struct {
		waiting uint64
		frames  int
		want    uint64
	}{{0, 0, 100_000}, {4000, 1, 96_000}, {40_000, 10, 60_000}, {6400, 64, 3600}, {10_000, 100, 0}, {10_100, 101, 0}, {100_000, 25, 0}, {101_000, 25, 0}} {
		k := Class{Others: c.waiting, OthersFrames: c.frames}
		if got := k.Space(&q); got != c.want {
			t.Errorf("%d bytes in %d frames wait: space for %d bytes, want %d", c.waiting, c.frames, got, c.want)
		}
	}
}

// TestTrackedShares: while a queue's shares are tracked, they are what a walk over the queue finds; while they aren't, no account has any;
// and they are tracked while the queue is long.
func TestTrackedShares(t *testing.T) {
	const flows, frames = 30, 1000
	everything := 0
	rapid.Check(t, func(t *rapid.T) {
		a, index := accountsOf(t, flows)
		q := newPort(t, NewLine(1e9), a, 1, frames)
		t.Repeat(map[string]func(*rapid.T){
			"enter": func(t *rapid.T) {
				for range min(rapid.IntRange(1, 200).Draw(t, "frames"), frames-q.Classes[0].Len()) {
					x := flowtable.None
					if n := rapid.IntRange(-2, flows-1).Draw(t, "flow"); n >= 0 {
						x = index[n]
					}
					q.enter(0, burst.Frame{Buf: 1, Len: rapid.Uint32Range(60, 1500).Draw(t, "bytes")}, x)
				}
			},
			"leave": func(t *rapid.T) {
				q.Classes[0].leaveAll(rapid.IntRange(0, q.Classes[0].Len()).Draw(t, "frames"))
			},
			"one leaves": func(*rapid.T) {
				if q.Classes[0].Len() > 0 {
					q.Classes[0].Leave()
				}
			},
			"end": func(t *rapid.T) {
				x := rapid.SampledFrom(index).Draw(t, "flow")
				if f := a.Find(x); f != nil {
					q.Classes[0].Shares.end(x, f)
					f.Begin(f.Generation.Load() + 1)
				}
				a.Flows.Renew(x, 2)
			},
			"ask": func(t *rapid.T) {
				q.Classes[0].Track()
				if got, want := q.Classes[0].largest(), largestOf(q); got != want {
					t.Fatalf("the largest has %d, want %d", got, want)
				}
			},
			"bound": func(t *rapid.T) {
				if got, want := q.Classes[0].largest(), largestOf(q); got < want {
					t.Fatalf("no flow has more than %d, but one has %d", got, want)
				}
			},
			"": func(t *rapid.T) {
				checkTracked(t, q, index)
				if q.Classes[0].Shares.Ranked {
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
func walk(q *Port) (found map[flowtable.Index]uint32, ended uint64) {
	found = map[flowtable.Index]uint32{}
	r := &q.Classes[0]
	for i := range r.n {
		t, bytes := r.tags[r.place(i)], r.frames[r.place(i)].Len
		if q.Classes[0].Shares.accounts.Flows.Ref(t.Index) == t {
			found[t.Index] += bytes
		} else {
			ended += uint64(bytes)
		}
	}
	return found, ended
}

func largestOf(q *Port) uint64 {
	most := uint32(0)
	found, _ := walk(q)
	for x, bytes := range found {
		if x != flowtable.None {
			most = max(most, bytes)
		}
	}
	return uint64(most)
}

func checkTracked(t *rapid.T, q *Port, index []flowtable.Index) {
	s := &q.Classes[0].Shares
	found, ended := walk(q)
	if q.Classes[0].Len() > someFrames && !s.Tracked {
		t.Fatalf("the shares of %d frames aren't tracked", q.Classes[0].Len())
	}
	all := Sums{}
	for _, x := range index {
		want := found[x]
		if !s.Tracked {
			want = 0
		}
		all.Bytes += uint64(want)
		all.Squares += uint64(want) * uint64(want)
		if a := s.accounts.Get(x); a.Queued != want || a.Rank != 0 != (s.Ranked && want > 0) {
			t.Fatalf("flow %d has %d bytes and rank %d, want %d bytes", x, a.Queued, a.Rank, want)
		}
	}
	if got := q.Classes[0].Sums(); s.Tracked && got != all {
		t.Fatalf("sums %+v, want %+v", got, all)
	}
	if s.Tracked && s.Other != uint64(found[flowtable.None]) {
		t.Fatalf("%d bytes of no flow, want %d", s.Other, found[flowtable.None])
	}
	if s.Tracked && s.Ended != ended {
		t.Fatalf("%d bytes of flows that have ended, want %d", s.Ended, ended)
	}
}
