package episode

import (
	"cmp"
	"slices"

	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/notify"
	"github.com/cnpgate/cnpgate/flowtable"
)

// Event is the result of a look.
type Event uint8

const (
	None Event = iota
	Began
	Ended
)

// Tracker has the episodes of all queues.
type Tracker struct {
	open  map[Queue]*Episode
	seen  map[Queue]State // at the last look
	looks map[Queue]int64 // when that was
	over  []Episode       // the oldest first
	// Lines are the ports' rates, bit/s; nil: they aren't known.
	Lines []uint64

	earlier map[Queue]map[flowName]sample // by the latest episode of a queue that is over
	begun   uint64
}

// NewTracker makes a tracker without episodes.
func NewTracker() *Tracker {
	return &Tracker{open: map[Queue]*Episode{}, seen: map[Queue]State{}, looks: map[Queue]int64{}, earlier: map[Queue]map[flowName]sample{}}
}

// Look takes the state of a queue at a time (Unix time, ns). It returns whether an episode began or ended, and the episode, which is valid until the next
// call.
func (t *Tracker) Look(now int64, q Queue, s State) (*Episode, Event) {
	e := t.open[q]
	congested := s.Peak > s.Above
	if congested && e == nil {
		e = t.begin(now, q)
		if at, known := t.looks[q]; known && at < now && now-at < calmTime { // it was congested at some time since the last look
			e.Start = at
		}
	}
	before := t.seen[q]
	t.seen[q], t.looks[q] = s, now
	if e == nil {
		return nil, None
	}
	if !e.announced {
		e.before = before
	}
	e.Peak, e.Marked = max(e.Peak, s.Peak), s.Marked-min(e.before.Marked, s.Marked)
	for i, n := range s.Suppressed {
		e.Suppressed[i] = n - min(e.before.Suppressed[i], n)
	}
	if e.End-now > calmTime { // the clock was set back
		e.Start, e.End = min(e.Start, now), now
	}
	if congested {
		e.End = max(e.End, now)
	}
	switch {
	case !e.announced:
		e.announced = true
		if now-e.End < calmTime {
			e.End = max(e.End, now) // a notification may have begun it since the last look
		}
		return e, Began
	case now-e.End >= calmTime:
		return t.end(e), Ended
	}
	return nil, None
}

func (t *Tracker) begin(now int64, q Queue) *Episode {
	t.begun++
	e := &Episode{ID: t.begun, Queue: q, Start: now, End: now, earlier: t.earlier[q]}
	t.open[q] = e
	return e
}

func (t *Tracker) end(e *Episode) *Episode {
	e.Over, e.earlier = true, nil
	latest := make(map[flowName]sample, len(e.Flows))
	for i := range e.Flows {
		f := &e.Flows[i]
		f.settle(e.End)
		if f.looked {
			latest[flowName{f.Worker, f.Ref}] = f.last
		}
	}
	t.earlier[e.Queue] = latest
	delete(t.open, e.Queue)
	if len(t.over) == kept {
		t.over = slices.Delete(t.over, 0, 1)
	}
	t.over = append(t.over, *e)
	return &t.over[len(t.over)-1]
}

// Notified takes the record of a notification that a worker sent, or would have sent. It ignores notifications that belong to no local
// queue: answers to CE on arrival, and those that another gateway asked for. A Resume neither begins nor extends an episode.
func (t *Tracker) Notified(worker int, r *notify.NotificationRecord) {
	q := Queue{int(r.Out), int(r.Class)}
	e := t.open[q]
	if r.Cause.Elsewhere() || e == nil && r.Cause == 0 {
		return
	}
	if e == nil {
		e = t.begin(r.Time, q)
	}
	if r.Cause != 0 {
		e.Start, e.End, e.Peak = min(e.Start, r.Time), max(e.End, r.Time), max(e.Peak, r.Metrics.Depth)
	}
	if r.Outcome == counters.Observed {
		e.Observed++
	} else {
		e.Notifications[r.Format]++
	}
	if r.Cause != 0 {
		line := uint64(0)
		if int(r.In) < len(t.Lines) {
			line = t.Lines[r.In]
		}
		e.notify(worker, r, line)
	}
}

// Lost notes that records of notifications were overwritten before they could be read. Nobody knows whose they were, so each open episode counts them.
func (t *Tracker) Lost(n uint64) {
	for _, e := range t.open {
		e.Lost += n
	}
}

// Sampled takes the records of flows of a queue that a worker made at a time (Unix time, ns).
func (t *Tracker) Sampled(q Queue, worker int, at int64, flows []dataplane.FlowRecord) {
	e := t.open[q]
	if e == nil {
		return
	}
	for i := range flows {
		r := &flows[i]
		if f := e.flow(worker, r.Flow); f != nil {
			f.sampled(e, at, r)
		}
	}
}

// Open are the queues with an open episode, in their order.
func (t *Tracker) Open() []Queue {
	all := make([]Queue, 0, len(t.open))
	for q := range t.open {
		all = append(all, q)
	}
	slices.SortFunc(all, func(a, b Queue) int { return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Class, b.Class)) })
	return all
}

// Flows appends the names of a worker's flows in the open episode of a queue.
func (t *Tracker) Flows(q Queue, worker int, to []flowtable.Ref) []flowtable.Ref {
	if e := t.open[q]; e != nil {
		for i := range e.Flows {
			if f := &e.Flows[i]; f.Worker == worker {
				to = append(to, f.Ref)
			}
		}
	}
	return to
}

// Episodes are copies of all episodes, the open ones last.
func (t *Tracker) Episodes() []Episode {
	all := slices.Clone(t.over)
	for _, q := range t.Open() {
		all = append(all, *t.open[q])
	}
	for i := range all {
		all[i].Flows = slices.Clone(all[i].Flows)
		for k := range all[i].Flows {
			all[i].Flows[k].settle(all[i].End)
		}
	}
	slices.SortStableFunc(all, func(a, b Episode) int { return cmp.Compare(a.ID, b.ID) })
	return all
}
