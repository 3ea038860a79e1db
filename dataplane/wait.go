package dataplane

import "github.com/cnpgate/cnpgate/flowtable"

// wait bounds how long the frames of a class have been waiting. The flow table must not end a flow that has frames in a queue, since they
// name it by its index. Nobody counts which flows those are, but all of them were seen since the first of these frames came.
type wait struct {
	since int64 // the flows of all frames that wait were seen at this time or later, ns
	next  int64 // since becomes this time when the first `left` frames have left
	left  int
}

// leave notes at the time now that frames have left, and how many still wait.
func (t *wait) leave(now int64, frames, waiting int) {
	if t.left -= frames; t.left <= 0 {
		t.since, t.next, t.left = t.next, now, waiting
	}
}

const (
	longWait     = 50e6 // ns; most queues are shorter
	framesLooked = 8    // in a step: at all of a queue's within a second or so, in a fraction of the time that a burst takes
)

// keepWaiting keeps the flows of frames that have waited for long, since their port or class doesn't move, one by one, so that other flows
// can end.
func (w *Worker) keepWaiting(t *wait, r *ring) {
	for n := min(framesLooked, t.left); n > 0; n-- {
		t.left--
		if x := r.tags[r.place(t.left)]; x != flowtable.None {
			w.flows.Keep(x, w.now)
		}
	}
	t.leave(w.now, 0, r.n)
}

// hold keeps the flow table from ending flows that may have frames in any of the worker's queues.
func (w *Worker) hold() {
	since := w.now
	for port := range w.egress {
		q := &w.egress[port]
		for class := range q.classes {
			t, r := &q.waits[class], &q.classes[class]
			switch {
			case r.n == 0:
				*t = wait{since: w.now, next: w.now}
			case w.now-t.since > longWait:
				w.keepWaiting(t, r)
			}
			since = min(since, t.since)
		}
	}
	w.flows.Hold(since)
}
