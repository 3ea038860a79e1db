package dataplane

import (
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane/account"
	"github.com/cnpgate/cnpgate/dataplane/pacing"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// Standing is what the worker would decide about a packet of a flow that enters the queue now: the steps of law and notify, without their
// effects. Where a step holds the notification back, its Suppression is set.
type Standing struct {
	Out        int  // port of the queue
	FromWAN    bool // the queue is a fabric port's: no sender is notified of it, and the rest is not set
	Class      int
	ClassKnown bool // else Class is the one with the longest queue

	Choice  Suppression // of the recipient and the format
	Format  packet.Notification
	To      packet.Addr // the sender, or its proxy
	Refused bool        // the sender has refused the Fast CNP option
	Action  congestion.Action
	Observe bool // it would only be counted

	Law       bool   // the control law decides, else thresholds
	Depth     uint64 // of the queue
	Threshold uint64 // depth above which senders are notified
	Congested bool   // the queue is in a state in which senders are notified

	Rate, Fair    uint64      // of the flow and F, bit/s; only by the law
	Queued, Least uint64      // bytes of the flow in the queue, and the least with which its sender is notified; only by thresholds
	Fills         bool        // the flow is one of those whose senders are notified
	Largest       Suppression // LargestNotRoCE
	Interval      Suppression // FlowLimit
	Restraint     Suppression // of a sender that slows down
	Limit         Suppression // of the destination and the port, and space for the notification

	Ignores  bool  // the sender counts as one that doesn't react to notifications
	Now      int64 // Unix time, ns
	Notified int64 // when the sender was last notified, or would have been, about the flow, Unix time in ns; 0: never
}

// Held is the first reason that holds the notification back, allowed if there is none: first the one that lasts, then those of the moment
// in the order in which the worker finds them.
func (s *Standing) Held() Suppression {
	for _, reason := range [...]Suppression{s.Choice, s.Largest, s.Interval, s.Restraint, s.Limit} {
		if reason != allowed {
			return reason
		}
	}
	return allowed
}

// stand finds the standing of a flow that has been recorded.
func (w *responder) stand(x flowtable.Index, s *Standing) {
	*s = Standing{Now: w.unixTime()}
	k := w.flows.Key(x)
	in := int(k.Port)
	s.Out = w.ports[in].Peer
	if s.FromWAN = w.ports[s.Out].Role != WAN; s.FromWAN {
		return
	}
	a := w.accounts.Find(x)
	s.Class, s.ClassKnown = w.classOfFlow(s.Out, x, a)
	if a != nil {
		if at := a.LastNotified.Load(); at != 0 {
			s.Notified = at + w.clock.Load()
		}
	}
	q := &w.egress[s.Out]
	state := w.queues[s.Out][s.Class] // a copy, as are the sender and the note: nothing changes
	policy := &w.policy.Ports[s.Out]
	about := congested{in, s.Out, s.Class, policy, &state, state.metrics, state.cause}
	s.Depth = q.Classes[s.Class].Waiting()
	n := note{in: uint8(in), out: uint8(s.Out), class: uint8(s.Class), cause: congestion.ByDepth, queue: &w.egress[in].Notifications, flow: x}
	if s.Law = policy.Law.On(); s.Law {
		w.law.stand(&about, x, s)
		n.decision.Action = congestion.RateReduce
	} else {
		n.decision = policy.Decide(state.metrics, congestion.ByDepth)
		w.standByThresholds(&about, x, a, &n, s)
	}
	s.Refused = w.host.Refusals.Has(pacing.SenderOf(k), w.now)
	s.Choice = ManagementQP
	if k.DestQP >= packet.ManagementQPs {
		s.Choice = w.notifier.chooseFor(&n, x, k, false)
	}
	s.Action = n.decision.Action
	if s.Choice != allowed {
		return
	}
	s.Format, s.To, s.Observe = n.format, n.to, w.policy.observes(s.Out, n.format)
	s.Limit = w.notifier.limited(&n)
}

// stand is what the law says of a flow.
func (l *law) stand(r *congested, x flowtable.Index, s *Standing) {
	const bits = 8e9 // a second, of a byte a nanosecond
	fair := l.fairRate(r.out, r.class)
	s.Threshold = uint64(r.policy.Law.NotifiesAbove())
	s.Congested = r.policy.Law.Notifies(float64(s.Depth))
	s.Fair = uint64(fair * bits)
	if f := &l.rates[x]; f.generation == l.flows.State(x).Generation() {
		s.Rate, s.Fills = uint64(f.Rate()*bits), f.Over(fair)
	}
	s.Ignores = l.senders.ignores(l.flows.Key(x))
}

// standByThresholds is what the response by thresholds says of a flow. It sets the note's decision.
func (w *responder) standByThresholds(of *congested, x flowtable.Index, a *account.Flow, n *note, s *Standing) {
	s.Threshold, s.Congested = of.policy.KMax, of.cause != 0
	if !s.Congested || a == nil {
		return
	}
	own := w.thresholds[of.out][of.class]
	r := round{congested: *of, own: &own}
	w.beginRound(&r)
	n.decision = r.decision
	s.Queued, s.Least = uint64(w.accounts.Share(x, a, uint8(r.class)).Queued), r.least
	if s.Fills = s.Queued >= s.Least; !s.Fills {
		return
	}
	if r.mostlyOther {
		s.Largest = LargestNotRoCE
	}
	var sender watched
	if e := w.senders.find(x, a, of); e != nil {
		sender = *e
	}
	sender.Observe(&r.policy.Response, w.now, w.learner.Bytes(x), s.Depth)
	if !w.notifier.due(r.policy, x, a) {
		s.Interval = FlowLimit
	}
	restraint, stricter := sender.Next(&r.policy.Response, s.Depth, w.now)
	if restraint != congestion.Unrestrained {
		s.Restraint = restrained(restraint, sender.reached)
	}
	if stricter {
		n.decision = sender.Stricter(&r.policy.Response, r.metrics, r.cause)
	}
}

// classOfFlow is the class that a flow's packets were last seen in, or if that isn't known, the one with the longest queue.
func (w *responder) classOfFlow(out int, x flowtable.Index, a *account.Flow) (class int, known bool) {
	q := &w.egress[out]
	if a != nil {
		if class, known = w.senders.classOf(x, a, out); known {
			return class, true
		}
	}
	class = 0
	switch {
	case len(q.Classes) == 1:
		return 0, true
	case a == nil:
	case a.Queued > 0 || a.Class() > 0:
		return int(a.Class()), true
	}
	for c := range q.Classes {
		if q.Classes[c].Waiting() > q.Classes[class].Waiting() {
			class = c
		}
	}
	return class, false
}
