package lossless

// Thresholds are those of one lossless class. A class passes XOff or XOn if it does so in bytes or in frames.
type Thresholds struct {
	XOff, XOn             uint64 // bytes: above the first the other end must stop, at the second or below it may resume
	XOffFrames, XOnFrames int
	Refresh               int64 // ns between two frames while the other end must stop: less than the pause that each requests
	Limit                 int64 // maximum ns for which it must stop
}

// Xoff decides when the other end of a link must stop sending one class. The zero value is ready to use.
type Xoff struct {
	stopped bool
	expired bool  // Limit was reached, and the class has not been at XOn since
	since   int64 // time when it was stopped, ns
	next    int64 // time of the next PFC frame, ns
}

// Signal is the result of an update.
type Signal uint8

// The signals. All but Silent require a PFC frame; Stopped gives its content.
const (
	Silent  Signal = iota
	Stop           // the class has passed XOff
	Again          // the pause has to be renewed
	GoOn           // the class is at XOn
	Expired        // the class was above XOn for Limit: the other end may resume, though frames may be lost
)

// Update processes the depth of the class at the time now, ns.
func (x *Xoff) Update(t *Thresholds, now int64, bytes uint64, frames int) Signal {
	low := bytes <= t.XOn && frames <= t.XOnFrames
	switch {
	case low:
		return x.release()
	case !x.stopped:
		if x.expired || bytes <= t.XOff && frames <= t.XOffFrames {
			return Silent
		}
		x.stopped, x.since, x.next = true, now, now+t.Refresh
		return Stop
	case now-x.since >= t.Limit:
		x.stopped, x.expired = false, true
		return Expired
	case now >= x.next:
		x.next = now + t.Refresh
		return Again
	}
	return Silent
}

func (x *Xoff) release() Signal {
	x.expired = false
	if !x.stopped {
		return Silent
	}
	x.stopped = false
	return GoOn
}

// Stopped reports whether the other end must stop.
func (x *Xoff) Stopped() bool { return x.stopped }

// Due is the time of the next signal if the depth stays as it is, ns; false if there is none.
func (x *Xoff) Due(t *Thresholds) (int64, bool) {
	return min(x.next, x.since+t.Limit), x.stopped
}
