package dataplane

import (
	"sync/atomic"

	"github.com/cnpgate/cnpgate/dataplane/respond"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
)

const (
	entriesBusy = 32  // entries of the flow table that a step with frames copies to a snapshot
	entriesIdle = 128 // and without frames: some 10 us (BenchmarkSnapshot), during which a device's ring must hold arriving frames
)

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

// snapshots is how a worker gets the snapshots to fill, one at a time. Any goroutine may call the methods.
type snapshots struct {
	asked atomic.Pointer[Snapshot]
}

// Ask gives the worker a snapshot to fill, which belongs to the worker until Asked is false. It returns false if the worker has another one.
func (a *snapshots) Ask(s *Snapshot) bool { return a.asked.CompareAndSwap(nil, s) }

// Asked is true until the worker has filled the snapshot.
func (a *snapshots) Asked(s *Snapshot) bool { return a.asked.Load() == s }

// Requested reports whether the worker has a snapshot to fill.
func (a *snapshots) Requested() bool { return a.asked.Load() != nil }

// Forget withdraws a snapshot, and ends one that is filled. The worker may be filling it, so a caller that withdraws it must not read it again.
func (a *snapshots) Forget(s *Snapshot) { a.asked.CompareAndSwap(s, nil) }

// fill copies flows into the snapshot, a few a step. It reports whether that was all.
func (s *Snapshot) fill(w *Worker) bool {
	if s.Queue != nil {
		s.fillFromQueue(w, s.Queue)
		return true
	}
	n := entriesBusy
	if w.state.Moved == 0 {
		n = entriesIdle
	}
	high := w.state.Flows.High()
	for ; n > 0 && s.At < high && len(s.Flows) < cap(s.Flows); n-- {
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
