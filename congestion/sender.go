package congestion

// Restraint is why a sender that fills a congested queue is not notified now.
type Restraint uint8

const (
	Unrestrained Restraint = iota
	SlowingDown            // its flow's arrival rate fell: it is slowing down already (draft-tian 5.7)
	Draining               // it was notified, and the queue drains
)

// Sender is the state of a sender whose flow is among the largest of a congested queue: the flow's arrival rate, and the requests to the
// sender. The zero Sender is unknown.
type Sender struct {
	began  int64  // of the observation window, ns; 0 before the first
	bytes  uint64 // bytes of the flow that had arrived by then
	rate   uint64 // arrival rate of the flow in the last whole window, bytes per millisecond
	before uint64 // and in the window before that; 0: there was none
	depth  uint64 // of the queue when the window began, or when the sender was notified in it
	past   uint64 // and of the window before that
	Last   Decision
	// While it is not notified because its flow slows down without a request from here: since when, ns, and the queue's depth then.
	deferred int64
	waited   uint64
	Asked    bool // it was notified since the last Resume, by this gateway or another
	Slowed   bool // the sender was asked to slow down, and no Resume has followed
}

// Observe takes the total bytes of the flow up to a time (ns), and the queue's depth. It keeps the arrival rates of the last two
// observation windows, of one RTT_est each (draft-tian 5.7), if RTT_est is known.
func (s *Sender) Observe(r *Response, now int64, bytes, depth uint64) {
	elapsed := now - s.began
	switch {
	case s.began == 0 || elapsed < 0 || bytes < s.bytes:
		s.rate, s.before = 0, 0
		s.past = depth
	case elapsed < max(r.RTT, r.Interval):
		return
	default:
		s.past = s.depth
		if r.RTT > 0 { // otherwise a window is too short to distinguish a burst from a slower sender
			s.before = s.rate
			s.rate = uint64(max(perMillisecond(int64(bytes-s.bytes), elapsed), 1))
		}
	}
	s.began, s.bytes, s.depth = max(now, 1), bytes, depth
}

// slower reports whether the arrival rate fell by more than an eighth from one window to the next.
func (s *Sender) slower() bool { return s.before != 0 && s.rate < s.before-s.before/8 }

// Next reports at a time (ns) whether the sender of a queue of this depth is notified: with the request for the queue's state (Response.Decide),
// or a stricter one (Stricter); or why it is not.
//
// A sender whose flow slows down without a request from here has probably been notified by an upstream gateway. It is not notified for an
// observation window, and for another one while the queue drains by more than a 32nd a window. If the queue has still grown, the request is
// stricter than for the queue's state alone (draft-tian 5.7).
//
// A sender that was notified is not notified again if it slows down and the queue doesn't grow, or if the queue drains by more than a 32nd
// a window. If the queue grows, the request is stricter than before.
func (s *Sender) Next(r *Response, depth uint64, now int64) (restraint Restraint, stricter bool) {
	if !s.Asked {
		return s.first(r, depth, now)
	}
	switch grew := depth > s.past; {
	case grew:
		return Unrestrained, true
	case s.slower():
		return SlowingDown, false
	case depth < s.past-s.past/32:
		return Draining, false
	}
	return Unrestrained, false
}

// Stricter returns the stricter request to the sender that Next has asked for: than the last one, or if there was none, than that for the
// queue's state.
func (s *Sender) Stricter(r *Response, m Metrics, c Cause) Decision {
	last := s.Last
	if !s.Asked {
		last = r.Decide(m, c)
	}
	return r.Stricter(m, c, last)
}

// first is Next for a sender that was not notified yet.
func (s *Sender) first(r *Response, depth uint64, now int64) (restraint Restraint, stricter bool) {
	over := s.deferred != 0 && now-s.deferred >= r.RTT
	switch {
	case s.deferred != 0 && !over:
		return SlowingDown, false
	case over && depth > s.waited:
		return Unrestrained, true
	case s.slower(), over && depth < s.waited-s.waited/32:
		s.deferred, s.waited = max(now, 1), depth
		return SlowingDown, false
	}
	s.deferred = 0
	return Unrestrained, false
}

// Notified records that the sender was notified of a queue of this depth. A Resume clears its state.
func (s *Sender) Notified(d *Decision, depth uint64) {
	if d.Action == Resume {
		*s = Sender{}
		return
	}
	s.Last, s.Asked, s.depth, s.past, s.deferred = *d, true, depth, depth, 0
	s.Slowed = s.Slowed || d.Action != Notify
}

// NotifiedElsewhere records another gateway's notification to the sender, which counts like one from here (draft-tian 5.7).
func (s *Sender) NotifiedElsewhere(r *Response, m Metrics, c Cause) {
	s.Last, s.Asked, s.depth, s.past = r.Decide(m, c), true, m.Depth, m.Depth
}

// Calm records since when a queue has been below K_min. The zero Calm: it is not below.
type Calm struct{ since int64 }

// Update takes the queue's depth at a time (ns). It reports whether the queue has been below K_min for RTT_est, so that senders may resume
// (draft-tian 5.5.1).
func (c *Calm) Update(r *Response, now int64, depth uint64) bool {
	if depth >= r.KMin {
		c.since = 0
		return false
	}
	if c.since == 0 || now < c.since {
		c.since = max(now, 1)
	}
	return now-c.since >= r.RTT
}

// Since returns the time since when the queue has been below K_min, ns; false if it isn't.
func (c *Calm) Since() (int64, bool) { return c.since, c.since != 0 }
