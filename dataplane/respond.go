package dataplane

import (
	"math/bits"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane/account"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/fastpath"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// thresholdState is the state of a worker's part of one class of an egress queue.
type thresholdState struct {
	trigger  congestion.Trigger
	round    int64 // when the present round of notifications began, ns
	sent     int   // notifications in it
	surveyed int64 // time of the last survey of senders, ns
}

// round has the values for notifying the senders of the frames of one batch in one class.
type round struct {
	congested
	own         *thresholdState
	decision    congestion.Decision // the request to a sender for the queue's state
	mostlyOther bool                // more than half of the class's bytes belong to no flow
	least       uint64              // only senders of flows with at least this share are notified: one of the largest, and a fair share
}

// responder is the stage that responds to the state of a queue which frames have entered: by the control law (law.go), or by thresholds
// (here).
type responder struct {
	*common
	notifier   *notifier
	senders    *senders
	law        law
	thresholds [][]thresholdState // by port and class
}

// newResponder makes a worker's responder. allocate returns zeroed memory, 8-byte aligned.
func newResponder(n *notifier, w *senders, shared *lawShared, seed uint64, allocate func(bytes int) ([]byte, error)) (*responder, error) {
	s := &responder{common: n.common, notifier: n, senders: w}
	s.law = law{common: n.common, lawShared: shared, notifier: n, watched: w}
	for port := range s.ports {
		s.thresholds = append(s.thresholds, make([]thresholdState, s.ports[port].Classes))
	}
	return s, s.law.init(seed, allocate)
}

// respond is the multi-level response (draft-tian 5.4) to the state of a class that frames have entered, `bytes` bytes behind `before`:
// above K_min each frame is marked, and while a condition of the second level holds, the senders that fill the queue are notified. A packet
// that caused a Fast CNP, because of this queue or for another reason, is not marked (draft fast-cnp-05 4: the sender is known to support
// it).
func (s *responder) respond(b *batch, class int, these mask, before, bytes uint64) {
	c := s.common
	out := c.ports[b.port].Peer
	policy, state, own := &c.policy.Ports[out], &c.queues[out][class], &s.thresholds[out][class]
	q, after := &c.egress[out].Classes[class], before+bytes
	m := state.meter.Update(policy.Interval, c.now, after, q.Entered, q.Marked+q.Observed)
	cause := own.trigger.Update(&policy.Triggers, m)
	state.metrics, state.cause = m, cause
	if c.trace != nil {
		c.trace.responded(policy.KMin, cause, these)
	}
	if policy.Law.On() && c.ports[out].Role == WAN {
		r := congested{in: b.port, out: out, class: class, policy: policy, state: state, metrics: m, cause: congestion.ByDepth}
		marked := s.law.respond(&r, b, these, float64(after))
		if policy.Marks && marked != 0 {
			s.mark(b, out, class, above(b.frames, these, before, policy.KMin)&marked)
		}
		return
	}
	if after <= policy.KMin && cause == 0 {
		return
	}
	if c.ports[out].Role == WAN && (cause != 0 || own.surveyDue(policy.Interval, c.now)) {
		r := round{congested: congested{b.port, out, class, policy, state, m, cause}, own: own}
		if cause != 0 {
			s.notifyBurst(&r, b, these)
		} else {
			s.survey(&r, b, these)
		}
	}
	if policy.Marks {
		s.mark(b, out, class, above(b.frames, these, before, policy.KMin)&^b.byFastCNP)
	}
}

// notifyBurst notifies the senders of data packets that fill the queue: of those whose flows have the largest shares of it (draft-tian
// 5.5). Every reason not to notify them is counted.
func (s *responder) notifyBurst(r *round, b *batch, these mask) {
	c := s.common
	r.state.threshold = r.policy.Threshold(r.cause)
	s.beginRound(r)
	for left := these; left != 0; left &= left - 1 {
		i := bits.TrailingZeros64(uint64(left)) % burst.MaxSize
		b.inHand = uint8(i)
		if !b.records[i].CarriesData() {
			continue
		}
		flow := b.flow[i]
		if flow.Index == flowtable.None {
			c.suppress(r.in, FlowUnknown)
			continue
		}
		a := c.accounts.Begun(flow)
		if uint64(c.accounts.Share(flow.Index, a, uint8(r.class)).Queued) < r.least {
			if c.trace != nil {
				c.trace.skips(i, SmallShare)
			}
			continue // another flow's packet causes that flow's notification
		}
		if reason := s.notify(r, b, i, a); reason != allowed {
			s.notifier.suppressFlow(&r.congested, flow.Index, reason)
		}
	}
	b.inHand = notInHand
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

// notify notifies the sender of a packet of one of the flows with the largest shares, or returns why not; allowed where a later packet may
// cause the notification.
func (s *responder) notify(r *round, b *batch, i int, a *account.Flow) Suppression {
	c := s.common
	if r.mostlyOther { // frames without a sender to notify fill the queue: it would be wrong to notify an RDMA flow
		return LargestNotRoCE
	}
	if b.records[i].DestQP() < packet.ManagementQPs {
		return ManagementQP
	}
	n, m, x := s.notifier, &s.notifier.note, b.flow[i].Index
	m.decision = r.decision
	reason := n.choose(b, i)
	if reason != allowed && reason != qpUnknown { // a QP that isn't known yet may be known soon: then the sender's past rates matter
		return reason
	}
	sender := s.senders.watch(x, a, &r.congested)
	bytes := c.learner.Bytes(x)
	sender.Observe(&r.policy.Response, c.now, bytes, r.metrics.Depth)
	sender.throughput.Observe(c.now, bytes)
	if !n.due(r.policy, x, a) {
		return FlowLimit
	}
	restraint, stricter := sender.Next(&r.policy.Response, r.metrics.Depth, c.now)
	if restraint != congestion.Unrestrained {
		return restrained(restraint, sender.reached)
	}
	if r.own.sent >= r.policy.FlowsPerRound && r.policy.Interval > 0 {
		c.trace.skips(i, RoundOver)
		return allowed // in a later round, if it is still among the largest
	}
	if reason != allowed {
		return reason
	}
	m.flowBytes, m.flowRate, m.raised = bytes, sender.throughput.Rate(c.now, bytes), false
	if stricter {
		m.decision = sender.Stricter(&r.policy.Response, r.metrics, r.cause)
		m.raised = m.decision.Level > r.decision.Level
		if reason := n.choose(b, i); reason != allowed { // not every format expresses every action
			return reason
		}
	}
	if reason := n.send(b, i, a, &sender.target); reason != allowed {
		return reason
	}
	r.own.sent++
	a.SetNotified(c.now)
	s.senders.notified(sender, m, r.metrics.Depth)
	return allowed
}

// mark marks packets that entered a class of a port's queue, as far as they can be marked. In observe mode it only counts them.
func (s *responder) mark(b *batch, out, class int, these mask) {
	c := s.common
	q := &c.egress[out].Classes[class]
	n := len(b.frames)
	if c.policy.observesAt(out) {
		markable := fastpath.Markable(b.records[:n], uint64(these))
		if c.trace != nil {
			c.trace.marked(these, mask(markable), true)
		}
		marks := uint64(bits.OnesCount64(markable))
		q.Observed += marks
		c.counters.add(out, ECNObserved, marks)
		return
	}
	marked := fastpath.MarkBurst(c.batch.Base, b.frames, b.records[:n], uint64(these))
	if c.trace != nil {
		c.trace.marked(these, mask(marked), false)
	}
	if marked == 0 {
		return
	}
	c.accounts.Mark(b.flow[:n], marked)
	marks := uint64(bits.OnesCount64(marked))
	q.Marked += marks
	c.counters.add(out, ECNMarked, marks)
}

// surveyed is the number of flows in a survey.
const surveyed = 4

// surveyDue reports whether an interval (ns) has passed since the last survey.
func (s *thresholdState) surveyDue(interval, now int64) bool {
	elapsed := now - s.surveyed
	return elapsed < 0 || elapsed >= interval
}

// survey samples, once an interval, the senders of some packets of a batch while the queue is above K_min but no trigger holds. So their
// flows' arrival rates are known later, and whether an upstream gateway has slowed them down (draft-tian 5.7).
//
// It skips a sender that could not be notified.
func (s *responder) survey(r *round, b *batch, these mask) {
	r.own.surveyed = s.now
	r.decision = r.policy.Decide(r.metrics, r.cause)
	s.notifier.about(&r.congested)
	n := 0
	for left := these; left != 0 && n < surveyed; left &= left - 1 {
		i := bits.TrailingZeros64(uint64(left))
		x := b.flow[i].Index
		if x == flowtable.None || !b.records[i].CarriesData() || b.records[i].DestQP() < packet.ManagementQPs {
			continue
		}
		n++ // also of a sender that may not be notified: a survey checks few packets
		if s.notifier.note.decision = r.decision; s.notifier.choose(b, i) != allowed {
			continue
		}
		sender, bytes := s.senders.watch(x, s.accounts.Get(x), &r.congested), s.learner.Bytes(x)
		sender.Observe(&r.policy.Response, s.now, bytes, r.metrics.Depth)
		sender.throughput.Observe(s.now, bytes)
	}
}

// beginRound finds the flows with the largest shares of the class (draft-tian 5.5, step 1): as many as may be notified in a round, and none
// with less than its fair share.
func (s *responder) beginRound(r *round) {
	if elapsed := s.now - r.own.round; elapsed >= r.policy.Interval || elapsed < 0 {
		r.own.round, r.own.sent = s.now, 0
	}
	r.decision = r.policy.Decide(r.metrics, r.cause)
	s.notifier.about(&r.congested)
	q := &s.egress[r.out].Classes[r.class]
	q.Track()
	r.mostlyOther = 2*q.Shares.Other > q.Depth
	var largest [congestion.MaxFlowsPerRound]uint64
	top := largest[:r.policy.FlowsPerRound]
	q.TopOfAll(top)
	all := q.SumsOfAll()
	r.least = max(top[len(top)-1], all.FairShare(), 1)
	for n := len(top) - 1; n > 0 && top[n] == 0; n-- {
		r.least = max(r.least, top[n-1])
	}
}
