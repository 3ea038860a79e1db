package control

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/telemetry"
)

const (
	// With lookEvery and stallAfter, a stall is reported at most 80 ms after the worker's last step, plus the delay of the looking goroutine.
	lookEvery  = 20 * time.Millisecond
	stallAfter = 50 * time.Millisecond
	// keepAlives is the number of keep-alives within the service manager's timeout.
	keepAlives = 4
)

// heart knows which workers step. A worker that doesn't step forwards nothing: it hangs, or gets no CPU time. Any goroutine may read it.
type heart struct {
	mutex   sync.Mutex
	workers []beat
}

// beat is the state of a worker's steps.
type beat struct {
	steps   uint64        // at the last look
	silent  time.Duration // since this number of steps was first seen
	from    usage         // at the first look that saw it again, for a time of known away
	known   time.Duration
	away    away
	stalled bool
	stalls  uint64
}

// change is a worker that has stalled or resumed.
type change struct {
	worker  int
	stalled bool
	silent  time.Duration // how long it did not step
	cause   string        // why
}

// look takes each worker's number of steps so far, the time since the last look, and how to get a worker's usage. If the whole process was stopped, so that a look is late, only a
// little more than the normal interval counts: the workers could not step either.
func (h *heart) look(elapsed time.Duration, steps []uint64, usageOf func(worker int) usage) (changes []change) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.workers == nil {
		h.workers = make([]beat, len(steps))
	}
	elapsed = min(elapsed, 2*lookEvery)
	for i, n := range steps {
		b := &h.workers[i]
		if n != b.steps {
			if b.stalled {
				changes = append(changes, change{i, false, b.silent, b.away.cause(b.silent)})
			}
			*b = beat{steps: n, stalls: b.stalls}
			continue
		}
		if b.silent += elapsed; b.silent == elapsed {
			b.from = usageOf(i)
		} else {
			b.known += elapsed
			b.away = awayBetween(b.known, b.from, usageOf(i))
		}
		if !b.stalled && b.silent >= stallAfter {
			b.stalled = true
			b.stalls++
			changes = append(changes, change{i, true, b.silent, b.away.cause(b.silent)})
		}
	}
	return changes
}

// stalled are the workers that don't step, and why.
func (h *heart) stalled() (workers []change) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	for i := range h.workers {
		if b := &h.workers[i]; b.stalled {
			workers = append(workers, change{i, true, b.silent, b.away.cause(b.silent)})
		}
	}
	return workers
}

// hangs reports whether a worker doesn't step and is to blame itself.
func (h *heart) hangs() bool {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return slices.ContainsFunc(h.workers, func(b beat) bool { return b.stalled && b.away.blames(b.silent) })
}

// addTo adds the metrics of the workers' steps.
func (h *heart) addTo(v telemetry.Values) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	for i := range h.workers {
		b, stalled := &h.workers[i], uint64(0)
		if b.stalled {
			stalled = 1
		}
		v.Add(telemetry.WorkerStalled, strconv.Itoa(i), stalled)
		v.Add(telemetry.WorkerStalls, strconv.Itoa(i), b.stalls)
	}
}

// keepAlive is the interval of keep-alives to the service manager: several within its timeout, 0 if it has none.
type keepAlive struct {
	timeout time.Duration
	since   time.Duration
}

// due takes the time since its last call, and whether no worker hangs.
func (k *keepAlive) due(elapsed time.Duration, alive bool) bool {
	k.since += elapsed
	if k.timeout == 0 || !alive || k.since < k.timeout/keepAlives {
		return false
	}
	k.since = 0
	return true
}

// guard watches whether the workers step, until the context ends: it logs those that don't, updates the ports' health, and sends keep-alives to the
// service manager as long as no worker hangs: to start the process again helps no worker that others keep from its core.
func (w *watch) guard(ctx context.Context) {
	timeout, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		w.g.options.Log.Warn().Err(err).Msg("The service manager's watchdog is not fed: $WATCHDOG_USEC or $WATCHDOG_PID is not a number.")
	}
	keep, tick, last := keepAlive{timeout: timeout}, time.NewTicker(lookEvery), time.Now()
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			now := time.Now()
			w.lookAtWorkers(now.Sub(last))
			if keep.due(now.Sub(last), !w.g.heart.hangs()) {
				announce(daemon.SdNotifyWatchdog)
			}
			last = now
		}
	}
}

// lookAtWorkers logs which workers have stalled or step again, and updates the ports' health: each worker serves all ports.
func (w *watch) lookAtWorkers(elapsed time.Duration) {
	steps := make([]uint64, w.g.plane.Workers())
	for i := range steps {
		steps[i] = w.g.plane.Worker(i).Steps()
	}
	changes := w.g.heart.look(elapsed, steps, func(worker int) usage {
		return usageOf(int(w.g.threads[worker].Load()), w.g.started.DPDK.Workers[worker])
	})
	if len(changes) == 0 {
		return
	}
	problem := w.stallProblem()
	for i := range w.g.started.Ports {
		w.g.health.note(w.g.started.Ports[i].Name, workerCause, problem)
	}
	for _, c := range changes {
		event, message := w.g.options.Log.Warn(), "The worker steps again."
		if c.stalled {
			event = w.g.options.Log.Error()
			message = "A worker has stopped stepping. Frames that arrive at its queues are not forwarded."
		}
		event.Int("worker", c.worker).Int("core", w.g.started.DPDK.Workers[c.worker]).Dur("silent_ms", c.silent).Str("cause", c.cause).Msg(message)
	}
}

// stallProblem describes the workers that don't step, for health; "" if all do.
func (w *watch) stallProblem() string {
	var texts []string
	for _, c := range w.g.heart.stalled() {
		texts = append(texts, fmt.Sprintf("worker %d on core %d has stopped stepping: %s", c.worker, w.g.started.DPDK.Workers[c.worker], c.cause))
	}
	return strings.Join(texts, "; ")
}

// announce sends the gateway's state to the service manager, if there is one. Errors are ignored.
func announce(state string) { _, _ = daemon.SdNotify(false, state) }

// announcer notifies the service manager of what the gateway does.
type announcer struct {
	sync.Mutex
	forwarding bool // it was notified that the gateway forwards, and not yet that it stops
}

// forwards notifies the service manager that the gateway forwards from now on, or that it stops.
func (a *announcer) forwards(now bool) {
	a.Lock()
	defer a.Unlock()
	a.forwarding = now
	if now {
		announce(daemon.SdNotifyReady + "\nSTATUS=forwarding")
	} else {
		announce(daemon.SdNotifyStopping + "\nSTATUS=draining the queues")
	}
}

// isForwarding reports whether the gateway forwards, and doesn't stop yet.
func (a *announcer) isForwarding() bool {
	a.Lock()
	defer a.Unlock()
	return a.forwarding
}

// ifForwarding notifies the service manager of a state, unless the gateway doesn't forward yet or stops: READY=1 would then be wrong.
func (a *announcer) ifForwarding(state string) {
	a.Lock()
	defer a.Unlock()
	if a.forwarding {
		announce(state)
	}
}

func monotonicMicroseconds() string {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // every Linux has it
	return strconv.FormatInt(now.Nano()/1000, 10)
}
