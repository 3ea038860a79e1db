package dataplane

import (
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/pairing"
)

// Ranked reports whether the flows in a class of a port's queue are ranked.
func (w *Worker) Ranked(port, class int) bool {
	return w.state.Egress[port].Classes[class].Shares.Ranked
}

// EndedBytes is what a class of a port's queue counts of flows that have ended, and what a walk over it finds of them; 0 while no shares are
// tracked.
func (w *Worker) EndedBytes(port, class int) (counted, found uint64) {
	c := &w.state.Egress[port].Classes[class]
	if !c.Shares.Tracked {
		return 0, 0
	}
	for i := range c.Len() {
		if f, t := c.At(i); t.Index != flowtable.None && !w.state.Flows.Live(t) {
			found += uint64(f.Len)
		}
	}
	return c.Shares.Ended, found
}

// Slowed is the number of senders that were asked to slow down because of a class of a port's queue, and wait for a Resume.
func (w *Worker) Slowed(port, class int) int { return w.state.Queues[port][class].Slowed }

// CloseRecords closes all flow records, as a DREQ of their connections does.
func (w *Worker) CloseRecords() {
	const ending = 29 // of a pairing.Answer
	for x := flowtable.Index(1); x <= w.state.Flows.High(); x++ {
		was := w.state.Flows.State(x)
		w.state.Flows.SetAnswer(x, was, was.Answer()|flowtable.Answer(pairing.EndedDREQ)<<ending)
	}
}

// Watched is the number of senders that are watched.
func (w *Worker) Watched() (n int) {
	for x := flowtable.Index(1); x <= w.state.Flows.High(); x++ {
		if a := w.state.Accounts.Find(x); a != nil && a.Watch() != 0 {
			n++
		}
	}
	return n
}

// BreakLearning makes the stage learn panic.
func (w *Worker) BreakLearning() { w.state.Flows = nil }

// BreakQueue makes the stage queue panic.
func (w *Worker) BreakQueue(port int) { w.state.Egress[port].Classes = nil }

// TwinsListed reports whether the worker has listed its flows for notifications without tags.
func (w *Worker) TwinsListed() bool { return w.state.Flows.TwinsListed() }
