package advertise

import "time"

const (
	// Quiet is how long no route must have changed until a changed map is used.
	Quiet = 100 * time.Millisecond
	// Longest is how long a change waits at most, while others follow it.
	Longest = time.Second
)

// Settling combines changes of routes that come in quick succession. Its caller has the clock: any increasing count of nanoseconds.
type Settling struct {
	pending     bool
	first, last int64 // change that isn't used yet
}

// Change notes a change at a time.
func (s *Settling) Change(now int64) {
	if !s.pending {
		s.pending, s.first = true, now
	}
	s.last = now
}

// Due is the time at which the changes noted are to be used; false if there are none.
func (s *Settling) Due() (at int64, ok bool) {
	return min(s.last+int64(Quiet), s.first+int64(Longest)), s.pending
}

// Use reports whether the changes are to be used now, and forgets them if so.
func (s *Settling) Use(now int64) bool {
	at, ok := s.Due()
	if !ok || now < at {
		return false
	}
	s.pending = false
	return true
}
