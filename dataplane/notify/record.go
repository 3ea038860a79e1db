package notify

import (
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane/account"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/stage"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// recordSent keeps what was sent, or is only observed, with its frame.
func (n *Notifier) recordSent(m *Note, frame []byte, o counters.Outcome) {
	c := n.State
	if c.Trace != nil {
		c.Trace.Sent(c.Batch.InHand, m.Format, m.To, m.In, o)
	}
	r := n.Sent.record()
	if r == nil {
		return
	}
	r.Decision, r.Format, r.To, r.Outcome, r.Reason = m.Decision, m.Format, m.To, o, counters.Allowed
	r.FlowBytes, r.FlowRate, r.Length = m.FlowBytes, m.FlowRate, uint16(len(frame))
	copy(r.Frame[:], frame)
	r.In, r.Out, r.Class, r.Cause, r.Raised = m.In, m.Out, m.Class, m.Cause, m.Raised
	n.recordState(r, m.Flow, m.account, m.state)
}

// recordSuppressed keeps that the sender of a flow, which has an account, was not notified, unless a record of the same reason was made
// lately.
func (n *Notifier) recordSuppressed(r *Queue, x flowtable.Index, s counters.Suppression) {
	if x == flowtable.None || n.Now < n.suppressedNext[s] {
		return
	}
	n.suppressedNext[s] = n.Now + suppressedInterval
	to := n.Suppressed.record()
	if to == nil {
		return
	}
	to.Decision, to.Format, to.To, to.Outcome, to.Reason = congestion.Decision{}, 0, packet.Addr{}, counters.Suppressed, s
	to.FlowBytes, to.FlowRate, to.Length = n.Learner.Bytes(x), 0, 0
	to.In, to.Out, to.Class, to.Cause, to.Raised = uint8(r.In), uint8(r.Out), uint8(r.Class), r.Cause, false
	n.recordState(to, x, n.Accounts.Known(x), r.State)
}

// recordState notes the time, the flow, and the state of the queue.
func (n *Notifier) recordState(r *recordSlot, x flowtable.Index, a *account.Flow, q *stage.QueueState) {
	c := n.State
	r.Time = c.UnixTime()
	state := c.Flows.State(x)
	r.Key, r.Flow, r.QP = *c.Flows.Key(x), flowtable.Ref{Index: x, Generation: state.Generation()}, c.Learner.Answer(x, state.Answer())
	r.Metrics, r.Threshold, r.Queued = q.Metrics, q.Threshold, uint64(c.Accounts.Share(x, a, r.Class).Queued)
}

// Arrived is the state of the queue for a notification about a packet that arrived with CE: it says nothing about a queue here.
var Arrived stage.QueueState
