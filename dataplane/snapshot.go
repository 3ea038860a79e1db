package dataplane

import "github.com/cnpgate/cnpgate/flowtable"

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

// Ask gives the worker a snapshot to fill, which belongs to the worker until Asked is false. It returns false if the worker has another
// one. Any goroutine may call it.
func (w *Worker) Ask(s *Snapshot) bool { return w.asked.CompareAndSwap(nil, s) }

// Asked is true until the worker has filled the snapshot. Any goroutine may call it.
func (w *Worker) Asked(s *Snapshot) bool { return w.asked.Load() == s }

// Requested reports whether the worker has a snapshot to fill. Any goroutine may call it.
func (w *Worker) Requested() bool { return w.asked.Load() != nil }

// Forget withdraws a snapshot that its caller no longer waits for. The worker may be filling it, so the caller must not read it again.
func (w *Worker) Forget(s *Snapshot) { w.asked.CompareAndSwap(s, nil) }

// answer copies flows into the snapshot, a few a step.
func (w *Worker) answer(s *Snapshot) {
	if s.Queue != nil {
		w.answerQueue(s, s.Queue)
		w.asked.CompareAndSwap(s, nil)
		return
	}
	n := entriesBusy
	if w.work == 0 {
		n = entriesIdle
	}
	high := w.flows.High()
	for ; n > 0 && s.At < high && len(s.Flows) < cap(s.Flows); n-- {
		s.At++
		if !w.flows.State(s.At).Live() || s.Between != nil && !s.Between.has(w.flows.Key(s.At)) {
			continue
		}
		s.Flows = s.Flows[:len(s.Flows)+1]
		w.record(s.At, &s.Flows[len(s.Flows)-1])
		if b := s.Between; b != nil {
			b.Standings = b.Standings[:len(s.Flows)]
			stand(w, s.At, &b.Standings[len(s.Flows)-1])
		}
	}
	if s.End = s.At >= high; s.End || len(s.Flows) == cap(s.Flows) {
		w.asked.CompareAndSwap(s, nil)
	}
}

// answerQueue records the flows that are asked for, and those of some frames that wait, evenly spread over the queue: a flow with a large share has one
// of them.
func (w *Worker) answerQueue(s *Snapshot, of *QueueFlows) {
	for _, f := range of.Of[:min(len(of.Of), mostChosen)] {
		if w.flows.Live(f) {
			s.add(w, f)
		}
	}
	c := &w.egress[of.Port].Classes[of.Class]
	c.Track()
	for step, i := max(c.Len()/sampledFrames, 1), 0; i < c.Len(); i += step {
		if _, f := c.At(i); f.Index != flowtable.None && w.flows.Live(f) {
			s.add(w, f)
		}
	}
	of.Time, s.End = w.now+w.plane.wallClock.Load(), true
}

// add records a flow, if there is space for it and it isn't the one that was recorded last.
func (s *Snapshot) add(w *Worker, f flowtable.Ref) {
	n := len(s.Flows)
	if n == cap(s.Flows) || n > 0 && s.Flows[n-1].Flow == f {
		return
	}
	s.Flows = s.Flows[:n+1]
	w.record(f.Index, &s.Flows[n])
}
