package dataplane

import (
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
)

const (
	fewFrames  = 2 * burst.MaxSize // a queue of so many frames is searched for the largest flow, at most once after frames have left
	someFrames = 4 * burst.MaxSize // the shares of a longer queue are tracked
)

// track begins to track the flows' shares of a class. A queue of a few frames, as most are nearly always, is not worth the work; for one
// that grows, tracking begins while it has few.
func (q *egress) track(class int) {
	s, r := &q.shares[class], &q.classes[class]
	if s.tracked {
		return
	}
	s.tracked, s.exact, s.other = true, false, 0
	for i := range r.n {
		at := r.place(i)
		x, size := r.tags[at], r.frames[at].Len
		if x == flowtable.None {
			s.other += uint64(size)
		} else if !s.count(s.accounts.get(x), uint8(class), size) {
			r.tags[at] = flowtable.None
		}
	}
	if s.eager {
		q.rank(class)
	}
}

// untrack ends tracking when hardly any frames are left.
func (q *egress) untrack(class int) {
	s, r := &q.shares[class], &q.classes[class]
	if !s.tracked || r.n > someFrames/8 {
		return
	}
	if s.ranked {
		s.unrank()
	}
	for i := range r.n {
		if x := r.tags[r.place(i)]; x != flowtable.None {
			s.accounts.known(x).queued = 0
		}
	}
	s.tracked = false
}

// rank ranks the flows of a class by their bytes in it. It takes a step for each frame in the queue, and then some for each that comes or
// goes, a third of all that a worker does for a frame; so it begins when someone asks for the largest share, and ends when the queue is
// short again.
func (q *egress) rank(class int) *flowShares {
	s, r := &q.shares[class], &q.classes[class]
	if s.ranked {
		return s
	}
	s.ranked, s.rankedAt = true, r.n
	for i := range r.n {
		if x := r.tags[r.place(i)]; x != flowtable.None {
			s.raise(x, s.accounts.known(x))
		}
	}
	return s
}

// unrank ends the ranking of a class in which no more frames will wait than half of those that it began with: so ranking can't begin again
// before as many frames have come and gone as it took steps.
func (q *egress) unrank(class, frames int) {
	if s := &q.shares[class]; s.ranked && !s.eager && frames <= s.rankedAt/2 {
		s.unrank()
	}
}

// largest is the bytes of the flow that has most in a class whose shares are tracked.
func (q *egress) largest(class int) uint64 {
	if s := &q.shares[class]; s.exact {
		return s.most
	}
	return q.search(class)
}

// search ranks the flows of a long queue, and goes over the frames of a short one.
func (q *egress) search(class int) uint64 {
	s, r := &q.shares[class], &q.classes[class]
	s.most, s.exact = 0, true
	if s.ranked || r.n > fewFrames {
		s.most = q.rank(class).largest()
		return s.most
	}
	most := uint32(0)
	_, front := r.front(r.n)
	for _, tags := range [...][]flowtable.Index{front, r.tags[:r.n-len(front)]} {
		for _, x := range tags {
			most = max(most, s.accounts.known(x).queued) // that of flowtable.None is 0
		}
	}
	s.most = uint64(most)
	return s.most
}

// largestBound is at least the bytes of each flow in a class: those of the largest one, or of a short queue all bytes in it.
func (q *egress) largestBound(class int) uint64 {
	if !q.shares[class].tracked {
		return q.depth[class]
	}
	return q.largest(class)
}
