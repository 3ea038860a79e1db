package dataplane

import (
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// Most bursts come to a queue with space for all of their frames. What forward, enqueue and respond decide for each frame is then decided
// for the whole burst as far as it can be, with the same result (TestPass).

// fits says whether a plain burst that came in by port fits its peer's queue whole.
func (w *Worker) fits(port, frames int, b *summary) bool {
	out := w.ports[port].Peer
	q, c := &w.egress[out], &w.ports[out]
	return !w.oneByOne && q.depth[b.class]+q.others[b.class]+b.bytes <= c.Capacity &&
		q.classes[b.class].n+frames+q.othersFrames[b.class] <= c.Frames
}

// pass queues a burst that fits.
func (w *Worker) pass(port int, rx []burst.Frame, b *summary) {
	out := w.ports[port].Peer
	q := &w.egress[out]
	w.counters.add(port, CEReceived, b.ce)
	before := q.depth[b.class] + q.others[b.class]
	w.counters.watermark(out, b.class, before+b.bytes)
	switch level := w.policy.Ports[out].Thresholds.Level(before + b.bytes); {
	case level == congestion.Second && w.ports[out].Role == WAN:
		w.enterNotifying(port, q, b, rx)
		return
	case level != congestion.None:
		w.mark(out, before, rx)
	}
	w.enterAll(q, b, rx)
}

// enterAll is egress.enter for a burst.
func (w *Worker) enterAll(q *egress, b *summary, rx []burst.Frame) {
	r, s := &q.classes[b.class], &q.shares[b.class]
	tags := w.flow[:len(rx)]
	if r.n+len(rx) > someFrames {
		q.track(b.class)
	}
	if s.tracked {
		s.exact = false
		for i, x := range tags {
			tags[i] = s.add(x, s.accounts.get(x), b.class, rx[i].Len)
		}
	}
	r.pushAll(rx, tags)
	q.depth[b.class] += b.bytes
}

// enterNotifying is enterAll and respond: which sender is notified depends on what is in the queue when its packet enters it.
func (w *Worker) enterNotifying(port int, q *egress, b *summary, rx []burst.Frame) {
	q.track(b.class)
	q.largest(b.class) // from here on it is in s.most, and only grows, since no frame leaves
	s := &q.shares[b.class]
	var r response
	w.begin(&r, port, b.class)
	depth := q.depth[b.class] + q.others[b.class]
	tags := w.flow[:len(rx)]
	for i, x := range tags {
		account := s.accounts.get(x)
		tags[i] = s.add(x, account, b.class, rx[i].Len)
		depth += uint64(rx[i].Len)
		r.cause = cause{rx[i], &w.parsed[i], x, account, depth}
		w.respond(&r)
	}
	q.classes[b.class].pushAll(rx, tags)
	q.depth[b.class] += b.bytes
}

// mark marks the frames of a burst that find the queue above K_min, of which the first finds it before bytes deep.
func (w *Worker) mark(out int, before uint64, rx []burst.Frame) {
	k, depth, marked := w.policy.Ports[out].Thresholds, before, uint64(0)
	limit := min(k.KMin, k.KMax)
	for i := range rx {
		depth += uint64(rx[i].Len)
		if p := &w.parsed[i]; depth > limit && packet.MarkCE(w.batch.Bytes(rx[i]), p) {
			marked++
			if x := w.flow[i]; x != flowtable.None {
				w.accounts.get(x).marked++
			}
		}
	}
	w.counters.add(out, ECNMarked, marked)
}
