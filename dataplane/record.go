package dataplane

import (
	"iter"

	"github.com/cnpgate/cnpgate/dataplane/notify"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing"
)

// FlowRecord is a worker's data about a flow: its key, counts, marks and notifications, and its source QP.
type FlowRecord struct {
	Flow     flowtable.Ref
	At       int64 // when the record was made, ns by the worker's clock
	LastSeen int64 // when the flow's last packet came, by the same clock
	Key      flowtable.Key
	Queued   uint64 // bytes that wait in a queue, as far as the worker tracks shares
	Traffic  pairing.Traffic
	Marked   uint64                           // packets marked CE here
	Notified [packet.SentNotifications]uint32 // notifications sent, by kind
	View     pairing.Description
	// Unresponsive: the flow's sender doesn't react to notifications.
	Unresponsive bool
	Ended        pairing.Ending // pairing.Open while the flow is alive
}

// of makes it the record of a worker's flow, which may be about to end.
func (r *FlowRecord) of(w *Worker, x flowtable.Index) {
	r.Flow, r.At, r.LastSeen = w.state.Flows.Ref(x), w.state.Now, w.state.Flows.LastSeen(x)
	r.Key, r.Traffic, r.View = *w.state.Flows.Key(x), w.state.Learner.Traffic(x), w.state.Learner.Describe(x)
	r.Ended = r.View.Ended()
	r.Unresponsive = w.responder.Law.Unresponsive(&r.Key)
	r.Queued, r.Marked, r.Notified = 0, 0, [packet.SentNotifications]uint32{}
	if a := w.state.Accounts.Find(x); a != nil {
		r.Queued, r.Marked, r.Notified = w.state.Accounts.QueuedBytes(x, a), a.Marked, a.Notified
	}
}

// Records are the flows of a worker that has stopped, or that the caller's goroutine steps, in the order of their indexes. Each record is
// valid until the next one.
func (w *Worker) Records() iter.Seq[*FlowRecord] {
	return func(yield func(*FlowRecord) bool) {
		var r FlowRecord
		for x := flowtable.Index(1); x <= w.state.Flows.High(); x++ {
			if !w.state.Flows.State(x).Live() {
				continue
			}
			if r.of(w, x); !yield(&r) {
				return
			}
		}
	}
}

// FlowStats counts the worker's flows. Any goroutine may call it.
func (w *Worker) FlowStats() flowtable.Stats { return w.state.Flows.Stats() }

// PairingStats counts what the worker has learned about source QPs. Any goroutine may call it.
func (w *Worker) PairingStats() pairing.Stats { return w.state.Learner.Stats() }

// Notifications are the notifications that the worker sent, or would have sent where it only observes.
func (w *Worker) Notifications() *notify.History { return &w.notifier.Sent }

// SuppressedNotifications are those that were suppressed: of each reason one in 10 ms, at most.
func (w *Worker) SuppressedNotifications() *notify.History { return &w.notifier.Suppressed }
