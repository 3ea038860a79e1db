package dataplane

import (
	"github.com/cnpgate/cnpgate/dataplane/account"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/egress"
	"github.com/cnpgate/cnpgate/dataplane/frames"
	"github.com/cnpgate/cnpgate/dataplane/host"
	"github.com/cnpgate/cnpgate/dataplane/mailbox"
	"github.com/cnpgate/cnpgate/dataplane/notify"
	"github.com/cnpgate/cnpgate/dataplane/pacing"
	"github.com/cnpgate/cnpgate/dataplane/respond"
	"github.com/cnpgate/cnpgate/dataplane/stage"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/pairing"
)

func newWorker(d *Dataplane, id int, b burst.Backend, c *Config) (*Worker, error) {
	ports := len(c.Ports)
	w := &Worker{plane: d, backend: b, taps: newTaps(c.Ports, b.Batch()), state: stage.State{
		ID: id, Ports: c.Ports, Host: d.host, Clock: &d.wallClock, IO: b.Batch(), Counters: counters.New(ports),
		Egress: make([]egress.Port, ports), Pacers: make([]*pacing.Pacer, ports), Queues: make([][]stage.QueueState, ports),
		Batch: frames.Batch{Memory: b.Batch()},
	}}
	w.histograms.init(c.Ports)
	if err := w.initFlows(c); err != nil {
		return nil, err
	}
	for i := range w.state.Egress {
		if err := w.initPort(i, c); err != nil {
			return nil, err
		}
	}
	return w, w.initStages(c)
}

// initPort makes the worker's queues of a port.
func (w *Worker) initPort(port int, c *Config) (err error) {
	p := &c.Ports[port]
	w.state.Queues[port] = make([]stage.QueueState, p.Classes)
	w.state.Egress[port], err = egress.New(w.plane.lines[port], &p.Queue, p.Classes, &w.state.Accounts, w.state.IO.Ports[port].Tx[:0], c.Allocate)
	if err != nil || p.Paced == 0 {
		return err
	}
	memory, err := c.Allocate(pacing.Memory(p.Paced))
	if err != nil {
		return err
	}
	held := pacing.New(memory, p.Paced, c.Seed)
	held.Accounts, held.Learner, held.Port, held.ByFlow = &w.state.Accounts, w.state.Learner, port, p.Role == WAN
	w.state.Pacers[port] = held
	return nil
}

// initFlows makes the flow table and the worker's state by its indexes.
func (w *Worker) initFlows(c *Config) error {
	memory, err := c.Allocate(flowtable.Size(c.Flows))
	if err != nil {
		return err
	}
	w.state.Flows, err = flowtable.New(memory, flowtable.Config{
		Capacity: c.Flows, Aging: c.Aging, Seed: c.Seed + uint64(w.state.ID), Observer: &observer{w: w, ended: c.Ended},
		Keep: pairing.Keep,
	})
	if err != nil {
		return err
	}
	if memory, err = c.Allocate(pairing.LearnerSize(c.Flows, c.paired())); err != nil {
		return err
	}
	if w.state.Learner, err = w.plane.pairing.Join(w.state.Flows, memory); err != nil {
		return err
	}
	if memory, err = c.Allocate(account.Size(c.Flows)); err != nil {
		return err
	}
	w.state.Accounts = account.New(memory, w.state.Flows)
	return nil
}

// initStages makes and connects the stages.
func (w *Worker) initStages(c *Config) (err error) {
	s, d, workers := &w.state, w.plane, len(c.Backends)
	if w.notifier, err = notify.New(s, d.limits, c.Allocate); err != nil {
		return err
	}
	if w.senders, err = notify.NewSenders(w.notifier, c.Seed, c.Allocate); err != nil {
		return err
	}
	if w.responder, err = respond.New(w.notifier, w.senders, d.law, c.Seed, c.Allocate); err != nil {
		return err
	}
	trackers := make([]tracker, len(c.Ports))
	for i := range trackers {
		trackers[i] = tracker{State: s, out: i, seed: c.Seed, path: &d.paths[i]}
	}
	w.listener = listener{State: s, senders: w.senders, paces: newMailboxes[portPaceRequest](workers, c.Ports)}
	w.requests = requests{State: s, notifier: w.notifier, listener: &w.listener}
	if workers > 1 {
		w.listener.passed = make([]mailbox.Box[portPaceRequest], workers)
		w.requests.passed = make([]mailbox.Box[host.Request], workers)
	}
	w.gateway = ownHost{State: s, requests: &w.requests, paths: d.paths, links: make([]linkHeader, len(c.Ports))}
	w.queuer = queuer{s, w.responder, &w.inspector}
	w.pacer = pacer{State: s, queuer: &w.queuer, law: &w.responder.Law, mail: newMailboxes[slowDown](workers, c.Ports)}
	w.classifier = classifier{s, d.links, &w.gateway, &w.listener, &w.pacer}
	w.learner, w.meter = learner{s, trackers}, meter{s, trackers, &w.gateway}
	if w.inspector, err = newInspector(s, c); err != nil {
		return err
	}
	w.transmitter = transmitter{s, d.links, &w.histograms, &w.inspector}
	w.drain = drain{State: s, law: &w.responder.Law}
	return nil
}
