package respond

import (
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane/account"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/notify"
	"github.com/cnpgate/cnpgate/dataplane/pacing"
	"github.com/cnpgate/cnpgate/dataplane/stage"
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

	Choice  counters.Suppression // of the recipient and the format
	Format  packet.Notification
	To      packet.Addr // the sender, or its proxy
	Refused bool        // the sender has refused the Fast CNP option
	Action  congestion.Action
	Observe bool // it would only be counted

	Law       bool   // the control law decides, else thresholds
	Depth     uint64 // of the queue
	Threshold uint64 // depth above which senders are notified
	Congested bool   // the queue is in a state in which senders are notified

	Rate, Fair    uint64               // of the flow and F, bit/s; only by the law
	Queued, Least uint64               // bytes of the flow in the queue, and the least with which its sender is notified; only by thresholds
	Fills         bool                 // the flow is one of those whose senders are notified
	Largest       counters.Suppression // LargestNotRoCE
	Interval      counters.Suppression // FlowLimit
	Restraint     counters.Suppression // of a sender that slows down
	Limit         counters.Suppression // of the destination and the port, and space for the notification

	Ignores  bool  // the sender counts as one that doesn't react to notifications
	Now      int64 // Unix time, ns
	Notified int64 // when the sender was last notified, or would have been, about the flow, Unix time in ns; 0: never
}

// Held is the first reason that holds the notification back, allowed if there is none: first the one that lasts, then those of the moment
// in the order in which the worker finds them.
func (s *Standing) Held() counters.Suppression {
	for _, reason := range [...]counters.Suppression{s.Choice, s.Largest, s.Interval, s.Restraint, s.Limit} {
		if reason != counters.Allowed {
			return reason
		}
	}
	return counters.Allowed
}

// Stand finds the standing of a flow that has been recorded.
func (w *Responder) Stand(x flowtable.Index, s *Standing) {
	*s = Standing{Now: w.UnixTime()}
	k := w.Flows.Key(x)
	in := int(k.Port)
	s.Out = w.Ports[in].Peer
	if s.FromWAN = w.Ports[s.Out].Role != stage.WAN; s.FromWAN {
		return
	}
	a := w.Accounts.Find(x)
	s.Class, s.ClassKnown = w.classOfFlow(s.Out, x, a)
	if a != nil {
		if at := a.LastNotified.Load(); at != 0 {
			s.Notified = at + w.Clock.Load()
		}
	}
	q := &w.Egress[s.Out]
	state := w.Queues[s.Out][s.Class] // a copy, as are the sender and the note: nothing changes
	policy := &w.Policy.Ports[s.Out]
	about := notify.Queue{In: in, Out: s.Out, Class: s.Class, State: &state, Cause: state.Cause}
	s.Depth = q.Classes[s.Class].Waiting()
	n := notify.Note{Message: notify.Message{In: uint8(in), Out: uint8(s.Out), Class: uint8(s.Class), Cause: congestion.ByDepth}, Queue: &w.Egress[in].Notifications, Flow: x}
	if s.Law = policy.Law.On(); s.Law {
		w.Law.stand(&about, x, s)
		n.Decision.Action = congestion.RateReduce
	} else {
		n.Decision = policy.Decide(state.Metrics, congestion.ByDepth)
		w.standByThresholds(&about, x, a, &n, s)
	}
	s.Refused = w.Host.Refusals.Has(pacing.SenderOf(k), w.Now)
	s.Choice = counters.ManagementQP
	if k.DestQP >= packet.ManagementQPs {
		s.Choice = w.notifier.ChooseFor(&n, x, k, false)
	}
	s.Action = n.Decision.Action
	if s.Choice != counters.Allowed {
		return
	}
	s.Format, s.To, s.Observe = n.Format, n.To, w.Policy.Observes(s.Out, n.Format)
	s.Limit = w.notifier.Limited(&n)
}

// stand is what the law says of a flow.
func (l *Law) stand(r *notify.Queue, x flowtable.Index, s *Standing) {
	const bits = 8e9 // a second, of a byte a nanosecond
	fair := l.FairRate(r.Out, r.Class)
	law := &l.Policy.Ports[r.Out].Law
	s.Threshold = uint64(law.NotifiesAbove())
	s.Congested = law.Notifies(float64(s.Depth))
	if f := &l.rates[x]; f.generation == l.Flows.State(x).Generation() {
		above := true
		if e := l.sharing.last(f.sender); e != nil {
			fair = e.share(fair)
			above = e.Over(fair)
			fair = e.Level(fair)
		}
		s.Rate, s.Fills = uint64(f.Rate()*bits), above && f.Over(fair)
	}
	s.Fair = uint64(fair * bits)
	s.Ignores = l.senders.ignores(l.Flows.Key(x))
}

// standByThresholds is what the response by thresholds says of a flow. It sets the note's decision.
func (w *Responder) standByThresholds(of *notify.Queue, x flowtable.Index, a *account.Flow, n *notify.Note, s *Standing) {
	policy := &w.Policy.Ports[of.Out]
	s.Threshold, s.Congested = policy.KMax, of.Cause != 0
	if !s.Congested || a == nil {
		return
	}
	own := w.thresholds[of.Out][of.Class]
	r := round{Queue: *of, policy: policy, own: &own}
	w.beginRound(&r)
	n.Decision = r.decision
	s.Queued, s.Least = uint64(w.Accounts.Share(x, a, uint8(r.Class)).Queued), r.least
	if s.Fills = s.Queued >= s.Least; !s.Fills {
		return
	}
	if r.mostlyOther {
		s.Largest = counters.LargestNotRoCE
	}
	var sender notify.Watched
	if e := w.senders.Find(x, a, of); e != nil {
		sender = *e
	}
	sender.Observe(&policy.Response, w.Now, w.Learner.Bytes(x), s.Depth)
	if !w.notifier.Due(policy, x, a) {
		s.Interval = counters.FlowLimit
	}
	restraint, stricter := sender.Next(&policy.Response, s.Depth, w.Now)
	if restraint != congestion.Unrestrained {
		s.Restraint = counters.Restrained(restraint, sender.Reached)
	}
	if stricter {
		n.Decision = sender.Stricter(&policy.Response, r.State.Metrics, r.Cause)
	}
}

// classOfFlow is the class that a flow's packets were last seen in, or if that isn't known, the one with the longest queue.
func (w *Responder) classOfFlow(out int, x flowtable.Index, a *account.Flow) (class int, known bool) {
	q := &w.Egress[out]
	if a != nil {
		if class, known = w.senders.ClassOf(x, a, out); known {
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
