package dataplane

import "github.com/cnpgate/cnpgate/flowtable"

const (
	entriesBusy = 32  // entries of the flow table that a step looks at for a snapshot when it has frames
	entriesIdle = 128 // and when it has none: some 10 us (BenchmarkSnapshot), in which a device's ring must hold what comes
)

// Snapshot asks a worker for the records of its flows, as many as fit. A flow's counters are plain words of its worker, so no other
// goroutine may read them while it runs: the worker copies some at the end of each step, and the caller waits.
type Snapshot struct {
	// Flows is filled up to its capacity. A flow that lives from the first snapshot of a row to the last, each beginning where the one
	// before ended, is in one of them, and once; others may be missed.
	Flows []FlowRecord
	// At is the last index looked at; 0 to begin.
	At flowtable.Index
	// End says that there are no flows behind At.
	End bool
}

// Ask hands the worker a snapshot to fill, which is the worker's until Asked is false; false if another one is asked for. Any
// goroutine may call it.
func (w *Worker) Ask(s *Snapshot) bool { return w.asked.CompareAndSwap(nil, s) }

// Asked is true while the worker is still to fill the snapshot. Any goroutine may call it.
func (w *Worker) Asked(s *Snapshot) bool { return w.asked.Load() == s }

// Forget withdraws a snapshot that its caller no longer waits for. The worker may be filling it, so the caller must not look at it again.
func (w *Worker) Forget(s *Snapshot) { w.asked.CompareAndSwap(s, nil) }

// answer copies flows for the one who asks, a few a step.
func (w *Worker) answer(s *Snapshot) {
	n := entriesBusy
	if w.work == 0 {
		n = entriesIdle
	}
	high := w.flows.High()
	for ; n > 0 && s.At < high && len(s.Flows) < cap(s.Flows); n-- {
		s.At++
		if w.flows.State(s.At).Live() {
			s.Flows = s.Flows[:len(s.Flows)+1]
			w.record(s.At, &s.Flows[len(s.Flows)-1])
		}
	}
	if s.End = s.At >= high; s.End || len(s.Flows) == cap(s.Flows) {
		w.asked.CompareAndSwap(s, nil)
	}
}
