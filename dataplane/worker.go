package dataplane

import (
	"sync/atomic"

	"github.com/cnpgate/cnpgate/dataplane/account"
	"github.com/cnpgate/cnpgate/dataplane/egress"
	"github.com/cnpgate/cnpgate/dataplane/host"
	"github.com/cnpgate/cnpgate/dataplane/pacing"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/pairing"
)

// Worker owns a pair of device queues on every port, a flow table with its learner and accounts, and its part of every egress queue.
type Worker struct {
	common
	plane     *Dataplane
	notifier  *notifier
	senders   *senders
	responder *responder
	listener  listener // to notifications that pass
	requests  requests // of congested nodes
	gateway   gateway

	backend    burst.Backend
	work       int       // frames moved in this step
	receiving  int       // 1 + the port whose burst goes through the stages now, or 0
	trackers   []tracker // by port
	taps       taps
	mail       []mailbox[slowDown] // by the worker that writes
	drain      drain
	steps      atomic.Uint64 // made so far
	histograms histograms

	snapshots
}

func newWorker(d *Dataplane, id int, b burst.Backend, c *Config) (*Worker, error) {
	w := &Worker{
		plane: d,
		common: common{id: id, ports: c.Ports, host: d.host, clock: &d.wallClock, batch: b.Batch(), counters: newCounters(len(c.Ports)),
			egress: make([]egress.Port, len(c.Ports)), pacers: make([]*pacing.Pacer, len(c.Ports)), queues: make([][]queueState, len(c.Ports))},
		backend: b, trackers: make([]tracker, len(c.Ports)),
	}
	w.rx.memory = w.batch
	w.gateway = gateway{common: &w.common, requests: &w.requests, paths: d.paths, links: make([]linkHeader, len(c.Ports))}
	for i := range w.trackers {
		w.trackers[i] = tracker{common: &w.common, out: i, seed: c.Seed, path: &d.paths[i]}
	}
	w.taps = newTaps(c.Ports, w.batch)
	if err := w.initFlows(c); err != nil {
		return nil, err
	}
	for i := range w.egress {
		if err := w.initPort(i, c); err != nil {
			return nil, err
		}
	}
	w.mail, w.listener.paces = newMailboxes[slowDown](len(c.Backends), c.Ports), newMailboxes[portPaceRequest](len(c.Backends), c.Ports)
	if len(c.Backends) > 1 {
		w.listener.passed = make([]mailbox[portPaceRequest], len(c.Backends))
		w.requests.passed = make([]mailbox[host.Request], len(c.Backends))
	}
	w.histograms.init(c.Ports)
	return w, nil
}

// initPort makes the worker's queues of a port.
func (w *Worker) initPort(port int, c *Config) (err error) {
	p := &c.Ports[port]
	w.queues[port] = make([]queueState, p.Classes)
	w.egress[port], err = egress.New(w.plane.lines[port], &p.Queue, p.Classes, &w.accounts, w.batch.Ports[port].Tx[:0], c.Allocate)
	if err != nil || p.Paced == 0 {
		return err
	}
	memory, err := c.Allocate(pacing.Memory(p.Paced))
	if err != nil {
		return err
	}
	held := pacing.New(memory, p.Paced, c.Seed)
	held.Accounts, held.Learner, held.Port, held.ByFlow = &w.accounts, w.learner, port, p.Role == WAN
	w.pacers[port] = held
	return nil
}

// initFlows makes the flow table and the worker's state by its indexes.
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
	if memory, err = c.Allocate(account.Size(c.Flows)); err != nil {
		return err
	}
	w.accounts = account.New(memory, w.flows)
	return w.initStages(c)
}

// initStages connects the stages that notify, and makes their state.
func (w *Worker) initStages(c *Config) (err error) {
	if w.notifier, err = newNotifier(&w.common, w.plane.limits, c.Allocate); err != nil {
		return err
	}
	if w.senders, err = newSenders(w.notifier, c.Seed, c.Allocate); err != nil {
		return err
	}
	w.listener.common, w.listener.plane, w.listener.senders = &w.common, w.plane, w.senders
	w.requests.common, w.requests.plane, w.requests.notifier, w.requests.listener = &w.common, w.plane, w.notifier, &w.listener
	w.responder, err = newResponder(w.notifier, w.senders, w.plane.law, c.Seed, c.Allocate)
	return err
}

