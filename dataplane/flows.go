package dataplane

import (
	"iter"

	"github.com/cnpgate/cnpgate/dataplane/mailbox"
	"github.com/cnpgate/cnpgate/dataplane/notify"
	"github.com/cnpgate/cnpgate/dataplane/respond"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing"
)

// entriesAtOnce are the entries of the flow table that a step copies to a snapshot. Frames that arrive meanwhile wait in a device's ring: of a large table each entry may take 2 us.
const entriesAtOnce = 32

// Snapshot asks a worker for the records of its flows, as many as fit. A flow's counters are plain words of its worker, so no other
// goroutine may read them while it runs: the worker copies some at the end of each step, and the caller waits.
type Snapshot struct {
	// Flows is filled up to its capacity. In a series of snapshots, each beginning where the one before ended, a flow that lives during the
	// whole series appears exactly once; others may be missed.
	Flows []FlowRecord
	// At is the last index copied; 0 to begin.
	At flowtable.Index
	// End means that there are no flows after At.
	End bool

	// Queue asks for flows of one queue in place of all: those of Of that live, at most mostChosen, then some that have frames in the queue. A flow
	// may be in Flows twice.
	Queue *QueueFlows
	// Between asks for the flows between two hosts in place of all.
	Between *Between
	// Health asks for copies of followed connections in place of flows.
	Health *HealthCopy
	// Recording begins or ends a recording of a connection, in place of flows.
	Recording *HealthRecording
}

// QueueFlows says which flows of a queue are wanted.
type QueueFlows struct {
	Port, Class int
	Of          []flowtable.Ref
	Time        int64 // when the worker has answered, Unix time in ns
}

// mostChosen bounds QueueFlows.Of, and sampledFrames the frames of a queue whose flows a worker records.
const (
	mostChosen    = 64
	sampledFrames = 32
)

// Between asks for the flows between two hosts, in both directions, and for the standing of each.
type Between struct {
	A, B      packet.Addr
	Standings []respond.Standing // of the flows of the Snapshot, by place; as much capacity
}

func (b *Between) has(k *flowtable.Key) bool {
	return k.Src == b.A && k.Dst == b.B || k.Src == b.B && k.Dst == b.A
}

// snapshots is how a worker gets the snapshots to fill, one at a time.
type snapshots = mailbox.Request[Snapshot]

// fill copies flows into the snapshot, a few a step. It reports whether that was all.
func (s *Snapshot) fill(w *Worker) bool {
	if s.Health != nil {
		return s.fillHealth(w, s.Health)
	}
	if r := s.Recording; r != nil {
		r.fill(w)
		return true
	}
	if s.Queue != nil {
		s.fillFromQueue(w, s.Queue)
		return true
	}
	high := w.state.Flows.High()
	for n := entriesAtOnce; n > 0 && s.At < high && len(s.Flows) < cap(s.Flows); n-- {
		s.At++
		if !w.state.Flows.State(s.At).Live() || s.Between != nil && !s.Between.has(w.state.Flows.Key(s.At)) {
			continue
		}
		s.Flows = s.Flows[:len(s.Flows)+1]
		s.Flows[len(s.Flows)-1].of(w, s.At)
		if b := s.Between; b != nil {
			b.Standings = b.Standings[:len(s.Flows)]
			w.responder.Stand(s.At, &b.Standings[len(s.Flows)-1])
		}
	}
	s.End = s.At >= high
	return s.End || len(s.Flows) == cap(s.Flows)
}

// fillFromQueue records the flows that are asked for, and those of some frames that wait, evenly spread over the queue: a flow with a large share has
// one of them.
func (s *Snapshot) fillFromQueue(w *Worker, of *QueueFlows) {
	for _, f := range of.Of[:min(len(of.Of), mostChosen)] {
		s.add(w, f)
	}
	c := &w.state.Egress[of.Port].Classes[of.Class]
	c.Track()
	for step, i := max(c.Len()/sampledFrames, 1), 0; i < c.Len(); i += step {
		_, f := c.At(i)
		s.add(w, f)
	}
	of.Time, s.End = w.state.UnixTime(), true
}

// add records a flow that lives, if there is space for it and it isn't the one that was recorded last.
func (s *Snapshot) add(w *Worker, f flowtable.Ref) {
	n := len(s.Flows)
	if f.Index == flowtable.None || !w.state.Flows.Live(f) || n == cap(s.Flows) || n > 0 && s.Flows[n-1].Flow == f {
		return
	}
	s.Flows = s.Flows[:n+1]
	s.Flows[n].of(w, f.Index)
}

// FillFrom fills the snapshot at once. Only the goroutine that runs the worker may call it: a simulation, between two steps.
func (s *Snapshot) FillFrom(w *Worker) {
	for !s.fill(w) {
	}
}

// FlowRecord is a worker's data about a flow: its key, counts, marks and notifications, and its source QP.
type FlowRecord struct {
	Flow     flowtable.Ref
	At       int64 // when the record was made, ns by the worker's clock
	LastSeen int64 // when the flow's last packet came, by the same clock
	Key      flowtable.Key
	Queued   uint64 // bytes that wait in a queue, as far as the worker tracks shares
	Traffic  pairing.Traffic
	Marked   uint64                           // packets marked CE here
	Notified [packet.SentNotifications]uint32 // notifications sent or observed, by kind
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

// observer is a worker's flowtable.Observer: it informs the learner when flows begin and end, and reports those that end.
type observer struct {
	w      *Worker
	ended  func(*FlowRecord) // nil: no report
	record FlowRecord        // for ended
}

// Begin implements flowtable.Observer.
func (o *observer) Begin(x flowtable.Index) {
	o.w.state.Learner.Begin(x)
	o.w.state.Trace.Began(x)
}

// End implements flowtable.Observer.
func (o *observer) End(x flowtable.Index, why flowtable.Ending) {
	if o.ended != nil {
		o.record.of(o.w, x)
		if o.record.Ended == pairing.Open {
			o.record.Ended = endings[why]
		}
		o.ended(&o.record)
	}
	if a := o.w.state.Accounts.Find(x); a != nil {
		o.w.senders.Release(a)
		o.w.state.Egress[o.w.state.Ports[o.w.state.Flows.Key(x).Port].Peer].End(x, a)
		paced := a.Paced
		a.Begin(a.Generation.Load() + 1) // of the next flow, so that the tags of queued frames match no account
		if why == flowtable.Renewed && paced != 0 {
			o.w.state.Pacers[o.w.state.Ports[o.w.state.Flows.Key(x).Port].Peer].Renewed(x, a, paced)
		}
	}
	o.w.state.Learner.End(x)
}

// endings are the reasons for which a flow ends whose record pairing has not closed.
var endings = [...]pairing.Ending{
	flowtable.Aged: pairing.EndedAged, flowtable.Evicted: pairing.EndedEviction, flowtable.Renewed: pairing.EndedReuse,
}
