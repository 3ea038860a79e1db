package dataplane

import (
	"sync/atomic"

	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/notify"
	"github.com/cnpgate/cnpgate/dataplane/respond"
	"github.com/cnpgate/cnpgate/dataplane/stage"
	"github.com/cnpgate/cnpgate/internal/burst"
)

// Worker owns a pair of device queues on every port, a flow table with its learner and accounts, and its part of every egress queue.
type Worker struct {
	state     stage.State
	notifier  *notify.Notifier
	senders   *notify.Senders
	responder *respond.Responder

	classifier  classifier
	learner     learner
	inspector   inspector
	meter       meter
	pacer       pacer
	queuer      queuer
	transmitter transmitter
	gateway     ownHost
	listener    listener // to notifications that pass
	requests    requests // of congested nodes
	drain       drain

	plane      *Dataplane
	backend    burst.Backend
	receiving  int // 1 + the port whose burst goes through the stages now, or 0
	taps       taps
	steps      atomic.Uint64 // made so far
	histograms histograms

	snapshots
}

// Step is one iteration: one exchange with the device, then all stages. It returns the number of moved frames, 0 if there was nothing to
// do.
func (w *Worker) Step() int {
	s := &w.state
	w.exchange()
	for port := range s.Egress {
		w.begin(port)
	}
	w.pacer.readMail()
	w.listener.readMail()
	if s.Policy.Drain || w.drain.counts {
		w.drain.step()
	}
	if s.Policy.Proxy != nil {
		s.Flows.ListTwins() // for Locate
	}
	if s.Policy.Proxy != nil || w.requests.N > 0 {
		w.requests.step()
	}
	for i := range w.taps {
		if t := &w.taps[i]; s.Policy.Ports[t.port].FabricHosts != nil { // a mirror port of both directions
			fabric, wan := t.divide(s.IO, s.Policy.Ports[t.port].FabricHosts)
			w.receive(t.port, fabric)
			w.receive(s.Ports[t.port].Peer, wan)
		}
	}
	for port := range s.Egress {
		w.receive(port, s.IO.Ports[port].Rx)
	}
	for port := range s.Egress {
		w.send(port)
	}
	s.Flows.Sweep(s.Now)
	s.Learner.Sweep()
	w.publish()
	if s.Now >= w.histograms.due {
		w.histograms.sample(s.Now, s.Egress, s.ID == 0)
	}
	if asked := w.Requested(); asked != nil && asked.fill(w) {
		w.Forget(asked)
	}
	return s.Moved
}

// exchange exchanges frames with the device, and reads the time and the policy of the step.
func (w *Worker) exchange() {
	s := &w.state
	s.Moved = 0
	w.taps.freeOffered(s.IO)
	s.Now = w.backend.Exchange()
	w.taps.returnFreed(s.IO)
	w.steps.Store(w.steps.Load() + 1)
	w.histograms.step(s.Now)
	s.Policy = w.plane.policy.Load()
	s.Trace = w.plane.trace.Load().At(s.ID, s.UnixTime())
	s.Learner.SetStatic(s.Policy.QPMap)
}

// begin begins a port's part of the step.
func (w *Worker) begin(port int) {
	s := &w.state
	w.transmitter.completeTransmits(port)
	if p := s.Pacers[port]; p != nil {
		p.Begin(nil) // in observe mode frames are not held
		if !s.Policy.ObservesAt(port) {
			p.Begin(s.Policy.Ports[port].Pacing)
		}
		if p.Active() && s.Policy.Ports[port].Enforce != nil {
			s.Flows.ListTwins() // for Locate
		}
	}
	if len(s.Peers) > 1 {
		s.Egress[port].ReadOthers()
	}
}

// receive passes frames that a port received through the stages. Each stage processes the whole batch, so that the flow table's memory is
// fetched for all packets together.
func (w *Worker) receive(port int, rx []burst.Frame) {
	if len(rx) == 0 {
		return
	}
	s, b := &w.state, &w.state.Batch
	s.Moved += len(rx)
	w.receiving = port + 1
	s.Learner.StartBurst()
	peer := s.Ports[port].Peer
	b.Begin(port, rx, len(s.Egress[peer].Classes), &s.Policy.Ports[peer].Queue.ClassOf)
	b.Parse()
	s.Counters.Add(port, counters.RxPackets, uint64(len(rx)))
	s.Counters.Add(port, counters.RxBytes, b.Bytes)
	s.Trace.Begin(b)
	w.classifier.classify(b)
	w.learner.learn(b)
	w.inspector.inspect(b)
	s.Trace.Learned(s.Flows, s.Learner)
	if w.requests.N > 0 && s.Ports[port].Role == Fabric {
		w.requests.answer(b)
	}
	if b.CE != 0 {
		w.responder.AnswerCE(b)
	}
	w.meter.measure(b)
	w.queuer.queue(b, w.pacer.pace(b))
	s.Trace.BurstEnded()
	w.receiving = 0
}

// send gives the device what may leave by a port.
func (w *Worker) send(port int) {
	w.senders.Resume(port)
	if interval := w.state.Policy.Ports[port].STAMP.Interval; interval > 0 {
		w.gateway.probe(port, interval)
	}
	if w.state.Pacers[port] != nil {
		w.pacer.release(port)
	}
	w.transmitter.offer(port)
}

// Steps is how many steps the worker has begun; any goroutine may ask.
func (w *Worker) Steps() uint64 { return w.steps.Load() }

// Now is the time of the last step on the backend's clock, ns.
func (w *Worker) Now() int64 { return w.state.Now }

// Queued is the number of frames, notifications included, that wait at this worker.
func (w *Worker) Queued() int {
	n := 0
	for i := range w.state.Egress {
		n += w.state.Egress[i].Queued()
		if p := w.state.Pacers[i]; p != nil {
			held, _ := p.Held()
			n += held
		}
	}
	return n
}

// NextDue is the time of the worker's next action if no frame arrives: the next waiting frame may start, or a Resume or PFC frame is due.
// False when there is nothing.
func (w *Worker) NextDue() (int64, bool) {
	due, any := int64(0), false
	for i := range w.state.Egress {
		if at, ok := w.state.Egress[i].Due(); ok && (!any || at < due) {
			due, any = at, true
		}
		if _, at, ok := w.state.Pacers[i].First(); ok && (!any || at < due) {
			due, any = at, true
		}
		if at, ok := w.plane.links[i].Due(w.state.Now, w.state.ID == 0); ok && (!any || at < due) {
			due, any = at, true
		}
		if at, ok := w.senders.NextResume(i); ok && (!any || at < due) {
			due, any = at, true
		}
	}
	return due, any
}
