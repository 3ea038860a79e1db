package control

import (
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/control/episode"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/notify"
)

const (
	recordsAtOnce = 64
	// sampledFlows is the number of flows that a worker records for an episode at a time.
	sampledFlows = 128
	// episodesApart is the least time between the starts of two logged episodes of a queue, so that short bursts don't fill the log.
	episodesApart = time.Minute
)

// episodes watches the queues for congestion. One goroutine calls look; any goroutine may call list.
type episodes struct {
	g       *gateway
	mutex   sync.Mutex // of tracker
	tracker *episode.Tracker
	workers []watchedWorker
	turn    int // of the queues with an open episode
	logged  map[episode.Queue]loggedEpisode
	piece   []notify.NotificationRecord
}

// loggedEpisode is the last episode of a queue in the log.
type loggedEpisode struct {
	id    uint64
	start int64 // Unix time, ns
}

// watchedWorker has what was read from a worker, and the request to it.
type watchedWorker struct {
	read     uint64 // records of notifications
	asked    bool
	queue    episode.Queue
	snapshot dataplane.Snapshot
}

func newEpisodes(g *gateway) *episodes {
	e := &episodes{g: g, tracker: episode.NewTracker(), logged: map[episode.Queue]loggedEpisode{}, workers: make([]watchedWorker, g.plane.Workers()), piece: make([]notify.NotificationRecord, recordsAtOnce)}
	for i := range e.workers {
		e.workers[i].snapshot = dataplane.Snapshot{Flows: make([]dataplane.FlowRecord, 0, sampledFlows), Queue: &dataplane.QueueFlows{}}
	}
	return e
}

// look updates the episodes. Workers answer between two looks.
func (e *episodes) look(now time.Time) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	for i := range e.workers {
		e.takeAnswer(i)
		e.takeNotifications(i)
	}
	for port := range e.g.started.Ports {
		e.lookAt(now, port)
	}
	e.ask()
}

// takeAnswer takes a worker's answer: the requested flows.
func (e *episodes) takeAnswer(worker int) {
	w := &e.workers[worker]
	if !w.asked || e.g.plane.Worker(worker).Asked(&w.snapshot) {
		return
	}
	w.asked = false
	e.tracker.Sampled(w.queue, worker, w.snapshot.Queue.Time, w.snapshot.Flows)
}

// takeNotifications takes the notifications that a worker sent since the last look.
func (e *episodes) takeNotifications(worker int) {
	w, piece, sent := &e.workers[worker], e.piece, e.g.plane.Worker(worker).Notifications()
	for end := sent.Recorded(); w.read < end; {
		n, next := sent.Read(w.read, piece)
		for i := range piece[:n] {
			e.tracker.Notified(worker, &piece[i])
		}
		e.tracker.Lost(next - w.read - uint64(n)) // after those that may begin an episode
		w.read = next
	}
}

// lookAt looks at the queues of a port.
func (e *episodes) lookAt(now time.Time, port int) {
	s, policy := e.g.plane.Port(port), &e.g.plane.Policy().Ports[port]
	var suppressed episode.Suppressed
	in := e.g.plane.Port(e.g.started.Ports[port].Peer)
	copy(suppressed[:], in.Count[counters.SuppressedFirst:])
	for class := range e.g.started.Ports[port].ClassNames {
		state := episode.State{Peak: max(e.g.plane.TakePeak(port, class), s.Depth[class]), KMin: policy.KMin, Marked: s.Marked[class], Suppressed: suppressed}
		if one, event := e.tracker.Look(now.UnixNano(), episode.Queue{Port: port, Class: class}, state); event != episode.None {
			e.log(one, event)
		}
	}
}

// ask asks the workers for the flows of one queue with an open episode; the queues take turns.
func (e *episodes) ask() {
	open := e.tracker.Open()
	if len(open) == 0 {
		return
	}
	e.turn++
	queue := open[e.turn%len(open)]
	for i := range e.workers {
		w := &e.workers[i]
		if w.asked {
			continue // it got no CPU time, or has another request
		}
		q := w.snapshot.Queue
		q.Port, q.Class, q.Of = queue.Port, queue.Class, e.tracker.Flows(queue, i, q.Of[:0])
		w.queue, w.snapshot.Flows = queue, w.snapshot.Flows[:0]
		w.asked = e.g.plane.Worker(i).Ask(&w.snapshot)
	}
}

// level is info for an episode that begins a minute after the last one that was, and debug for the others.
func (e *episodes) level(one *episode.Episode, event episode.Event) zerolog.Level {
	last, ok := e.logged[one.Queue]
	apart := one.Start - last.start // negative after the clock was set back
	if event == episode.Began && (!ok || apart < 0 || apart >= episodesApart.Nanoseconds()) {
		last = loggedEpisode{one.ID, one.Start}
		e.logged[one.Queue] = last
	}
	if last.id == one.ID {
		return zerolog.InfoLevel
	}
	return zerolog.DebugLevel
}

func (e *episodes) log(one *episode.Episode, event episode.Event) {
	level := e.level(one, event)
	r := report.MakeEpisode(e.g.running.Load(), one)
	e.g.publishEpisode(event, &r)
	if event == episode.Began {
		e.g.options.Log.WithLevel(level).Uint64("episode", r.ID).Str("port", r.Port).Str("class", r.Class).Uint64("queue_depth_bytes", r.PeakBytes).
			Msg("Congestion of the queue began.")
		return
	}
	sent := uint64(0)
	for _, n := range r.Notifications {
		sent += n
	}
	line := e.g.options.Log.WithLevel(level).Uint64("episode", r.ID).Str("port", r.Port).Str("class", r.Class).Dur("duration_ms", r.End.Sub(r.Start)).
		Uint64("peak_bytes", r.PeakBytes).Uint64("ecn_marked", r.ECNMarked).Uint64("notifications", sent).Uint64("notifications_observed", r.Observed).
		Int("senders", len(r.Senders)+r.MoreSenders).Uint64("notifications_lost", r.Lost).Int("senders_slowed", r.SlowedSenders())
	if top := one.Suppressed.Top(); top != 0 {
		line = line.Stringer("top_suppression", top).Uint64("top_suppression_count", one.Suppressed[top-1])
	}
	if len(r.Flows) > 0 {
		f := &r.Flows[0]
		line = line.Stringer("top_flow_source_ip", f.SourceIP).Stringer("top_flow_destination_ip", f.DestinationIP).
			Uint32("top_flow_destination_qp", f.DestinationQP).Uint64("top_flow_bytes", f.Bytes)
	}
	line.Msg("Congestion of the queue ended.")
}

// list returns the recorded episodes, the oldest first.
func (e *episodes) list() []report.Episode {
	e.mutex.Lock()
	all := e.tracker.Episodes()
	e.mutex.Unlock()
	c, out := e.g.running.Load(), []report.Episode{}
	for i := range all {
		out = append(out, report.MakeEpisode(c, &all[i]))
	}
	return out
}

// Episodes returns the congestion episodes of the queues. Any goroutine may call it.
func (g *gateway) Episodes() []report.Episode { return g.episodes.list() }
