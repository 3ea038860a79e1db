package episode

import (
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/notify"
)

const (
	recordsAtOnce = 64
	// sampledFlows is the number of flows that a worker records for an episode at a time.
	sampledFlows = 128
)

// Watcher reads a dataplane for a tracker.
type Watcher struct {
	*Tracker
	plane   *dataplane.Dataplane
	ports   []Port
	workers []watchedWorker
	turn    int // of the queues with an open episode
	piece   []notify.NotificationRecord
}

// Port is a port of the dataplane.
type Port struct {
	Peer, Classes int
	Rate          uint64 // bit/s
}

// watchedWorker has what was read from a worker, and the request to it.
type watchedWorker struct {
	read     uint64 // records of notifications
	asked    bool
	queue    Queue
	snapshot dataplane.Snapshot
}

// NewWatcher makes a watcher of a dataplane with these ports.
func NewWatcher(plane *dataplane.Dataplane, ports []Port) *Watcher {
	w := &Watcher{Tracker: NewTracker(), plane: plane, ports: ports, workers: make([]watchedWorker, plane.Workers()), piece: make([]notify.NotificationRecord, recordsAtOnce)}
	for i := range ports {
		w.Lines = append(w.Lines, ports[i].Rate)
	}
	for i := range w.workers {
		w.workers[i].snapshot = dataplane.Snapshot{Flows: make([]dataplane.FlowRecord, 0, sampledFlows), Queue: &dataplane.QueueFlows{}}
	}
	return w
}

// Watch updates the episodes at a time (Unix time, ns), and calls happened for each that begins or ends. Workers answer between two calls.
func (w *Watcher) Watch(now int64, happened func(*Episode, Event)) {
	for i := range w.workers {
		w.takeAnswer(i)
		w.takeNotifications(i)
	}
	for port := range w.ports {
		w.watchPort(now, port, happened)
	}
	w.ask()
}

// takeAnswer takes a worker's answer: the requested flows.
func (w *Watcher) takeAnswer(worker int) {
	of := &w.workers[worker]
	if !of.asked || w.plane.Worker(worker).Asked(&of.snapshot) {
		return
	}
	of.asked = false
	w.Sampled(of.queue, worker, of.snapshot.Queue.Time, of.snapshot.Flows)
}

// takeNotifications takes the notifications that a worker sent since the last call.
func (w *Watcher) takeNotifications(worker int) {
	of, sent := &w.workers[worker], w.plane.Worker(worker).Notifications()
	for end := sent.Recorded(); of.read < end; {
		n, next := sent.Read(of.read, w.piece)
		for i := range w.piece[:n] {
			w.Notified(worker, &w.piece[i])
		}
		w.Lost(next - of.read - uint64(n)) // after those that may begin an episode
		of.read = next
	}
}

// watchPort looks at the queues of a port.
func (w *Watcher) watchPort(now int64, port int, happened func(*Episode, Event)) {
	s, policy := w.plane.Port(port), &w.plane.Policy().Ports[port]
	var suppressed Suppressed
	in := w.plane.Port(w.ports[port].Peer)
	copy(suppressed[:], in.Count[counters.SuppressedFirst:])
	above := policy.KMin
	if policy.Law.On() { // senders are notified from there on
		above = uint64(policy.Law.NotifiesAbove())
	}
	for class := range w.ports[port].Classes {
		state := State{Peak: max(w.plane.TakePeak(port, class), s.Depth[class]), Above: above, Marked: s.Marked[class], Suppressed: suppressed}
		if one, event := w.Look(now, Queue{port, class}, state); event != None {
			happened(one, event)
		}
	}
}

// ask asks the workers for the flows of one queue with an open episode; the queues take turns.
func (w *Watcher) ask() {
	open := w.Open()
	if len(open) == 0 {
		return
	}
	w.turn++
	queue := open[w.turn%len(open)]
	for i := range w.workers {
		of := &w.workers[i]
		if of.asked {
			continue // it got no CPU time, or has another request
		}
		q := of.snapshot.Queue
		q.Port, q.Class, q.Of = queue.Port, queue.Class, w.Flows(queue, i, q.Of[:0])
		of.queue, of.snapshot.Flows = queue, of.snapshot.Flows[:0]
		of.asked = w.plane.Worker(i).Ask(&of.snapshot)
	}
}
