package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing"
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
	Outcomes = names[dataplane.Outcome](0, dataplane.Outcomes-1)
)

// Notifications is the answer to GET /v1/notifications.
type Notifications struct {
	Notifications []report.Notification `json:"notifications"` // the latest ones, oldest first
}

// Streamed is one line of the answer to GET /v1/notifications/stream: one of the two members.
type Streamed struct {
	Notification *report.Notification `json:"notification,omitempty"`
	Lost         uint64               `json:"lost,omitempty"` // notifications that were overwritten before they could be read
}

// notificationFilter selects notifications. A parameter that is not given selects all.
type notificationFilter struct {
	port, kind, outcome     string
	source, destination     netip.Prefix
	sourceQP, destinationQP *uint32
	limit                   int
	frames                  bool
}

func parseNotificationFilter(values map[string]string, c *config.Config) (*notificationFilter, error) {
	f := &notificationFilter{limit: defaultNotifications}
	for key, text := range values {
		if err := f.set(c, key, text); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// set reads one parameter.
func (f *notificationFilter) set(c *config.Config, key, text string) (err error) {
	switch key {
	case "port":
		f.port, err = oneOf(key, text, portNames(c))
	case "kind":
		f.kind, err = oneOf(key, text, Kinds)
	case "outcome":
		f.outcome, err = oneOf(key, text, Outcomes)
	case "source_ip":
		f.source, err = parsePrefix(key, text)
	case "destination_ip":
		f.destination, err = parsePrefix(key, text)
	case "source_qp":
		f.sourceQP, err = parseQP(key, text)
	case "destination_qp":
		f.destinationQP, err = parseQP(key, text)
	case "limit":
		if f.limit, err = strconv.Atoi(text); err != nil || f.limit < 1 || f.limit > MaxNotifications {
			err = failed(http.StatusBadRequest, "limit is %.50q; expected a number from 1 to %d", text, MaxNotifications)
		}
	case "frames":
		if f.frames, err = strconv.ParseBool(text); err != nil {
			err = failed(http.StatusBadRequest, "frames is %.50q; expected true or false", text)
		}
	}
	return err
}

func portNames(c *config.Config) (all []string) {
	for i := range c.Ports {
		all = append(all, c.Ports[i].Name)
	}
	return all
}

// wants reports whether the filter selects a record. A port matches as the congested one, or the one by which the notification leaves.
func (f *notificationFilter) wants(c *config.Config, r *dataplane.NotificationRecord) bool {
	switch {
	case f.port != "" && f.port != c.Ports[r.Out].Name && f.port != c.Ports[r.In].Name:
	case f.kind != "" && (r.Outcome == dataplane.Suppressed || f.kind != r.Format.String()):
	case f.outcome != "" && f.outcome != r.Outcome.String():
	case f.sourceQP != nil && (r.QP.State() != pairing.Confirmed || r.QP.SourceQP() != *f.sourceQP):
	case f.destinationQP != nil && r.Key.DestQP != *f.destinationQP:
	case f.source.IsValid() && !f.source.Contains(r.Key.Src.Netip()):
	case f.destination.IsValid() && !f.destination.Contains(r.Key.Dst.Netip()):
	default:
		return true
	}
	return false
}

// records is a worker's list of sent notifications or, if only those are wanted, of suppressed ones.
type records struct {
	read    func(from uint64, to []dataplane.NotificationRecord) (n int, next uint64)
	written func() uint64
}

func (f *notificationFilter) records(w *dataplane.Worker) records {
	if f.outcome == dataplane.Suppressed.String() {
		return records{w.SuppressedNotifications, w.SuppressedRecorded}
	}
	return records{w.Notifications, w.NotificationsRecorded}
}

// getNotifications answers with the latest notifications that a filter selects.
func (s *Server) getNotifications(w http.ResponseWriter, _ *http.Request, parameters map[string]string) error {
	c := s.gateway.Config()
	f, err := parseNotificationFilter(parameters, c)
	if err != nil {
		return err
	}
	all := []report.Notification{}
	for worker := range s.plane.Workers() {
		all = append(all, s.latest(c, worker, f)...)
	}
	slices.SortStableFunc(all, func(a, b report.Notification) int { return a.Time.Compare(b.Time) })
	answer(w, http.StatusOK, Notifications{last(all, f.limit)})
	return nil
}

// latest are the latest notifications of a worker, the oldest first.
func (s *Server) latest(c *config.Config, worker int, f *notificationFilter) (all []report.Notification) {
	list, piece := f.records(s.plane.Worker(worker)), make([]dataplane.NotificationRecord, recordsAtOnce)
	for at, end := uint64(0), list.written(); at < end; {
		var n int
		n, at = list.read(at, piece)
		for i := range piece[:n] {
			if f.wants(c, &piece[i]) {
				all = append(all, report.MakeNotification(c, worker, &piece[i], f.frames))
			}
		}
	}
	return last(all, f.limit)
}

func last[T any](all []T, n int) []T { return all[max(len(all)-n, 0):] }

// streamNotifications writes the notifications that a filter selects as they are sent, from now on, one object per line, until the client disconnects
// or the gateway stops.
func (s *Server) streamNotifications(w http.ResponseWriter, r *http.Request, parameters map[string]string) error {
	c := s.gateway.Config()
	f, err := parseNotificationFilter(parameters, c)
	if err != nil {
		return err
	}
	f.frames = true
	out, at := json.NewEncoder(w), make([]uint64, s.plane.Workers())
	for worker := range at {
		at[worker] = f.records(s.plane.Worker(worker)).written()
	}
	w.Header().Set("Content-Type", linesType)
	w.WriteHeader(http.StatusOK)
	tick := time.NewTicker(streamPause)
	defer tick.Stop()
	for flush := http.NewResponseController(w).Flush; ; {
		if err := flush(); err != nil {
			return nil // the client has disconnected
		}
		select {
		case <-r.Context().Done():
			return nil
		case <-tick.C:
		}
		keepGoing(w, time.Time{})
		for worker := range at {
			if at[worker], err = s.streamWorker(out, c, worker, at[worker], f); err != nil {
				return nil
			}
		}
	}
}

// streamWorker writes a worker's records from a number on, and returns the number of the next one.
func (s *Server) streamWorker(out *json.Encoder, c *config.Config, worker int, from uint64, f *notificationFilter) (next uint64, err error) {
	list, piece := f.records(s.plane.Worker(worker)), make([]dataplane.NotificationRecord, recordsAtOnce)
	for end := list.written(); from < end; {
		n, next := list.read(from, piece)
		if lost := next - from - uint64(n); lost > 0 {
			if err := out.Encode(Streamed{Lost: lost}); err != nil {
				return next, err
			}
		}
		for i := range piece[:n] {
			if !f.wants(c, &piece[i]) {
				continue
			}
			v := report.MakeNotification(c, worker, &piece[i], f.frames)
			if err := out.Encode(Streamed{Notification: &v}); err != nil {
				return next, err
			}
		}
		from = next
	}
	return from, nil
}

// streamEnded is nil if the context has ended, or the gateway has stopped.
func (c *Client) streamEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, io.EOF) {
		return nil
	}
	return fmt.Errorf("the gateway at %s: %w; what came before that is complete", c.socket, err)
}

// Notifications reads the latest notifications. The filter has the parameters of the request.
func (c *Client) Notifications(ctx context.Context, filter url.Values) ([]report.Notification, error) {
	answer := Notifications{}
	err := c.read(ctx, http.MethodGet, NotificationsPath+"?"+filter.Encode(), nil, &answer)
	return answer.Notifications, err
}

// Stream reads notifications as they are sent, from now on. It calls begun once the gateway has begun the stream, then each for each line. It returns
// when the context or the gateway ends, or with the error of begun or each.
func (c *Client) Stream(ctx context.Context, filter url.Values, begun func() error, each func(*Streamed) error) error {
	return stream(ctx, c, streamPath+"?"+filter.Encode(), begun, each)
}

// stream reads the lines of an answer.
func stream[L any](ctx context.Context, c *Client, path string, begun func() error, each func(*L) error) error {
	body, err := c.ask(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	defer body.Close()
	if err := begun(); err != nil {
		return err
	}
	for lines := json.NewDecoder(body); ; {
		var line L
		if err := lines.Decode(&line); err != nil {
			return c.streamEnded(ctx, err)
		}
		if err := each(&line); err != nil {
			return err
		}
	}
}
