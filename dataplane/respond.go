package dataplane

import (
	"math/bits"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/fastpath"
)

// classState is the congestion state of a worker's part of one class of an egress queue.
type classState struct {
	meter     congestion.Meter
	trigger   congestion.Trigger
	calm      congestion.Calm
	metrics   congestion.Metrics // as of the last batch that entered, and what asked for notifications then
	cause     congestion.Cause
	threshold uint64 // of the first of the causes
	marked    uint64 // total frames marked in it
	observed  uint64 // total frames that would have been marked in it, in observe mode
	round     int64  // when the present round of notifications began, ns
	sent      int    // notifications in it
	surveyed  int64  // time of the last survey of senders, ns
	slowed    int    // senders that were asked to slow down because of it, and have had no Resume yet
	// no Resume is sent before, since one could not be, ns
	resumeAt int64
	law      lawState
}

// response has the values for responding to the frames of one batch in one class.
type response struct {
	in, out, class int
	policy         *PortPolicy
	state          *classState
	metrics        congestion.Metrics
	cause          congestion.Cause
	decision       congestion.Decision // the request to a sender for the queue's state
	mostlyOther    bool                // more than half of the class's bytes belong to no flow
	least          uint64              // only senders of flows with at least this share are notified: one of the largest, and a fair share
}

// respond is the multi-level response (draft-tian 5.4) to the state of a class that frames have entered, `bytes` bytes behind `before`:
// above K_min each frame is marked, and while a condition of the second level holds, the senders that fill the queue are notified. A packet
// that caused a Fast CNP, because of this queue or for another reason, is not marked (draft fast-cnp-05 4: the sender is known to support it).
func (w *Worker) respond(b *batch, class int, these mask, before, bytes uint64) {
	out := w.ports[b.port].Peer
	policy, state := &w.policy.Ports[out], &w.states[out][class]
	after := before + bytes
	m := state.meter.Update(policy.Interval, w.now, after, w.egress[out].Classes[class].Entered, state.marked+state.observed)
	cause := state.trigger.Update(&policy.Triggers, m)
	state.metrics, state.cause = m, cause
	if w.trace != nil {
		w.trace.responded(&response{policy: policy, cause: cause}, these)
	}
	if policy.Law.On() && w.ports[out].Role == WAN {
		r := response{in: b.port, out: out, class: class, policy: policy, state: state, metrics: m, cause: congestion.ByDepth}
		marked := w.law(&r, b, these, float64(after))
		if policy.Marks && marked != 0 {
			w.mark(b, out, state, above(b.frames, these, before, policy.KMin)&marked)
		}
		return
	}
	if after <= policy.KMin && cause == 0 {
		return
	}
	if w.ports[out].Role == WAN && (cause != 0 || state.surveyDue(policy.Interval, w.now)) {
		r := response{in: b.port, out: out, class: class, policy: policy, state: state, metrics: m, cause: cause}
		if cause != 0 {
			w.notifyBurst(&r, b, these)
		} else {
			w.survey(&r, b, these)
		}
	}
	if policy.Marks {
		w.mark(b, out, state, above(b.frames, these, before, policy.KMin)&^b.byFastCNP)
	}
}

// notifyBurst notifies the senders of data packets that fill the queue.
func (w *Worker) notifyBurst(r *response, b *batch, these mask) {
	r.state.threshold = r.policy.Threshold(r.cause)
	w.beginRound(r)
	for left := these; left != 0; left &= left - 1 {
		i := bits.TrailingZeros64(uint64(left)) % burst.MaxSize
		w.inHand = uint8(i)
		if w.records[i].CarriesData() {
			w.notify(r, b, i)
		}
	}
	w.inHand = notInHand
}

// above is those of the frames behind which, in a queue that had a depth before they entered it, more bytes wait than a threshold.
func above(frames []burst.Frame, these mask, depth, threshold uint64) mask {
	for left := these; left != 0; left &= left - 1 {
		if depth += uint64(frames[bits.TrailingZeros64(uint64(left))].Len); depth > threshold {
			return left
		}
	}
	return 0
}

