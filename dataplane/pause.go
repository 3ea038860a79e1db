package dataplane

import (
	"github.com/cnpgate/cnpgate/dataplane/egress"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/lossless"
)

// flowControl runs flow control for a port at the end of a step: it appends the PFC frame that is due to tx, and returns the classes that
// must not send.
func (w *Worker) flowControl(port int, l *link, tx []burst.Frame) ([]burst.Frame, egress.ClassSet) {
	if w.id == 0 {
		tx = w.announce(port, l, tx)
		w.watchPauses(port, l)
	}
	if emptied := l.emptied.Load(); emptied != 0 {
		w.emptyClasses(port, emptied)
	}
	if l.latest.Load() <= w.now {
		return tx, 0
	}
	return tx, w.pausedClasses(port, l)
}

// pausedClasses are the classes of a port that are paused. Notifications are paused with the class of their DSCP.
func (w *Worker) pausedClasses(port int, l *link) (paused egress.ClassSet) {
	ignored := egress.ClassSet(l.ignored.Load())
	for class := range w.ports[port].Classes {
		if l.pausedUntil(class) > w.now {
			paused |= 1 << class
		}
	}
	paused &^= ignored
	if paused.Has(w.notificationClass(port)) {
		paused |= 1 << egress.Notifications
	}
	return paused
}

func (w *Worker) notificationClass(port int) int {
	return int(w.policy.Ports[port].Queue.ClassOf[w.policy.Build.DSCP&63])
}

// watchPauses runs the watchdog of a link.
func (w *Worker) watchPauses(port int, l *link) {
	for class := range w.ports[port].Classes {
		switch l.watches[class].Update(&l.Watchdog, w.now, l.pausedUntil(class) > w.now) {
		case lossless.Detected:
			l.counts.detected[class].Add(1)
			l.act(1 << class)
		case lossless.Restored:
			l.counts.restored[class].Add(1)
			l.ignored.And(^uint32(1 << class))
			l.emptied.And(^uint32(1 << class))
		}
	}
}

// act begins the watchdog's action for a class.
func (l *link) act(class uint32) {
	switch l.Watchdog.Action {
	case lossless.Drop:
		l.emptied.Or(class)
		l.ignored.Or(class) // its notifications are still sent
	case lossless.Forward:
		l.ignored.Or(class)
	case lossless.Alert:
	}
}

// emptyClasses drops the frames that wait in the classes of a set, as far as the step's list of freed buffers has space: at least as many
// as a step receives.
func (w *Worker) emptyClasses(port int, set uint32) {
	q := &w.egress[port]
	for class := range q.Classes {
		if set>>class&1 == 0 {
			continue
		}
		n := min(q.Classes[class].Len(), cap(w.batch.Free)-len(w.batch.Free))
		for range n {
			w.drop(port, DroppedPFCWatchdog, q.Classes[class].Leave())
		}
		w.work += n
	}
}

// nextPause is the earliest end of a pause or of a watchdog's time on a link, ns.
func (w *Worker) nextPause(port int, l *link) (due int64, any bool) {
	for class := range w.ports[port].Classes {
		if until := l.pausedUntil(class); until > w.now && (!any || until < due) {
			due, any = until, true
		}
		if w.id != 0 {
			continue
		}
		if at, ok := l.watches[class].Due(&l.Watchdog); ok && at > w.now && (!any || at < due) {
			due, any = at, true
		}
	}
	return due, any
}

// nextFlowControl is the time of flow control's next action at a port, or of the end of a pause, ns.
func (w *Worker) nextFlowControl(port int) (due int64, any bool) {
	l := w.plane.links[port]
	if l == nil {
		return 0, false
	}
	due, any = w.nextPause(port, l)
	if w.id != 0 {
		return due, any
	}
	if at, ok := w.nextPFC(l); ok && (!any || at < due) {
		return at, true
	}
	return due, any
}
