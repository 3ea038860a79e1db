package dataplane

import (
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane/account"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// recordSent keeps what was sent, or is only observed, with its frame.
func (n *notifier) recordSent(m *note, frame []byte, o Outcome) {
	c := n.common
	if c.trace != nil {
		c.trace.sent(c.rx.inHand, m.format, m.to, m.in, o)
	}
	r := n.sent.record()
	if r == nil {
		return
	}
	r.Decision, r.Format, r.To, r.Outcome, r.Reason = m.decision, m.format, m.to, o, allowed
	r.FlowBytes, r.FlowRate, r.Length = m.flowBytes, m.flowRate, uint16(len(frame))
	copy(r.Frame[:], frame)
	r.In, r.Out, r.Class, r.Cause, r.Raised = m.in, m.out, m.class, m.cause, m.raised
	n.recordState(r, m.flow, m.account, m.state)
}

// recordSuppressed keeps that the sender of a flow, which has an account, was not notified, unless a record of the same reason was made
// lately.
func (n *notifier) recordSuppressed(r *congested, x flowtable.Index, s Suppression) {
	if x == flowtable.None || n.now < n.suppressedNext[s] {
		return
	}
	n.suppressedNext[s] = n.now + suppressedInterval
	to := n.suppressed.record()
	if to == nil {
		return
	}
	to.Decision, to.Format, to.To, to.Outcome, to.Reason = congestion.Decision{}, 0, packet.Addr{}, Suppressed, s
	to.FlowBytes, to.FlowRate, to.Length = n.learner.Bytes(x), 0, 0
	to.In, to.Out, to.Class, to.Cause, to.Raised = uint8(r.in), uint8(r.out), uint8(r.class), r.cause, false
	n.recordState(to, x, n.accounts.Known(x), r.state)
}

// recordState notes the time, the flow, and the state of the queue.
func (n *notifier) recordState(r *recordSlot, x flowtable.Index, a *account.Flow, q *queueState) {
	c := n.common
	r.Time = c.unixTime()
	state := c.flows.State(x)
	r.Key, r.Flow, r.QP = *c.flows.Key(x), flowtable.Ref{Index: x, Generation: state.Generation()}, c.learner.Answer(x, state.Answer())
	r.Metrics, r.Threshold, r.Queued = q.metrics, q.threshold, uint64(c.accounts.Share(x, a, r.Class).Queued)
}

// arrived is the state of the queue for a notification about a packet that arrived with CE: it says nothing about a queue here.
var arrived queueState