// mark marks packets that entered a class of a port's queue, as far as they can be marked. In observe mode it only counts them.
func (w *Worker) mark(b *batch, out int, state *classState, these mask) {
	n := len(b.frames)
	if w.policy.observesAt(out) {
		markable := fastpath.Markable(w.records[:n], uint64(these))
		if w.trace != nil {
			w.trace.marked(these, mask(markable), true)
		}
		count := uint64(bits.OnesCount64(markable))
		state.observed += count
		w.counters.add(out, ECNObserved, count)
		return
	}
	marked := fastpath.MarkBurst(w.batch.Base, b.frames, w.records[:n], uint64(these))
	if w.trace != nil {
		w.trace.marked(these, mask(marked), false)
	}
	if marked == 0 {
		return
	}
	w.accounts.Mark(w.flow[:n], marked)
	count := uint64(bits.OnesCount64(marked))
	state.marked += count
	w.counters.add(out, ECNMarked, count)
}

// surveyed is the number of flows in a survey.
const surveyed = 4

// surveyDue reports whether an interval (ns) has passed since the last survey.
func (s *classState) surveyDue(interval, now int64) bool {
	elapsed := now - s.surveyed
	return elapsed < 0 || elapsed >= interval
}

// survey samples, once an interval, the senders of some packets of a batch while the queue is above K_min but no trigger holds. So their
// flows' arrival rates are known later, and whether an upstream gateway has slowed them down (draft-tian 5.7).
//
// It skips a sender that could not be notified.
func (w *Worker) survey(r *response, b *batch, these mask) {
	r.state.surveyed = w.now
	r.decision = r.policy.Decide(r.metrics, r.cause)
	w.about(r.in, r.out, r.class, r.state, r.cause)
	n := 0
	for left := these; left != 0 && n < surveyed; left &= left - 1 {
		i := bits.TrailingZeros64(uint64(left))
		x := w.flow[i].Index
		if x == flowtable.None || !w.records[i].CarriesData() || w.records[i].DestQP() < managementQPs {
			continue
		}
		n++ // also of a sender that may not be notified: a survey checks few packets
		if w.note.decision = r.decision; w.choose(b, i) != allowed {
			continue
		}
		sender, bytes := w.senders.watch(x, w.accounts.Get(x), r), w.learner.Bytes(x)
		sender.Observe(&r.policy.Response, w.now, bytes, r.metrics.Depth)
		sender.throughput.Observe(w.now, bytes)
	}
}

// beginRound finds the flows with the largest shares of the class (draft-tian 5.5, step 1): as many as may be notified in a round, and none
// with less than its fair share.
func (w *Worker) beginRound(r *response) {
	if elapsed := w.now - r.state.round; elapsed >= r.policy.Interval || elapsed < 0 {
		r.state.round, r.state.sent = w.now, 0
	}
	r.decision = r.policy.Decide(r.metrics, r.cause)
	w.about(r.in, r.out, r.class, r.state, r.cause)
	q := &w.egress[r.out]
	q.Classes[r.class].Track()
	r.mostlyOther = 2*q.Classes[r.class].Shares.Other > q.Classes[r.class].Depth
	var largest [congestion.MaxFlowsPerRound]uint64
	top := largest[:r.policy.FlowsPerRound]
	q.Classes[r.class].Top(top)
	all := q.Classes[r.class].Sums()
	if len(w.plane.workers) > 1 {
		w.plane.mergeLargest(r.out, r.class, w.id, top)
		w.plane.addSums(r.out, r.class, w.id, &all)
	}
	r.least = max(top[len(top)-1], all.FairShare(), 1)
	for n := len(top) - 1; n > 0 && top[n] == 0; n-- {
		r.least = max(r.least, top[n-1])
	}
}
