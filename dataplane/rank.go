package dataplane

import "github.com/cnpgate/cnpgate/internal/burst"

// someFrames is the queue length from which on shares are tracked even if no sender may be notified yet.
const someFrames = 4 * burst.MaxSize

// track begins to track the flows' shares of a class. A queue of a few frames, the usual case, is not worth the work; for one that grows,
// tracking begins while it has few frames.
func (q *egress) track(class int) {
	s, r := &q.shares[class], &q.classes[class]
	if s.tracked {
		return
	}
	s.tracked, s.other, s.ended, s.squares = true, 0, 0, 0
	frames, tags := r.front(r.n)
	s.countAll(frames, tags)
	rest := r.n - len(frames)
	s.countAll(r.frames[:rest], r.tags[:rest])
}

// untrack ends tracking before frames leave, if hardly any will be left then. It reports whether shares are not tracked.
func (q *egress) untrack(class, left int) bool {
	s, r := &q.shares[class], &q.classes[class]
	switch {
	case !s.tracked:
		return true
	case left > someFrames/8:
		return false
	}
	_, tags := r.front(r.n)
	s.forget(tags)
	s.forget(r.tags[:r.n-len(tags)])
	s.n, s.ranked, s.tracked = 0, false, false
	return true
}

// rank ranks the flows of a class by their bytes in it. It takes a step for each frame in the queue, and then some for each that enters or
// leaves, a third of a worker's time for a frame. So it begins when the largest share is needed, and ends when the queue is short again.
func (q *egress) rank(class int) *flowShares {
	s, r := &q.shares[class], &q.classes[class]
	if s.ranked {
		return s
	}
	s.ranked, s.rankedAt = true, r.n
	_, tags := r.front(r.n)
	s.list(tags)
	s.list(r.tags[:r.n-len(tags)])
	s.order()
	return s
}

// unrank ends the ranking of a class once at most half of the frames wait that it began with: so ranking can't begin again before as many
// frames have entered and left as it took steps.
func (q *egress) unrank(class, frames int) {
	if s := &q.shares[class]; s.ranked && frames <= s.rankedAt/2 {
		s.unrank()
	}
}

// top returns the bytes of the flows with the largest shares of a class, the largest first; 0 if there are no more. For a class without
// tracked shares it returns all waiting bytes, as if one flow had them: no flow has more.
func (q *egress) top(class int, to []uint64) {
	if !q.shares[class].tracked {
		clear(to)
		to[0] = q.depth[class]
		return
	}
	q.rank(class).top(to)
}

// sums are what the fair share of a class depends on: the bytes of its flows, and the sum of the squares of each flow's bytes.
type sums struct{ bytes, squares uint64 }

// fairShare is the least that a flow has to have in a class for its sender to be notified: the bytes of all flows divided by the effective
// number of flows, (sum x)^2 / (sum x^2), which is their number times Jain's fairness index. The mean would fall
// with each tiny flow that someone adds, and this does not. Of that, a quarter is left out: equal flows differ by a few packets, and if only half of
// them were notified, the queue would overflow.
func (s sums) fairShare() uint64 {
	if s.bytes == 0 {
		return 0
	}
	share := (s.squares + s.bytes - 1) / s.bytes
	return share - share/4
}

// sums returns those of a class. As top, it takes the bytes of a class without tracked shares as those of one flow.
func (q *egress) sums(class int) sums {
	s, depth := &q.shares[class], q.depth[class]
	if !s.tracked {
		return sums{depth, depth * depth}
	}
	return sums{depth - s.other - s.ended, s.squares}
}
