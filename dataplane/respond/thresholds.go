// Package respond is what a worker does about congestion: it marks packets, and asks senders to slow down or to resume, by the control law
// or by thresholds. Package notify sends what it asks for.
package respond

import (
	"math/bits"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane/account"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/frames"
	"github.com/cnpgate/cnpgate/dataplane/notify"
	"github.com/cnpgate/cnpgate/dataplane/stage"
	"github.com/cnpgate/cnpgate/dataplane/trace"
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
	notify.Queue
	policy      *stage.PortPolicy
	own         *thresholdState
	decision    congestion.Decision // the request to a sender for the queue's state
	mostlyOther bool                // more than half of the class's bytes belong to no flow
	least       uint64              // only senders of flows with at least this share are notified: one of the largest, and a fair share
}

// Responder is the stage that responds to the state of a queue which frames have entered: by the control law (law.go), or by thresholds
// (here).
type Responder struct {
	*stage.State
	notifier   *notify.Notifier
	senders    *notify.Senders
	Law        Law
	thresholds [][]thresholdState // by port and class
}

// New makes a worker's responder. allocate returns zeroed memory, 8-byte aligned.
func New(n *notify.Notifier, w *notify.Senders, shared *Shared, seed uint64, allocate func(bytes int) ([]byte, error)) (*Responder, error) {
	s := &Responder{State: n.State, notifier: n, senders: w}
	s.Law = Law{State: n.State, Shared: shared, notifier: n, watched: w}
	for port := range s.Ports {
		s.thresholds = append(s.thresholds, make([]thresholdState, s.Ports[port].Classes))
	}
	return s, s.Law.init(seed, allocate)
}

// Respond is the multi-level response (draft-tian 5.4) to the state of a class that frames have entered, `bytes` bytes behind `before`:
// above K_min each frame is marked, and while a condition of the second level holds, the senders that fill the queue are notified. A packet
// that caused a Fast CNP, because of this queue or for another reason, is not marked (draft fast-cnp-05 4: the sender is known to support
// it).
func (s *Responder) Respond(b *frames.Batch, class int, these frames.Mask, before, bytes uint64) {
	c := s.State
	out := c.Ports[b.Port].Peer
	policy, state, own := &c.Policy.Ports[out], &c.Queues[out][class], &s.thresholds[out][class]
	q, after := &c.Egress[out].Classes[class], before+bytes
	m := state.Meter.Update(policy.Interval, c.Now, after, q.Entered, q.Marked+q.Observed)
	cause := own.trigger.Update(&policy.Triggers, m)
	state.Metrics, state.Cause = m, cause
	if c.Trace != nil {
		c.Trace.Responded(policy.KMin, cause, these)
	}
	if policy.Law.On() && c.Ports[out].Role == stage.WAN {
		r := notify.Queue{In: b.Port, Out: out, Class: class, State: state, Cause: congestion.ByDepth}
		marked := s.Law.respond(&r, b, these, float64(after))
		if policy.Marks && marked != 0 {
			s.mark(b, out, class, above(b.Frames, these, before, policy.KMin)&marked)
		}
		return
	}
	if after <= policy.KMin && cause == 0 {
		return
	}
	if c.Ports[out].Role == stage.WAN && (cause != 0 || own.surveyDue(policy.Interval, c.Now)) {
		r := round{Queue: notify.Queue{In: b.Port, Out: out, Class: class, State: state, Cause: cause}, policy: policy, own: own}
		if cause != 0 {
			s.notifyBurst(&r, b, these)
		} else {
			s.survey(&r, b, these)
		}
	}
	if policy.Marks {
		s.mark(b, out, class, above(b.Frames, these, before, policy.KMin)&^b.ByFastCNP)
	}
}

// notifyBurst notifies the senders of data packets that fill the queue: of those whose flows have the largest shares of it (draft-tian
// 5.5). Every reason not to notify them is counted.
func (s *Responder) notifyBurst(r *round, b *frames.Batch, these frames.Mask) {
	c := s.State
	r.State.Threshold = r.policy.Threshold(r.Cause)
	s.beginRound(r)
	for left := these; left != 0; left &= left - 1 {
		i := bits.TrailingZeros64(uint64(left)) % burst.MaxSize
		b.InHand = uint8(i)
		if !b.Records[i].CarriesData() {
			continue
		}
		flow := b.Flow[i]
		if flow.Index == flowtable.None {
			c.Suppress(r.In, counters.FlowUnknown)
			continue
		}
		a := c.Accounts.Begun(flow)
		if uint64(c.Accounts.Share(flow.Index, a, uint8(r.Class)).Queued) < r.least {
			if c.Trace != nil {
				c.Trace.Skips(i, trace.SmallShare)
			}
			continue // another flow's packet causes that flow's notification
		}
		if reason := s.notify(r, b, i, a); reason != counters.Allowed {
			s.notifier.SuppressFlow(&r.Queue, flow.Index, reason)
		}
	}
	b.InHand = frames.NotInHand
}

// above is those of the frames behind which, in a queue that had a depth before they entered it, more bytes wait than a threshold.
func above(frames []burst.Frame, these frames.Mask, depth, threshold uint64) frames.Mask {
	for left := these; left != 0; left &= left - 1 {
		if depth += uint64(frames[bits.TrailingZeros64(uint64(left))].Len); depth > threshold {
			return left
		}
	}
	return 0
}

