package dataplane

import "github.com/cnpgate/cnpgate/flowtable"

// wait bounds how long the frames of a class have been waiting. The flow table may forget no flow that has frames in a queue, as these name
// it; which those are nobody counts, but they were all seen since the first of these frames came.
type wait struct {
	since int64 // the flows of all frames that wait were seen at this time or later, ns
	next  int64 // since is this time as soon as that is so of the first left frames too
	left  int
}

// gone notes at the time now that frames have left, and how many still wait.
func (t *wait) gone(now int64, frames, waiting int) {
	if t.left -= frames; t.left <= 0 {
		t.since, t.next, t.left = t.next, now, waiting
	}
}

const (
	longWait   = 50e6 // ns; most queues are shorter
	keptFrames = 8    // in a step: all of a queue's within a second or so, in a fraction of what the step takes for its burst
)

// keep has flows of frames that wait for long, as their port or class doesn't move, kept one by one, so that not all others are kept too.
func (w *Worker) keep(t *wait, r *ring) {
	for n := min(keptFrames, t.left); n > 0; n-- {
		t.left--
		if x := r.tags[r.place(t.left)]; x != flowtable.None {
			w.flows.Keep(x, w.now)
		}
	}
	t.gone(w.now, 0, r.n)
}

// hold has the flow table keep the flows that may have frames in any of the worker's queues.
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
				w.keep(t, r)
			}
			since = min(since, t.since)
		}
	}
	w.flows.Hold(since)
}
