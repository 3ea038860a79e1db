package lossless

// Action is the watchdog's action for a class that the other end of the link has paused for too long. The names are SONiC's.
type Action uint8

// The actions.
const (
	Drop    Action = iota // frames of the class are dropped, including queued ones
	Forward               // pauses of the class are ignored
	Alert                 // only counted and logged
)

// Watchdog configures when the watchdog acts, and how.
type Watchdog struct {
	Action    Action
	Detection int64 // ns of a pause without interruption; after as many without a pause, the class is restored
}

// Watch watches the pauses of one class. The zero value is ready to use.
type Watch struct {
	paused  bool
	stormed bool
	since   int64 // time of the last change of paused, ns
}

// Event is a change of state.
type Event uint8

// The events.
const (
	NoEvent Event = iota
	Detected
	Restored
)

// Update processes whether the class is paused at the time now, ns.
func (w *Watch) Update(d *Watchdog, now int64, paused bool) Event {
	if paused != w.paused {
		w.paused, w.since = paused, now
	}
	if paused == w.stormed || now-w.since < d.Detection {
		return NoEvent
	}
	if w.stormed = paused; paused {
		return Detected
	}
	return Restored
}

// Due is the time of the next event if the class stays as it is, ns; false if there is none.
func (w *Watch) Due(d *Watchdog) (int64, bool) {
	return w.since + d.Detection, w.paused != w.stormed
}
