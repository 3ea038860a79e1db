package webserver

import (
	"cmp"
	"slices"
	"time"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/replay"
	"github.com/cnpgate/cnpgate/control/report"
)

// AddReplay adds a replay: what its recorder recorded over time, and its report.
func (c *Recording) AddReplay(r *report.Report, recorded *replay.Recorder) {
	at := func(t time.Time) float64 { return float64(t.Sub(recorded.First)) / float64(time.Millisecond) }
	c.BeganMS, c.Notifications = recorded.First.UnixMilli(), recorded.Notifications
	for _, s := range recorded.Samples {
		c.Events = append(c.Events, Event{float64(s.Time) / float64(time.Millisecond), "counters", Brief(s.Counters)})
	}
	for _, e := range recorded.Episodes {
		begun := e
		begun.End = nil
		c.Events = append(c.Events, Event{at(e.Start), "episodes", api.Episodes{Episodes: []report.Episode{begun}}})
		if e.End != nil {
			c.Events = append(c.Events, Event{at(*e.End), "episodes", api.Episodes{Episodes: []report.Episode{e}}})
		}
	}
	for i := range recorded.Notifications {
		n := &recorded.Notifications[i]
		kind := "notifications"
		if n.Reason != "" {
			kind = "suppressed"
		}
		c.Events = append(c.Events, Event{at(n.Time), kind, api.Notifications{Notifications: recorded.Notifications[i : i+1]}})
	}
	if recorded.Lost > 0 {
		c.Events = append(c.Events, Event{0, "missed", recorded.Lost})
	}
	end := 0.0
	for i := range c.Events {
		end = max(end, c.Events[i].Milliseconds)
	}
	c.AddReport(r, end)
	slices.SortStableFunc(c.Events, func(a, b Event) int { return cmp.Compare(a.Milliseconds, b.Milliseconds) })
}
