package dataplane

import (
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane/account"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// initHistory makes the lists of what the worker sent and suppressed.
func (w *Worker) initHistory(c *Config) error {
	memory, err := c.Allocate(historySize(historyRecords))
	if err != nil {
		return err
	}
	w.notifications = newHistory(memory, historyRecords)
	if memory, err = c.Allocate(historySize(suppressedRecords)); err != nil {
		return err
	}
	w.suppressions = newHistory(memory, suppressedRecords)
	return nil
}

// recordSent keeps what was sent, or is only observed, with its frame.
func (w *Worker) recordSent(n *note, frame []byte, o Outcome) {
	if w.trace != nil {
		w.trace.sent(w.inHand, n, o)
	}
	r := w.notifications.record()
	if r == nil {
		return
	}
	r.Decision, r.Format, r.To, r.Outcome, r.Reason = n.decision, n.format, n.to, o, allowed
	r.FlowBytes, r.FlowRate, r.Length = n.flowBytes, n.flowRate, uint16(len(frame))
	copy(r.Frame[:], frame)
	r.In, r.Out, r.Class, r.Cause, r.Raised = n.in, n.out, n.class, n.cause, n.raised
	w.recordState(r, n.flow, n.account, n.state)
}

// recordSuppressed keeps that the sender of a flow, which has an account, was not notified, unless a record of the same reason was made lately.
func (w *Worker) recordSuppressed(r *response, x flowtable.Index, s Suppression) {
	if x == flowtable.None || w.now < w.suppressedNext[s] {
		return
	}
	w.suppressedNext[s] = w.now + suppressedInterval
	to := w.suppressions.record()
	if to == nil {
		return
	}
	to.Decision, to.Format, to.To, to.Outcome, to.Reason = congestion.Decision{}, 0, packet.Addr{}, Suppressed, s
	to.FlowBytes, to.FlowRate, to.Length = w.learner.Bytes(x), 0, 0
	to.In, to.Out, to.Class, to.Cause, to.Raised = uint8(r.in), uint8(r.out), uint8(r.class), r.cause, false
	w.recordState(to, x, w.accounts.Known(x), r.state)
}

// recordState notes the time, the flow, and the state of the queue.
func (w *Worker) recordState(r *recordSlot, x flowtable.Index, a *account.Flow, q *classState) {
	r.Time = w.now + w.plane.wallClock.Load()
	state := w.flows.State(x)
	r.Key, r.Flow, r.QP = *w.flows.Key(x), flowtable.Ref{Index: x, Generation: state.Generation()}, w.learner.Answer(x, state.Answer())
	r.Metrics, r.Threshold, r.Queued = q.metrics, q.threshold, uint64(w.accounts.Share(x, a, r.Class).Queued)
}

// arrived is the state of the queue for a notification about a packet that arrived with CE: it says nothing about a queue here.
var arrived classState
