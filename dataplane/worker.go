package dataplane

import (
	"sync/atomic"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing"
)

// Worker owns a pair of device queues on every port, a flow table with its learner and accounts, and its part of every egress queue.
type Worker struct {
	plane   *Dataplane
	id      int
	backend burst.Backend
	batch   *burst.Batch
	ports   []PortConfig
	policy  *Policy // as of this burst
	now     int64   // ns, as of this burst
	work    int     // frames that this step moved
	touched uint8   // of no use, see packet.Touch

	oneByOne bool // never; so that a test can compare
	flows    *flowtable.Table
	learner  *pairing.Learner
	accounts accounts
	egress   []egress
	chosen   choice
	drafted  drafted
	counters counters
	asked    atomic.Pointer[Snapshot] // by another goroutine, or nil

	// By place in a burst.
	parsed [burst.MaxSize]packet.Parsed
	flow   [burst.MaxSize]flowtable.Index
	// By key looked up.
	keys  [burst.MaxSize]flowtable.Key
	of    [burst.MaxSize]uint8 // its place in the burst
	found [burst.MaxSize]flowtable.Index
}

func newWorker(d *Dataplane, id int, b burst.Backend, c *Config) (*Worker, error) {
	w := &Worker{plane: d, id: id, backend: b, batch: b.Batch(), ports: c.Ports, egress: make([]egress, len(c.Ports))}
	if err := w.initFlows(c); err != nil {
		return nil, err
	}
	for i := range w.egress {
		if err := w.egress[i].init(d.lines[i], &c.Ports[i], &w.accounts, c); err != nil {
			return nil, err
		}
	}
	w.counters = newCounters(len(c.Ports))
	return w, nil
}

// initFlows makes the flow table and what the worker keeps by its indexes.
func (w *Worker) initFlows(c *Config) error {
	memory, err := c.Allocate(flowtable.Size(c.Flows))
	if err != nil {
		return err
	}
	w.flows, err = flowtable.New(memory, flowtable.Config{
		Capacity: c.Flows, Aging: c.Aging, Seed: c.Seed + uint64(w.id), Observer: &observer{w: w, ended: c.Ended},
	})
	if err != nil {
		return err
	}
	if memory, err = c.Allocate(pairing.LearnerSize(c.Flows)); err != nil {
		return err
	}
	if w.learner, err = w.plane.pairing.Join(w.flows, memory); err != nil {
		return err
	}
	if memory, err = c.Allocate(accountsSize(c.Flows)); err != nil {
		return err
	}
	w.accounts = newAccounts(memory, w.flows)
	return nil
}

// Step is one iteration: one exchange with the device, then all that follows from it. It returns how many frames it
// moved, 0 when there was nothing to do.
func (w *Worker) Step() int {
	w.work = 0
	w.now = w.backend.Exchange()
	w.policy = w.plane.policy.Load()
	for port := range w.egress {
		w.completeTransmits(port)
		w.plane.readOthers(port, w.id, &w.egress[port])
	}
	w.hold()
	for port := range w.egress {
		w.receive(port)
	}
	for port := range w.egress {
		w.offer(port)
	}
	w.flows.Sweep(w.now)
	w.learner.Sweep()
	w.publish()
	if s := w.asked.Load(); s != nil {
		w.answer(s)
	}
	return w.work
}

// Now is the time of the last step on the backend's clock, ns.
func (w *Worker) Now() int64 { return w.now }

// Drain stops reception; Step goes on sending what is queued.
func (w *Worker) Drain() { w.batch.Drain = true }

// Queued is the number of frames, notifications included, that wait at this worker.
func (w *Worker) Queued() int {
	n := 0
	for i := range w.egress {
		n += w.egress[i].queued() + w.egress[i].notifications.n
	}
	return n
}

// NextDue is the time at which the next waiting frame may start, and false when none waits.
func (w *Worker) NextDue() (int64, bool) {
	due, any := int64(0), false
	for i := range w.egress {
		q := &w.egress[i]
		if q.empty() {
			continue
		}
		if free := q.line.free.Load(); !any || free < due {
			due, any = free, true
		}
	}
	return due, any
}

// Close gives every buffer back to the backend. What was still queued counts as dropped by the shutdown.
func (w *Worker) Close() {
	w.batch.Drain = true
	for port := range w.batch.Ports { // of all ports, before the first exchange: none may send what is about to be freed
		w.batch.Ports[port].Tx = w.batch.Ports[port].Tx[:0]
	}
	for port := range w.egress {
		q := &w.egress[port]
		for q.notifications.n > 0 {
			w.giveBack(q.notifications.pop().frame.Buf)
			w.suppress(port, Shutdown)
		}
		for class := range q.classes {
			for q.classes[class].n > 0 {
				w.giveBack(q.leave(class).frame.Buf)
				w.counters.add(port, DroppedShutdown, 1)
			}
		}
	}
	for _, f := range w.batch.Spare {
		w.giveBack(f.Buf)
	}
	w.batch.Spare = w.batch.Spare[:0]
	w.backend.Exchange()
	w.publish()
}

// giveBack frees a buffer at the next exchange, and has one as soon as no more fit.
func (w *Worker) giveBack(buf uint64) {
	if len(w.batch.Free) == cap(w.batch.Free) {
		w.backend.Exchange()
	}
	w.batch.Free = append(w.batch.Free, buf)
}
