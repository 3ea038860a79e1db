package dataplane

import (
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
)

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
			s.enlist(flows, x, flows.Flow(x))
		}
	}
	return s
}

// unrank ends the ranking of a class in which no more frames will wait than half of those that it began with: so it can't begin again
// before as many have come and gone as it took steps.
func (q *egress) unrank(class, frames int, flows *flowtable.Table) {
	if s := &q.shares[class]; s.ranked && !s.always && frames <= s.from/2 {
		s.unrank(flows)
	}
}

// fewFrames is how many frames in a queue are looked through for the largest share, once after frames have left.
const fewFrames = 2 * burst.MaxSize

// largest is the octets of the flow that has most in a class.
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
	for i := range r.n {
		if x := r.tags[r.place(i)]; x != flowtable.None {
			s.most = max(s.most, uint64(flows.Flow(x).Queued))
		}
	}
	return s.most
}
