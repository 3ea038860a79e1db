package dataplane

import (
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/pairing"
)

// enter puts one frame of a flow at the end of a class.
func (q *egress) enter(class int, f burst.Frame, x flowtable.Index) {
	q.enterAll(class, []burst.Frame{f}, []flowtable.Ref{q.flows.Ref(x)}, uint64(f.Len))
}

// largest is the bytes of the flow that has most, while flows are ranked.
func (s *flowShares) largest() uint64 {
	var top [1]uint64
	s.top(top[:])
	return top[0]
}

// largest is the bytes of the flow that has most in a class.
func (q *egress) largest(class int) uint64 {
	var top [1]uint64
	q.top(class, top[:])
	return top[0]
}

// Ranked reports whether the flows in a class of a port's queue are ranked.
func (w *Worker) Ranked(port, class int) bool { return w.egress[port].shares[class].ranked }

// EndedBytes is what a class of a port's queue counts of flows that have ended, and what a walk over it finds of them; 0 while no shares are
// tracked.
func (w *Worker) EndedBytes(port, class int) (counted, found uint64) {
	r, s := &w.egress[port].classes[class], &w.egress[port].shares[class]
	if !s.tracked {
		return 0, 0
	}
	for i := range r.n {
		at := r.place(i)
		if t := r.tags[at]; t.Index != flowtable.None && !w.flows.Live(t) {
			found += uint64(r.frames[at].Len)
		}
	}
	return s.ended, found
}

// Slowed is the number of senders that were asked to slow down because of a class of a port's queue, and wait for a Resume.
func (w *Worker) Slowed(port, class int) int { return w.egress[port].states[class].slowed }

// CloseRecords closes all flow records, as a DREQ of their connections does.
func (w *Worker) CloseRecords() {
	const ending = 29 // of a pairing.Answer
	for x := flowtable.Index(1); x <= w.flows.High(); x++ {
		was := w.flows.State(x)
		w.flows.SetAnswer(x, was, was.Answer()|flowtable.Answer(pairing.EndedDREQ)<<ending)
	}
}

// Watched is the number of senders that are watched.
func (w *Worker) Watched() (n int) {
	for i := range w.senders.of {
		if w.senders.of[i].flow != flowtable.None {
			n++
		}
	}
	return n
}

// BreakLearning makes the stage learn panic.
func (w *Worker) BreakLearning() { w.flows = nil }

// BreakQueue makes the stage queue panic.
func (w *Worker) BreakQueue(port int) { w.egress[port].depth = nil }

// TwinsListed reports whether the worker has listed its flows for notifications without tags.
func (w *Worker) TwinsListed() bool { return w.flows.TwinsListed() }
