// Package stepper runs a dataplane on in-memory backends in virtual time. The replay, the simulator and the tests use it. It reads no clock and starts no
// goroutine.
package stepper

import (
	"math"

	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/internal/burst/inmem"
)

// Stepper runs a dataplane in virtual time: all its workers have one clock.
type Stepper struct {
	plane    *dataplane.Dataplane
	backends []*inmem.Backend // of each worker
	now      int64
	adapted  int64 // when Adapt was last called

	// Watch is called as the time comes to or passes WatchAt, before what is due then; nil: it isn't. It sets the next WatchAt.
	Watch   func(now int64)
	WatchAt int64

	// AdaptEvery is the time between calls of Dataplane.Adapt, ns; 0: the caller calls it.
	AdaptEvery int64
}

// AdaptStep is how often a gateway adapts, ns.
const AdaptStep = 50_000_000

// New makes the stepper of a dataplane. backends are the workers' backends, in the workers' order. The clock begins at now, ns.
func New(plane *dataplane.Dataplane, backends []*inmem.Backend, now int64) *Stepper {
	s := &Stepper{plane: plane, backends: backends}
	s.SetTime(now)
	return s
}

// Now is the time, ns.
func (s *Stepper) Now() int64 { return s.now }

// SetTime moves the clock on to now, ns. It never goes back.
func (s *Stepper) SetTime(now int64) {
	s.now = max(s.now, now)
	for _, b := range s.backends {
		b.SetTime(s.now)
	}
	if s.Watch != nil && s.now >= s.WatchAt {
		s.Watch(s.now)
	}
	if s.AdaptEvery != 0 && s.now-s.adapted >= s.AdaptEvery {
		s.plane.Adapt(s.now)
		s.adapted = s.now
	}
}

// Step makes all workers do what there is to do at the present time. It doesn't return while a device accepts less than is due.
func (s *Stepper) Step() {
	if len(s.backends) == 1 { // no other worker passes it anything
		for s.plane.Worker(0).Step() > 0 && !s.backends[0].Idle() {
		}
		return
	}
	for again := true; again; {
		again = false
		for i := range s.backends {
			again = s.plane.Worker(i).Step() > 0 || again
		}
	}
}

// NextDue is the time at which a worker has something to do even if no frame arrives, ns; false if there is nothing.
func (s *Stepper) NextDue() (due int64, any bool) {
	for i := range s.backends {
		if at, waits := s.plane.Worker(i).NextDue(); waits && (!any || at < due) {
			due, any = at, true
		}
	}
	return due, any
}

// RunUntil processes all departures before the time at, ns, and sets the clock to it.
func (s *Stepper) RunUntil(at int64) {
	for s.stepBefore(at) {
	}
	s.SetTime(at)
}

// Drain processes all departures until nothing is due.
func (s *Stepper) Drain() {
	for s.stepBefore(math.MaxInt64) {
	}
}

// stepBefore processes the next departure, if it is before the time at.
func (s *Stepper) stepBefore(at int64) bool {
	due, any := s.NextDue()
	if !any || due >= at {
		return false
	}
	s.SetTime(due)
	s.Step()
	return true
}