// Step is one iteration: one exchange with the device, then all stages. It returns the number of moved frames, 0 if there was nothing to
// do.
func (w *Worker) Step() int {
	w.work = 0
	w.taps.freeOffered(w.batch)
	w.now = w.backend.Exchange()
	w.taps.returnFreed(w.batch)
	w.steps.Store(w.steps.Load() + 1)
	w.histograms.step(w.now)
	w.policy = w.plane.policy.Load()
	w.trace = w.plane.trace.Load().at(w.id, w.unixTime())
	w.learner.SetStatic(w.policy.QPMap)
	for port := range w.egress {
		w.completeTransmits(port)
		if p := w.pacers[port]; p != nil {
			p.Begin(nil) // in observe mode frames are not held
			if !w.policy.observesAt(port) {
				p.Begin(w.policy.Ports[port].Pacing)
			}
			if p.Active() && w.policy.Ports[port].Enforce != nil {
				w.flows.ListTwins() // for locate
			}
		}
		if len(w.peers) > 1 {
			w.egress[port].ReadOthers()
		}
	}
	w.readMail()
	w.listener.readMail()
	if w.policy.Drain || w.drain.counts {
		w.drain.step(w)
	}
	if w.policy.Proxy != nil {
		w.flows.ListTwins() // for locate
	}
	if w.policy.Proxy != nil || w.requests.N > 0 {
		w.requests.step()
	}
	for i := range w.taps {
		if t := &w.taps[i]; w.policy.Ports[t.port].FabricHosts != nil { // a mirror port of both directions
			fabric, wan := t.divide(w.batch, w.policy.Ports[t.port].FabricHosts)
			w.receive(t.port, fabric)
			w.receive(w.ports[t.port].Peer, wan)
		}
	}
	for port := range w.egress {
		w.receive(port, w.batch.Ports[port].Rx)
	}
	for port := range w.egress {
		w.senders.resume(port)
		if s := &w.policy.Ports[port].STAMP; s.Interval > 0 {
			w.gateway.probe(port, s.Interval)
		}
		if w.pacers[port] != nil {
			w.release(port)
		}
		w.offer(port)
	}
	w.flows.Sweep(w.now)
	w.learner.Sweep()
	w.publish()
	if w.now >= w.histograms.due {
		w.histograms.sample(w.now, w.egress, w.id == 0)
	}
	if s := w.asked.Load(); s != nil && s.fill(w) {
		w.Forget(s)
	}
	return w.work
}

// receive passes frames that a port received through the stages, which are a file each: parse, classify, learn, answer CE, measure, queue,
// respond. Each stage processes the whole batch, so that the flow table's memory is fetched for all packets together.
func (w *Worker) receive(port int, rx []burst.Frame) {
	if len(rx) == 0 {
		return
	}
	w.work += len(rx)
	w.receiving = port + 1
	w.learner.StartBurst()
	b := &w.rx
	b.begin(port, rx, &w.policy.Ports[w.ports[port].Peer].Queue.ClassOf)
	b.parse()
	w.counters.add(port, RxPackets, uint64(len(rx)))
	w.counters.add(port, RxBytes, b.bytes)
	w.trace.begin(b)
	w.classify(b)
	w.learn(b)
	w.trace.learned(w.flows, w.learner)
	if w.requests.N > 0 && w.ports[port].Role == Fabric {
		w.requests.answer(b)
	}
	if b.ce != 0 {
		w.responder.answerCE(b)
	}
	w.measure(b)
	w.queue(b)
	w.trace.burstEnded()
	w.receiving = 0
}

// Steps is how many steps the worker has begun; any goroutine may ask.
func (w *Worker) Steps() uint64 { return w.steps.Load() }

// Now is the time of the last step on the backend's clock, ns.
func (w *Worker) Now() int64 { return w.now }

// Drain stops reception; Step still sends queued frames.
func (w *Worker) Drain() { w.batch.Drain = true }

// Queued is the number of frames, notifications included, that wait at this worker.
func (w *Worker) Queued() int {
	n := 0
	for i := range w.egress {
		n += w.egress[i].Queued()
		if p := w.pacers[i]; p != nil {
			held, _ := p.Held()
			n += held
		}
	}
	return n
}

// NextDue is the time of the worker's next action if no frame arrives: the next waiting frame may start, or a Resume or
// PFC frame is due.
// False when there is nothing.
func (w *Worker) NextDue() (int64, bool) {
	due, any := int64(0), false
	for i := range w.egress {
		if at, ok := w.egress[i].Due(); ok && (!any || at < due) {
			due, any = at, true
		}
		if _, at, ok := w.pacers[i].First(); ok && (!any || at < due) {
			due, any = at, true
		}
		if at, ok := w.plane.links[i].Due(w.now, w.id == 0); ok && (!any || at < due) {
			due, any = at, true
		}
		if at, ok := w.senders.nextResume(i); ok && (!any || at < due) {
			due, any = at, true
		}
	}
	return due, any
}

// Close returns every buffer to the backend. Frames that were still queued count as dropped by the shutdown.
func (w *Worker) Close() {
	w.batch.Drain = true
	for port := range w.batch.Ports { // of all ports, before the first exchange: no port may send buffers that are about to be freed
		w.batch.Ports[port].Tx = w.egress[port].List()
	}
	for port := range w.egress {
		q := &w.egress[port]
		if w.id == 0 {
			if buf := w.plane.links[port].TakeBuffer(); buf != 0 {
				w.giveBack(buf)
			}
		}
		for q.Notifications.Len() > 0 {
			f, tag := q.Notifications.Pop()
			w.giveBack(f.Buf)
			w.countNotSent(port, tag.Index, Shutdown)
		}
		p := w.pacers[port]
		for at, _, any := p.First(); any; at, _, any = p.First() {
			f, _, _ := p.Release(at, w.now)
			w.giveBack(f.Frame.Buf)
			w.counters.add(port, DroppedShutdown, 1)
		}
		for class := range q.Classes {
			for q.Classes[class].Len() > 0 {
				w.giveBack(q.Classes[class].Leave().Buf)
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
	w.histograms.sample(w.now, w.egress, w.id == 0)
}

// giveBack frees a buffer at the next exchange; it runs one at once if no more fit.
func (w *Worker) giveBack(buf uint64) {
	if len(w.batch.Free) == cap(w.batch.Free) {
		w.backend.Exchange()
	}
	w.batch.Free = append(w.batch.Free, buf)
}
