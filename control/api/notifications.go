package api

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/notify"
	"github.com/cnpgate/cnpgate/internal/packet"
)

const (
	recordsAtOnce        = 64 // of one request in memory, as workers record them
	defaultNotifications = 100
	MaxNotifications     = 4096                  // of one answer
	streamPause          = 20 * time.Millisecond // a worker's list holds its notifications of this time at up to 50,000/s
)

// Kinds and Outcomes are the words by which notifications are selected.
var (
	Kinds    = names(packet.FastCNP, packet.ProxyNotification)
	Outcomes = names[counters.Outcome](0, counters.Outcomes-1)
)

// Notifications is the answer to GET /v1/notifications.
type Notifications struct {
	Notifications []report.Notification `json:"notifications"` // the latest ones, oldest first
}

// Streamed is one line of the answer to GET /v1/notifications/stream: one of the two members.
type Streamed struct {
	Notification *report.Notification `json:"notification,omitempty"`
	Lost         uint64               `json:"lost,omitempty" doc:"Number of notifications that were overwritten before they could be read."`
}

// history answers with what the workers record: notifications, and the packets of a traced flow.
type history struct {
	plane   *dataplane.Dataplane
	gateway Gateway
}

// notificationFilter selects notifications. A parameter that is not given selects all.
type notificationFilter struct {
	ends
	port, kind, outcome string
	limit               int
	frames              bool
}

func readNotificationFilter(r *request) *notificationFilter {
	return &notificationFilter{
		ends: readEnds(r), port: get[string](r, "port"), kind: get[string](r, "kind"), outcome: get[string](r, "outcome"),
		limit: int(cmp.Or(get[uint64](r, "limit"), defaultNotifications)), frames: get[bool](r, "frames"),
	}
}

// wants reports whether the filter selects a record. A port matches as the congested one, or the one by which the notification leaves.
func (f *notificationFilter) wants(c *config.Config, r *notify.NotificationRecord) bool {
	return (f.port == "" || f.port == c.Ports[r.Out].Name || f.port == c.Ports[r.In].Name) &&
		(f.kind == "" || r.Outcome != counters.Suppressed && f.kind == r.Format.String()) &&
		(f.outcome == "" || f.outcome == r.Outcome.String()) && f.want(&r.Key, r.QP)
}

// records is a worker's list of sent notifications or, if only those are wanted, of suppressed ones.
func (f *notificationFilter) records(w *dataplane.Worker) *notify.History {
	if f.outcome == counters.Suppressed.String() {
		return w.SuppressedNotifications()
	}
	return w.Notifications()
}

// each calls do with the records from a number on, the oldest first, or with nil and the number of those that were overwritten before they could be read.
// It returns the number of the next record.
func each(l *notify.History, from uint64, do func(r *notify.NotificationRecord, lost uint64) error) (next uint64, err error) {
	for end := l.Recorded(); from < end; from = next {
		piece := make([]notify.NotificationRecord, recordsAtOnce) // do may keep it
		var n int
		n, next = l.Read(from, piece)
		if lost := next - from - uint64(n); lost > 0 {
			err = do(nil, lost)
		}
		for i := 0; i < n && err == nil; i++ {
			err = do(&piece[i], 0)
		}
		if err != nil {
			return next, err
		}
	}
	return from, nil
}

// notifications answers with the latest notifications that a filter selects.
func (s *history) notifications(r *request) (any, error) {
	f := readNotificationFilter(r)
	c, all := s.gateway.Config(), []report.Notification{}
	for worker := range s.plane.Workers() {
		all = append(all, s.latest(c, worker, f)...)
	}
	slices.SortStableFunc(all, func(a, b report.Notification) int { return a.Time.Compare(b.Time) })
	return Notifications{last(all, f.limit)}, nil
}

// latest are the latest notifications of a worker, the oldest first.
func (s *history) latest(c *config.Config, worker int, f *notificationFilter) (all []report.Notification) {
	_, _ = each(f.records(s.plane.Worker(worker)), 0, func(r *notify.NotificationRecord, _ uint64) error {
		if r != nil && f.wants(c, r) {
			all = append(all, report.MakeNotification(c, worker, r, f.frames))
		}
		return nil
	})
	return last(all, f.limit)
}

func last[T any](all []T, n int) []T { return all[max(len(all)-n, 0):] }

// streamNotifications writes the notifications that a filter selects as they are sent, from now on.
func (s *history) streamNotifications(r *request) (any, error) {
	f := readNotificationFilter(r)
	f.frames = true
	c, at := s.gateway.Config(), make([]uint64, s.plane.Workers())
	for worker := range at {
		at[worker] = f.records(s.plane.Worker(worker)).Recorded()
	}
	r.stream(streamPause, func(out *json.Encoder) (err error) {
		for worker := range at {
			if at[worker], err = s.streamWorker(out, c, worker, at[worker], f); err != nil {
				return err
			}
		}
		return nil
	})
	return nil, nil
}

// stream writes lines at each tick, until the client disconnects or the gateway stops.
func (r *request) stream(each time.Duration, write func(*json.Encoder) error) {
	r.to.Header().Set("Content-Type", linesType)
	r.to.WriteHeader(http.StatusOK)
	tick := time.NewTicker(each)
	defer tick.Stop()
	out, flush := json.NewEncoder(r.to), http.NewResponseController(r.to).Flush
	for flush() == nil { // else the client has disconnected
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
		r.keepGoing(time.Time{})
		if write(out) != nil {
			return
		}
	}
}

// streamWorker writes a worker's records from a number on, and returns the number of the next one.
func (s *history) streamWorker(out *json.Encoder, c *config.Config, worker int, from uint64, f *notificationFilter) (next uint64, err error) {
	return each(f.records(s.plane.Worker(worker)), from, func(r *notify.NotificationRecord, lost uint64) error {
		switch {
		case r == nil:
			return out.Encode(Streamed{Lost: lost})
		case !f.wants(c, r):
			return nil
		}
		v := report.MakeNotification(c, worker, r, f.frames)
		return out.Encode(Streamed{Notification: &v})
	})
}
