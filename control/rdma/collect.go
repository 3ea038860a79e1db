// Package rdma collects the health of RDMA connections from the workers of a running gateway, and follows how it changes.
package rdma

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/health"
)

const (
	atOnce     = 32              // connections that a worker copies for a request
	answerTime = 5 * time.Second // for a worker to copy them
	pause      = time.Millisecond
	// fresh is how old a report may be to be given again, so that many clients cost no more than one.
	fresh = time.Second
)

// Collector makes reports. Any goroutine may call it.
type Collector struct {
	plane *dataplane.Dataplane
	ports []string
	turn  chan struct{} // the goroutine that collects holds the one token
	trace chan struct{} // the goroutine that traces a connection does, too

	mutex  sync.Mutex
	latest *health.Report
	at     time.Time
}

// New makes a collector for a dataplane, with its ports' names.
func New(plane *dataplane.Dataplane, ports []string) *Collector {
	return &Collector{plane: plane, ports: ports, turn: make(chan struct{}, 1), trace: make(chan struct{}, 1), latest: (&health.Builder{}).Report(nil, 0)}
}

// Latest is the report that was made last; an empty one before the first.
func (c *Collector) Latest() *health.Report {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.latest
}

// Report makes a report, or returns the one of this second. Nobody may change it.
func (c *Collector) Report(ctx context.Context) (*health.Report, error) {
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-c.turn }()
	c.mutex.Lock()
	r, age := c.latest, time.Since(c.at)
	c.mutex.Unlock()
	if age < fresh {
		return r, nil
	}
	b := health.Builder{Ports: c.ports, Offset: c.plane.WallClock()}
	for worker := range c.plane.Workers() {
		if err := c.read(ctx, worker, func(o *health.Connection) bool {
			b.Add(o, "")
			return true
		}); err != nil {
			return nil, err
		}
	}
	r = b.Report(c.pauses(), 0)
	c.mutex.Lock()
	c.latest, c.at = r, time.Now()
	c.mutex.Unlock()
	return r, nil
}

// read passes copies of a worker's connections on, until each returns false. A copy is valid until the next one.
func (c *Collector) read(ctx context.Context, worker int, each func(*health.Connection) bool) error {
	part := &dataplane.HealthCopy{Connections: make([]health.Connection, 0, atOnce)}
	for !part.End {
		part.Connections = part.Connections[:0]
		if !c.ask(ctx, worker, &dataplane.Snapshot{Health: part}) {
			return silent(worker)
		}
		for i := range part.Connections {
			if !each(&part.Connections[i]) {
				return nil
			}
		}
	}
	return nil
}

func silent(worker int) error {
	return fmt.Errorf("worker %d does not answer: it is stopping, or gets no CPU time; try again", worker)
}

// ask makes a worker fill a snapshot within answerTime. It polls until the worker is done: a worker doesn't signal that, as it must not wait for another goroutine.
func (c *Collector) ask(ctx context.Context, worker int, s *dataplane.Snapshot) bool {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	w := c.plane.Worker(worker)
	for !w.Ask(s) { // it has another request
		if ctx.Err() != nil {
			return false
		}
		time.Sleep(pause)
	}
	for w.Asked(s) {
		if ctx.Err() != nil {
			w.Forget(s) // and is not read again
			return false
		}
		time.Sleep(pause)
	}
	return true
}

// pauses are the PAUSE and PFC frames that came from the ports' links.
func (c *Collector) pauses() (all []health.Pauses) {
	for i, name := range c.ports {
		f := c.plane.Port(i).FlowControl
		n := f.PauseReceived
		for _, class := range f.PFCReceived {
			n += class
		}
		if n > 0 {
			all = append(all, health.Pauses{From: "the link of port " + name, Frames: n})
		}
	}
	return all
}
