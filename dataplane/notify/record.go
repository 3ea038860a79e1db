package notify

import (
	"github.com/cnpgate/cnpgate/dataplane/account"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/stage"
	"github.com/cnpgate/cnpgate/flowtable"
)

// recordSent keeps what was sent, or is only observed, with its frame.
func (n *Notifier) recordSent(m *Note, a *account.Flow, frame []byte, o counters.Outcome) {
	c := n.State
	if c.Trace != nil {
		c.Trace.Sent(c.Batch.InHand, m.Format, m.To, m.In, o)
	}
	r := n.Sent.record()
	if r == nil {
		return
	}
	r.Message, r.Outcome, r.Reason, r.Length = m.Message, o, counters.Allowed, uint16(len(frame))
	copy(r.Frame[:], frame)
	n.recordState(r, m.Flow, a, m.state)
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
	to.Message = Message{FlowBytes: n.Learner.Bytes(x), In: uint8(r.In), Out: uint8(r.Out), Class: uint8(r.Class), Cause: r.Cause}
	to.Outcome, to.Reason, to.Length = counters.Suppressed, s, 0
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
