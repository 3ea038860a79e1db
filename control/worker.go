package control

import (
	"fmt"
	"time"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/internal/burst"
)

// drainTime is how long a stop waits for the queues to empty: what a queue of a second's worth needs, with room.
const drainTime = 5 * time.Second

// work is a worker's goroutine, from its first burst to its last. It says on ready that it has begun.
func (g *gateway) work(i, core int, ready chan<- struct{}) error {
	leave, err := g.devices.Enter(core)
	if err != nil {
		return fmt.Errorf("worker %d on core %d: %w", i, core, err)
	}
	defer leave()
	ready <- struct{}{}
	w := g.plane.Worker(i)
	rest := idler{backoff: g.config.DPDK.Idle == config.Backoff, wait: time.Sleep, polls: pollsBeforeSleep, longest: longSleep}
	if b, ok := g.devices.Backend(i).(burst.Waiter); ok {
		rest.wait = func(d time.Duration) { b.Wait(d.Nanoseconds()) }
		if b.Wakes() {
			rest.polls, rest.longest = pollsBeforeWait, wakenSleep
		}
	}
	for !g.stop.Load() {
		rest.after(w, w.Step())
	}
	g.drain(w, &rest)
	w.Close()
	return nil
}

// drain sends what is queued, at the ports' rates, for as long as that may take.
func (g *gateway) drain(w *dataplane.Worker, rest *idler) {
	w.Drain()
	deadline := time.Now().Add(drainTime)
	for {
		moved := w.Step()
		if moved == 0 && w.Queued() == 0 || time.Now().After(deadline) {
			return
		}
		select {
		case <-g.options.Abort:
			return
		default:
			rest.after(w, moved)
		}
	}
}

// idler gives the core to others when a worker has nothing to do: at first it polls on, as the next frame is likely near, then it
// sleeps, longer as the silence lasts, and never past the time at which a queued frame may start.
type idler struct {
	backoff bool                // else it polls for ever
	empty   int                 // polls in a row that moved nothing
	wait    func(time.Duration) // sleeps so long, or until a frame comes where the devices can tell
	polls   int                 // that move nothing before the first sleep
	longest time.Duration       // of a sleep
}

const (
	pollsBeforeSleep = 512
	pollsBeforeWait  = 8 // where a frame ends the sleep; each poll asks the kernel, and a worker that never sleeps is made to by its scheduler
	shortSleep       = 20 * time.Microsecond
	longSleep        = 500 * time.Microsecond
	wakenSleep       = time.Millisecond // where a frame ends the sleep
	longSilence      = 200              // short sleeps
)

// after is called after each step with the number of frames that it moved.
func (r *idler) after(w *dataplane.Worker, moved int) {
	if pause := r.pause(w, moved); pause > 0 {
		r.wait(pause)
	}
}

// pause is how long to sleep now; 0 or less for not at all.
func (r *idler) pause(w *dataplane.Worker, moved int) time.Duration {
	if moved > 0 || !r.backoff {
		r.empty = 0
		return 0
	}
	if r.empty++; r.empty < r.polls {
		return 0
	}
	sleep := shortSleep
	if r.empty > r.polls+longSilence {
		r.empty, sleep = r.polls+longSilence, r.longest
	}
	if due, any := w.NextDue(); any {
		sleep = min(sleep, time.Duration(due-w.Now()))
	}
	return sleep
}
