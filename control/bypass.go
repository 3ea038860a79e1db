package control

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cnpgate/cnpgate/control/config"
)

// commandTime is how long a command of a heartbeat may take before it is killed.
const commandTime = time.Second

// pulse is where a heartbeat goes.
type pulse struct {
	*config.Bypass
	file *os.File // nil: a command
	next int      // of Values
}

// openPulse opens the file of a heartbeat. It stays open, as closing a watchdog's file may end it.
func openPulse(c *config.Bypass) (*pulse, error) {
	p := &pulse{Bypass: c}
	if p.File == "" {
		if _, err := exec.LookPath(p.Command[0]); err != nil {
			return nil, fmt.Errorf("%w; expected a program that this user may run", err)
		}
		return p, nil
	}
	var err error
	if p.file, err = os.OpenFile(p.File, os.O_WRONLY|syscall.O_NONBLOCK, 0); err != nil {
		return nil, fmt.Errorf("%w; expected a file that this user may write, such as a GPIO's value or a watchdog's device", err)
	}
	return p, nil
}

func (p *pulse) close() {
	if p != nil && p.file != nil {
		_ = p.file.Close() // nothing is left to write
	}
}

// beat writes the next value, or runs the command.
func (p *pulse) beat(ctx context.Context) error {
	if p.file == nil {
		ctx, cancel := context.WithTimeout(ctx, max(commandTime, p.Interval))
		defer cancel()
		c := exec.CommandContext(ctx, p.Command[0], p.Command[1:]...)
		c.WaitDelay = commandTime // for what it has started
		out, err := c.CombinedOutput()
		if ctx.Err() != nil && err != nil {
			return fmt.Errorf("%s did not end within %v", p.Command[0], max(commandTime, p.Interval))
		}
		if err != nil {
			return fmt.Errorf("%s: %w: %.200s", p.Command[0], err, strings.TrimSpace(string(out)))
		}
		return nil
	}
	value := []byte(p.Values[p.next%len(p.Values)] + "\n")
	p.next++
	_ = p.file.SetWriteDeadline(time.Now().Add(commandTime)) // a file without one doesn't block
	_, err := p.file.WriteAt(value, 0)
	if errors.Is(err, syscall.ESPIPE) { // a pipe or a character device has no offset
		_, err = p.file.Write(value)
	}
	return err
}

// heartbeat is what the gateway tells a bypass device while it forwards. Without it, the device connects the two sides past the gateway.
type heartbeat struct {
	mutex   sync.Mutex
	to      *pulse        // nil: none
	changed chan struct{} // has a value when `to` is another one
	note    func(error)   // says whether there is a heartbeat
	life    life
}

// life knows when each worker stepped last.
type life struct {
	steps []uint64
	since []time.Time
}

// silent is a worker that has not stepped for stallAfter or longer, -1 if there is none.
func (l *life) silent(now time.Time, steps []uint64) int {
	found := -1
	for i, n := range steps {
		if i == len(l.steps) {
			l.steps, l.since = append(l.steps, n), append(l.since, now)
		}
		if n != l.steps[i] {
			l.steps[i], l.since[i] = n, now
		}
		if now.Sub(l.since[i]) >= stallAfter {
			found = i
		}
	}
	return found
}

// serve sends the heartbeat, until the context ends.
func (h *heartbeat) serve(ctx context.Context, c *config.Bypass, note func(error)) error {
	to, err := openPulse(c)
	if err != nil {
		return err
	}
	h.use(to, note)
	note(nil)
	<-ctx.Done()
	h.use(nil, nil)
	return nil
}

// use changes where the heartbeat goes.
func (h *heartbeat) use(p *pulse, note func(error)) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.to.close()
	h.to, h.note = p, note
	select {
	case h.changed <- struct{}{}:
	default:
	}
}

// interval is the time between two beats, 0 for no heartbeat.
func (h *heartbeat) interval() time.Duration {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.to == nil {
		return 0
	}
	return h.to.Interval
}

// beats sends the heartbeat while all workers step and, unless it requires only that, all ports forward. It ends at once with the context: the
// bypass is active while the queues drain.
func (w *watch) beats(ctx context.Context) {
	h := &w.g.heartbeat
	for {
		var tick <-chan time.Time
		if interval := h.interval(); interval > 0 {
			tick = time.After(interval)
		}
		select {
		case <-ctx.Done():
			return
		case <-h.changed:
		case now := <-tick:
			w.beat(ctx, now)
		}
	}
}

// beat sends one heartbeat, or says why it doesn't.
func (w *watch) beat(ctx context.Context, now time.Time) {
	h := &w.g.heartbeat
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.to == nil {
		return
	}
	var err error
	if problem := w.noBeat(now); problem != "" {
		err = fmt.Errorf("the heartbeat has stopped, so the bypass becomes active: %s", problem)
	} else if failed := h.to.beat(ctx); failed != nil && ctx.Err() == nil {
		err = fmt.Errorf("the heartbeat has stopped, so the bypass becomes active: %w", failed)
	}
	h.note(err)
}

// noBeat says why the gateway doesn't forward; "" if it does.
func (w *watch) noBeat(now time.Time) string {
	steps := make([]uint64, w.g.plane.Workers())
	for i := range steps {
		steps[i] = w.g.plane.Worker(i).Steps()
	}
	if i := w.g.heartbeat.life.silent(now, steps); i >= 0 {
		return fmt.Sprintf("worker %d has stopped stepping", i)
	}
	if w.g.heartbeat.to.WorkersOnly {
		return ""
	}
	for i := range w.g.started.Ports {
		if problem := w.g.Problems()[w.g.started.Ports[i].Name]; problem != "" {
			return "port " + w.g.started.Ports[i].Name + ": " + problem
		}
	}
	return ""
}
