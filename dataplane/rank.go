package dataplane

import (
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
)

// fewFrames is how many frames in a queue are gone through to look for the largest, once after frames have left; someFrames how many to
// begin to keep its shares.
const (
	fewFrames  = 2 * burst.MaxSize
	someFrames = 4 * burst.MaxSize
)

// keep begins to keep the shares of a class. A queue of no more than a few frames, which is most of the time's, is not worth the trouble;
// one that grows is taken in hand when it has few still.
func (q *egress) keep(class int, flows *flowtable.Table) {
	s, r := &q.shares[class], &q.classes[class]
	if s.kept {
		return
	}
	s.kept, s.exact, s.other = true, false, 0
	for i := range r.n {
		at := r.place(i)
		x, size := r.tags[at], r.frames[at].Len
		if x == flowtable.None {
			s.other += uint64(size)
		} else if !s.take(flows.Account(x), uint8(class), size) {
			r.tags[at] = flowtable.None
		}
	}
	if s.eager {
		q.rank(class, flows)
	}
}

// release ends that when hardly any frames are left.
func (q *egress) release(class int, flows *flowtable.Table) {
	s, r := &q.shares[class], &q.classes[class]
	if !s.kept || r.n > someFrames/8 {
		return
	}
	if s.ranked {
		s.unrank(flows)
	}
	for i := range r.n {
		if x := r.tags[r.place(i)]; x != flowtable.None {
			flows.Accounted(x).Queued = 0
		}
	}
	s.kept = false
}

// rank has the flows of a class ranked by what they have in it. That takes a step for each frame in the queue, and then some for each
// that comes or goes, a third of all that a worker does for a frame; so it begins when someone asks for the largest share, and ends
// when the queue is short again.
func (q *egress) rank(class int, flows *flowtable.Table) *share {
	s, r := &q.shares[class], &q.classes[class]
	if s.ranked {
		return s
	}
	s.ranked, s.from = true, r.n
	for i := range r.n {
		if x := r.tags[r.place(i)]; x != flowtable.None {
			s.enlist(flows, x, flows.Accounted(x))
		}
	}
	return s
}

// unrank ends the ranking of a class in which no more frames will wait than half of those that it began with: so it can't begin again
// before as many have come and gone as it took steps.
func (q *egress) unrank(class, frames int, flows *flowtable.Table) {
	if s := &q.shares[class]; s.ranked && !s.eager && frames <= s.from/2 {
		s.unrank(flows)
	}
}

// largest is the octets of the flow that has most in a class whose shares are kept.
func (q *egress) largest(class int, flows *flowtable.Table) uint64 {
	if s := &q.shares[class]; s.exact {
		return s.most
	}
	return q.search(class, flows)
}

// search ranks the flows of a long queue, and looks through a short one.
func (q *egress) search(class int, flows *flowtable.Table) uint64 {
	s, r := &q.shares[class], &q.classes[class]
	s.most, s.exact = 0, true
	if s.ranked || r.n > fewFrames {
		s.most = q.rank(class, flows).largest()
		return s.most
	}
	most := uint32(0)
	_, front := r.front(r.n)
	for _, tags := range [...][]flowtable.Index{front, r.tags[:r.n-len(front)]} {
		for _, x := range tags {
			most = max(most, flows.Accounted(x).Queued) // flowtable.None has nothing
		}
	}
	s.most = uint64(most)
	return s.most
}

// atMost is what no flow has more than of a class: what the largest has, or of a short queue all that is in it.
func (q *egress) atMost(class int, flows *flowtable.Table) uint64 {
	if !q.shares[class].kept {
		return q.depth[class]
	}
	return q.largest(class, flows)
}
