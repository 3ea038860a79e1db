package control

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
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
	if p.file != nil {
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

// beats sends the heartbeat to a bypass device while the gateway forwards: all workers step and, unless it requires only that, all ports forward. Without it, the
// device connects the two sides past the gateway, also while the queues drain at the end.
func (g *gateway) beats(ctx context.Context, c *config.Bypass, note func(error)) error {
	to, err := openPulse(c)
	if err != nil {
		return err
	}
	defer to.close()
	note(nil)
	tick := time.NewTicker(c.Interval)
	defer tick.Stop()
	for workers := (life{}); ; {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			if !g.announcer.isForwarding() || g.stop.Load() {
				continue
			}
			var err error
			if problem := g.noBeat(now, &workers, c.WorkersOnly); problem != "" {
				err = fmt.Errorf("the heartbeat has stopped, so the bypass becomes active: %s", problem)
			} else if failed := to.beat(ctx); failed != nil && ctx.Err() == nil {
				err = fmt.Errorf("the heartbeat has stopped, so the bypass becomes active: %w", failed)
			}
			note(err)
		}
	}
}

// noBeat says why the gateway doesn't forward; "" if it does.
func (g *gateway) noBeat(now time.Time, workers *life, only bool) string {
	steps := make([]uint64, g.plane.Workers())
	for i := range steps {
		steps[i] = g.plane.Worker(i).Steps()
	}
	if i := workers.silent(now, steps); i >= 0 {
		return fmt.Sprintf("worker %d has stopped stepping", i)
	}
	if only {
		return ""
	}
	problems := g.Problems()
	for i := range g.started.Ports {
		if problem := problems[g.started.Ports[i].Name]; problem != "" {
			return "port " + g.started.Ports[i].Name + ": " + problem
		}
	}
	return ""
}
