package dataplane

import (
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// Most bursts come to a queue with room for all of them. Such a burst passes: what forward, enqueue and respond decide for each of its
// frames is decided for all of them at once as far as it can be, and comes to the same (TestPass).

// smooth tells whether a plain burst that came in by port finds room in its peer's queue.
func (w *Worker) smooth(port, frames int, b *seen) bool {
	out := w.ports[port].Peer
	q, c := &w.egress[out], &w.ports[out]
	return !w.oneByOne && q.depth[b.class]+q.others[b.class]+b.octets <= c.Capacity &&
		q.classes[b.class].n+frames+q.othersFrames[b.class] <= c.Frames
}

// pass queues a smooth burst.
func (w *Worker) pass(port int, rx []burst.Frame, b *seen) {
	out := w.ports[port].Peer
	q := &w.egress[out]
	w.counters.add(port, CEReceived, b.ce)
	before := q.depth[b.class] + q.others[b.class]
	w.counters.watermark(out, b.class, before+b.octets)
	switch level := w.policy.Ports[out].Thresholds.Level(before + b.octets); {
	case level == congestion.Second && w.ports[out].Role == WAN:
		w.enterTelling(port, q, b, rx)
		return
	case level != congestion.None:
		w.mark(out, before, rx)
	}
	w.enterAll(q, b, rx)
}

// enterAll is egress.enter for a burst.
func (w *Worker) enterAll(q *egress, b *seen, rx []burst.Frame) {
	r, s := &q.classes[b.class], &q.shares[b.class]
	tags := w.flow[:len(rx)]
	if r.n+len(rx) > someFrames {
		q.keep(b.class, w.flows)
	}
	if s.kept {
		s.exact = false
		for i, x := range tags {
			tags[i] = s.enter(x, w.flows.Account(x), b.class, rx[i].Len, w.flows)
		}
	}
	r.pushAll(rx, tags)
	q.depth[b.class] += b.octets
}

// enterTelling is enterAll and respond: who is told depends on what is in the queue when his packet enters it.
func (w *Worker) enterTelling(port int, q *egress, b *seen, rx []burst.Frame) {
	q.keep(b.class, w.flows)
	q.largest(b.class, w.flows) // from here on it is in s.most, and as no frame leaves it only grows
	s := &q.shares[b.class]
	var r response
	w.begin(&r, port, b.class)
	depth := q.depth[b.class] + q.others[b.class]
	tags := w.flow[:len(rx)]
	for i, x := range tags {
		account := w.flows.Account(x)
		tags[i] = s.enter(x, account, b.class, rx[i].Len, w.flows)
		depth += uint64(rx[i].Len)
		r.cause = cause{rx[i], &w.parsed[i], x, account, depth}
		w.respond(&r)
	}
	q.classes[b.class].pushAll(rx, tags)
	q.depth[b.class] += b.octets
}

// mark marks the frames of a burst that find the queue above K_min, the first of them before octets deep.
func (w *Worker) mark(out int, before uint64, rx []burst.Frame) {
	k, depth, marked := w.policy.Ports[out].Thresholds, before, uint64(0)
	limit := min(k.KMin, k.KMax)
	for i := range rx {
		depth += uint64(rx[i].Len)
		if p := &w.parsed[i]; depth > limit && packet.MarkCE(w.batch.Bytes(rx[i]), p) {
			marked++
			if x := w.flow[i]; x != flowtable.None {
				w.flows.Account(x).Marked++
			}
		}
	}
	w.counters.add(out, ECNMarked, marked)
}
