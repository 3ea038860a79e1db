package notify

import (
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane/account"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/stage"
	"github.com/cnpgate/cnpgate/pairing"
)

// Resume sends a Resume to each sender that was asked to slow down because of a port's queue, once that has been below K_min for RTT_est
// (draft-tian 5.5.1).
func (s *Senders) Resume(port int) {
	for class := range s.Queues[port] {
		state, q := &s.Queues[port][class], &s.Egress[port].Classes[class]
		if state.Slowed == 0 {
			continue
		}
		policy := &s.Policy.Ports[port]
		depth := q.Waiting()
		if !state.Calm.Update(&policy.Response, s.Now, depth) && !s.Policy.Drain || s.Now < state.ResumeAt {
			continue
		}
		m := state.Meter.Update(policy.Interval, s.Now, depth, q.Entered, q.Marked+q.Observed)
		state.Metrics, state.Threshold = m, policy.KMin
		s.resumeSenders(port, class, m, policy)
	}
}

// resumeAgain is the time after which a Resume that could not be sent is tried again, ns.
const resumeAgain = 1e6

// NextResume is the time when the next Resume of a port's queue may be due, false if none is.
func (s *Senders) NextResume(port int) (at int64, ok bool) {
	for class := range s.Queues[port] {
		state := &s.Queues[port][class]
		since, calm := state.Calm.Since()
		if state.Slowed == 0 || !calm {
			continue
		}
		if due := max(since+max(s.Policy.Ports[port].RTT, 0), state.ResumeAt); !ok || due < at {
			at, ok = due, true
		}
	}
	return at, ok
}

// resumeSenders checks a few entries a step for senders that are due a Resume, so that no step takes long.
func (s *Senders) resumeSenders(port, class int, m congestion.Metrics, policy *stage.PortPolicy) {
	const entriesAStep = 64
	d, n := policy.Ease(m), s.notifier
	for range entriesAStep {
		s.resumed = s.resumed%watchedSenders + 1
		e := &s.of[s.resumed]
		if !e.Slowed || int(e.out) != port || int(e.class) != class {
			continue
		}
		bytes, state := s.Learner.Bytes(e.flow), s.state(e)
		n.About(&Queue{In: int(e.in), Out: port, Class: class, State: state})
		note := &n.Note
		note.Format, note.To, note.Flow, note.Decision, note.sourceQP = e.format, e.Target.Src, e.flow, d, e.sourceQP
		note.FlowBytes, note.FlowRate, note.FairRate = bytes, e.Throughput.Rate(s.Now, bytes), 0
		note.frame, note.packet, n.request.Target = nil, nil, &e.Target
		if policy.Resumes && e.format.Expresses(congestion.Resume) && !n.resume(policy, s.Accounts.Known(e.flow)) {
			state.ResumeAt = s.Now + resumeAgain
			continue
		}
		s.Notified(e, &n.Note, 0)
	}
}

// resume sends the sender of the note its Resume, which counts as a notification of its flow (draft-tian 5.5). It returns false if the
// Resume has to wait. One that may not be sent, or can't be built, never can, and counts as done.
func (n *Notifier) resume(policy *stage.PortPolicy, a *account.Flow) bool {
	m := &n.Note
	if reason := n.mayResume(m); reason != counters.Allowed {
		n.Suppress(int(m.In), reason)
		return true
	}
	if !n.Due(policy, m.Flow, a) {
		return false
	}
	reason := n.admit(m)
	if reason == counters.Allowed {
		reason = n.emit(m, a)
	}
	if reason != counters.Allowed {
		n.Suppress(int(m.In), reason)
		return reason == counters.NotBuilt
	}
	a.SetNotified(n.Now) // an entry ends with its flow
	return true
}

// mayResume reports whether a Resume may be sent, by the present policy: draft-tian 10.5 forbids a Long-haul CNP to a host that isn't
// configured for it, and a sender that is behind a proxy by now has no Resume. No notification names the QPs of a connection that RDMA-CM
// has released.
func (n *Notifier) mayResume(m *Note) counters.Suppression {
	if _, behind := n.proxyOf(m.To); behind {
		return counters.Suppression(congestion.NotExpressible)
	}
	if pairing.Answer(n.Flows.State(m.Flow).Answer()).Ended() != pairing.Open {
		return counters.Suppression(congestion.SourceQPUnknown)
	}
	return counters.Suppression(n.Policy.Who.Permits(m.Format, m.To, congestion.Resume))
}
