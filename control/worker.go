package control

import (
	"encoding/hex"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/internal/burst"
)

// drainTime is how long a stop waits for the queues to empty: more than a queue of one second needs.
const drainTime = 5 * time.Second

// workerRun is the run of a worker, on its core.
type workerRun struct {
	*gateway
	number, core int
	worker       *dataplane.Worker
	rest         idler
}

// run is the worker's goroutine, from its first burst to its last. It signals on ready that it has begun.
func (r *workerRun) run(ready chan<- struct{}) error {
	leave, err := r.devices.Enter(r.core)
	if err != nil {
		return fmt.Errorf("worker %d on core %d: %w", r.number, r.core, err)
	}
	defer leave()
	r.threads[r.number].Store(threadID())
	defer r.endAtPanic()
	debug.SetPanicOnFault(true) // for this goroutine: an access to a bad address is then a panic too
	ready <- struct{}{}
	r.worker = r.plane.Worker(r.number)
	r.rest = idler{backoff: r.started.DPDK.Backoff, wait: time.Sleep, polls: pollsBeforeSleep, longest: longSleep}
	if b, ok := r.devices.Backend(r.number).(burst.Waiter); ok {
		r.rest.wait = func(d time.Duration) { b.Wait(d.Nanoseconds()) }
		if b.Wakes() {
			r.rest.polls, r.rest.longest = pollsBeforeWait, wakenSleep
		}
	}
	for !r.stop.Load() {
		r.rest.after(r.worker, r.worker.Step())
	}
	r.drain()
	r.worker.Close()
	return nil
}

// drain sends queued frames at the ports' rates, for at most drainTime.
func (r *workerRun) drain() {
	r.worker.Drain()
	deadline := time.Now().Add(drainTime)
	for {
		moved := r.worker.Step()
		if moved == 0 && r.worker.Queued() == 0 || time.Now().After(deadline) {
			return
		}
		select {
		case <-r.options.Abort:
			return
		default:
			r.rest.after(r.worker, moved)
		}
	}
}

// idler frees the core when a worker is idle. At first it continues to poll, as the next frame is likely to arrive soon. Then it
// sleeps, longer each time, but never past the time at which a queued frame may start.
type idler struct {
	backoff bool                // false: it always polls
	empty   int                 // polls in a row that moved nothing
	wait    func(time.Duration) // sleeps this long, or until a frame arrives if the devices can signal that
	polls   int                 // empty polls before the first sleep
	longest time.Duration       // of a sleep
}

const (
	pollsBeforeSleep = 512
	pollsBeforeWait  = 8 // if a frame ends the sleep: each poll is a system call, and the kernel preempts a worker that never sleeps
	shortSleep       = 20 * time.Microsecond
	longSleep        = 500 * time.Microsecond
	wakenSleep       = time.Millisecond // if a frame ends the sleep
	longSilence      = 200              // short sleeps
)

// after is called after each step, with the number of frames that the step moved.
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
	if r.empty++; r.empty < r.polls || w.Requested() != nil { // each step copies only some of the flows that a client waits for
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

// PanicStatus is the status that the process exits with if a worker panics (EX_SOFTWARE of sysexits.h).
const PanicStatus = 70

// panicLogTime is how long the log may take for the line about a panic.
const panicLogTime = 100 * time.Millisecond

// maxStack bounds the stack in the log, bytes.
const maxStack = 4096

// endAtPanic is deferred by a worker's goroutine. It logs a panic with the packet that the worker was handling, and ends the process at once: the
// worker's state is unreliable, and a standby gateway or a bypass must take over without delay.
func (r *workerRun) endAtPanic() {
	reason := recover()
	if reason == nil {
		return
	}
	time.AfterFunc(panicLogTime, func() { os.Exit(PanicStatus) }) // a log that nobody reads must not keep the devices from another gateway
	stack := debug.Stack()
	event := r.options.Log.WithLevel(zerolog.FatalLevel).Int("worker", r.number).Int("core", r.core).Str("panic", fmt.Sprint(reason)).
		Bytes("stack", stack[:min(len(stack), maxStack)])
	if f, ok := r.plane.Worker(r.number).InHand(); ok {
		event = event.Str("port", r.started.Ports[f.Port].Name).Int("burst", f.Burst)
		if f.Place >= 0 {
			event = event.Int("place", f.Place).Uint32("length", f.Length).Str("packet", hex.EncodeToString(f.Bytes))
		}
	}
	event.Msg("A worker panicked. The gateway ends at once. This is a bug in cnpgate: please report it with this line.")
	os.Exit(PanicStatus)
}
