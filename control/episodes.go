package control

import (
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/control/episode"
	"github.com/cnpgate/cnpgate/control/report"
)

// episodesApart is the least time between the starts of two logged episodes of a queue, so that short bursts don't fill the log.
const episodesApart = time.Minute

// episodes watches the queues for congestion. One goroutine calls look; any goroutine may call list.
type episodes struct {
	g       *gateway
	mutex   sync.Mutex // of watcher
	watcher *episode.Watcher
	logged  map[episode.Queue]loggedEpisode
}

// loggedEpisode is the last episode of a queue in the log.
type loggedEpisode struct {
	id    uint64
	start int64 // Unix time, ns
}

func newEpisodes(g *gateway) *episodes {
	return &episodes{g: g, watcher: episode.NewWatcher(g.plane, report.EpisodePorts(g.started)), logged: map[episode.Queue]loggedEpisode{}}
}

// look updates the episodes.
func (e *episodes) look(now time.Time) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.watcher.Watch(now.UnixNano(), e.log)
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
	all := e.watcher.Episodes()
	e.mutex.Unlock()
	c, out := e.g.running.Load(), []report.Episode{}
	for i := range all {
		out = append(out, report.MakeEpisode(c, &all[i]))
	}
	return out
}

// Episodes returns the congestion episodes of the queues. Any goroutine may call it.
func (g *gateway) Episodes() []report.Episode { return g.episodes.list() }
