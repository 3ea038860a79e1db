package dataplane

// wait bounds how long the frames of a class have been waiting. The flow table may forget no flow that has frames in a queue, as these name
// it; which those are nobody counts, but they were all seen since the first of these frames came.
type wait struct {
	since int64 // no frame that waits came before, ns
	next  int64 // nor will have when left more have gone
	left  int
}

// gone notes at the time now that frames have left, and how many still wait.
func (t *wait) gone(now int64, frames, waiting int) {
	if t.left -= frames; t.left <= 0 {
		t.since, t.next, t.left = t.next, now, waiting
	}
}

// hold has the flow table keep the flows that may have frames in any of the worker's queues.
func (w *Worker) hold() {
	since := w.now
	for port := range w.egress {
		q := &w.egress[port]
		for class := range q.classes {
			t := &q.waits[class]
			if q.classes[class].n == 0 {
				*t = wait{since: w.now, next: w.now}
			}
			since = min(since, t.since)
		}
	}
	w.flows.Hold(since)
}
