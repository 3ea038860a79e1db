package link

import (
	"github.com/cnpgate/cnpgate/dataplane/egress"
	"github.com/cnpgate/cnpgate/lossless"
)

// Paused are the classes of the port that must not send. Notifications are paused with the class of their DSCP.
func (l *Link) Paused(now int64, notifications uint8) (paused egress.ClassSet) {
	if l.latest.Load() <= now {
		return 0
	}
	for class := range l.classes {
		if l.pausedUntil(class) > now {
			paused |= 1 << class
		}
	}
	paused &^= egress.ClassSet(l.ignored.Load())
	if paused.Has(int(notifications)) {
		paused |= 1 << egress.Notifications
	}
	return paused
}

// Emptied are the classes whose waiting frames the watchdog drops.
func (l *Link) Emptied() egress.ClassSet { return egress.ClassSet(l.emptied.Load()) }

// Watch runs the watchdog. Only the first worker calls it.
func (l *Link) Watch(now int64) {
	for class := range l.classes {
		switch l.watches[class].Update(&l.Watchdog, now, l.pausedUntil(class) > now) {
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
func (l *Link) act(class uint32) {
	switch l.Watchdog.Action {
	case lossless.Drop:
		l.emptied.Or(class)
		l.ignored.Or(class) // its notifications are still sent
	case lossless.Forward:
		l.ignored.Or(class)
	case lossless.Alert:
	}
}

// Due is the time of the next action at a worker, or of the end of a pause, ns; false if there is none. first: it is the first worker.
func (l *Link) Due(now int64, first bool) (due int64, any bool) {
	if l == nil {
		return 0, false
	}
	note := func(at int64) {
		if !any || at < due {
			due, any = at, true
		}
	}
	for class := range l.classes {
		if until := l.pausedUntil(class); until > now {
			note(until)
		}
		if !first {
			continue // the first worker's own state
		}
		if at, ok := l.watches[class].Due(&l.Watchdog); ok && at > now {
			note(at)
		}
	}
	switch {
	case !first:
	case l.sender.due != 0:
		note(now)
	default:
		for class := range l.Lossless {
			if at, ok := l.sender.classes[class].Due(&l.Lossless[class].Thresholds); ok {
				note(at)
			}
		}
	}
	return due, any
}