// notify notifies the sender of a packet of one of the flows with the largest shares, or returns why not; allowed where a later packet may
// cause the notification.
func (s *Responder) notify(r *round, b *frames.Batch, i int, a *account.Flow) counters.Suppression {
	c := s.State
	if r.mostlyOther { // frames without a sender to notify fill the queue: it would be wrong to notify an RDMA flow
		return counters.LargestNotRoCE
	}
	if b.Records[i].DestQP() < packet.ManagementQPs {
		return counters.ManagementQP
	}
	n, m, x := s.notifier, &s.notifier.Note, b.Flow[i].Index
	m.Decision = r.decision
	reason := n.Choose(b, i)
	if reason != counters.Allowed && reason != notify.QpUnknown { // a QP that isn't known yet may be known soon: then the sender's past rates matter
		return reason
	}
	sender := s.senders.Watch(x, a, &r.Queue)
	bytes := c.Learner.Bytes(x)
	sender.Observe(&r.policy.Response, c.Now, bytes, r.State.Metrics.Depth)
	sender.Throughput.Observe(c.Now, bytes)
	if !n.Due(r.policy, x, a) {
		return counters.FlowLimit
	}
	restraint, stricter := sender.Next(&r.policy.Response, r.State.Metrics.Depth, c.Now)
	if restraint != congestion.Unrestrained {
		return counters.Restrained(restraint, sender.Reached)
	}
	if r.own.sent >= congestion.FlowsPerRound && r.policy.Interval > 0 {
		c.Trace.Skips(i, trace.RoundOver)
		return counters.Allowed // in a later round, if it is still among the largest
	}
	if reason != counters.Allowed {
		return reason
	}
	m.FlowBytes, m.FlowRate, m.FairRate, m.Raised = bytes, sender.Throughput.Rate(c.Now, bytes), 0, false
	if stricter {
		m.Decision = sender.Stricter(&r.policy.Response, r.State.Metrics, r.Cause)
		m.Raised = m.Decision.Level > r.decision.Level
		if reason := n.Choose(b, i); reason != counters.Allowed { // not every format expresses every action
			return reason
		}
	}
	if reason := n.Send(b, i, a, &sender.Target); reason != counters.Allowed {
		return reason
	}
	r.own.sent++
	a.SetNotified(c.Now)
	s.senders.Notified(sender, m, r.State.Metrics.Depth)
	return counters.Allowed
}

// mark marks packets that entered a class of a port's queue, as far as they can be marked. In observe mode it only counts them.
func (s *Responder) mark(b *frames.Batch, out, class int, these frames.Mask) {
	c, n := s.State, len(b.Frames)
	observes := c.Policy.ObservesAt(out)
	var marked uint64
	if observes {
		marked = fastpath.Markable(b.Records[:n], uint64(these))
	} else {
		marked = fastpath.MarkBurst(c.IO.Base, b.Frames, b.Records[:n], uint64(these))
	}
	if c.Trace != nil {
		c.Trace.Marked(these, frames.Mask(marked), observes)
	}
	q, marks := &c.Egress[out].Classes[class], uint64(bits.OnesCount64(marked))
	switch {
	case marked == 0:
	case observes:
		q.Observed += marks
		c.Counters.Add(out, counters.ECNObserved, marks)
	default:
		c.Accounts.Mark(b.Flow[:n], marked)
		q.Marked += marks
		c.Counters.Add(out, counters.ECNMarked, marks)
	}
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
func (s *Responder) survey(r *round, b *frames.Batch, these frames.Mask) {
	r.own.surveyed = s.Now
	r.decision = r.policy.Decide(r.State.Metrics, r.Cause)
	s.notifier.About(&r.Queue)
	n := 0
	for left := these; left != 0 && n < surveyed; left &= left - 1 {
		i := bits.TrailingZeros64(uint64(left))
		x := b.Flow[i].Index
		if x == flowtable.None || !b.Records[i].CarriesData() || b.Records[i].DestQP() < packet.ManagementQPs {
			continue
		}
		n++ // also of a sender that may not be notified: a survey checks few packets
		if s.notifier.Note.Decision = r.decision; s.notifier.Choose(b, i) != counters.Allowed {
			continue
		}
		sender, bytes := s.senders.Watch(x, s.Accounts.Get(x), &r.Queue), s.Learner.Bytes(x)
		sender.Observe(&r.policy.Response, s.Now, bytes, r.State.Metrics.Depth)
		sender.Throughput.Observe(s.Now, bytes)
	}
}

// beginRound finds the flows with the largest shares of the class (draft-tian 5.5, step 1): as many as may be notified in a round, and none
// with less than its fair share.
func (s *Responder) beginRound(r *round) {
	if elapsed := s.Now - r.own.round; elapsed >= r.policy.Interval || elapsed < 0 {
		r.own.round, r.own.sent = s.Now, 0
	}
	r.decision = r.policy.Decide(r.State.Metrics, r.Cause)
	s.notifier.About(&r.Queue)
	q := &s.Egress[r.Out].Classes[r.Class]
	q.Track()
	r.mostlyOther = 2*q.Shares.Other > q.Depth
	var top [congestion.FlowsPerRound]uint64
	q.TopOfAll(top[:])
	all := q.SumsOfAll()
	r.least = max(top[len(top)-1], all.FairShare(), 1)
	for n := len(top) - 1; n > 0 && top[n] == 0; n-- {
		r.least = max(r.least, top[n-1])
	}
}
