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
	s.tracked, s.other, s.ended = true, 0, 0
	frames, tags := r.front(r.n)
	s.countAll(uint8(class), frames, tags)
	rest := r.n - len(frames)
	s.countAll(uint8(class), r.frames[:rest], r.tags[:rest])
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
