package webserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/report"
)

const (
	lookEvery    = 500 * time.Millisecond
	sendersEvery = 2 * time.Second
	maxAnswer    = 64 << 20 // bytes of an answer of the gateway
	maxReading   = 4        // lists that are read at a time
	mostSenders  = 8        // of an episode's event
	keptEpisodes = 256
)

// readable are the paths of the API that a page may read.
var readable = []string{
	api.BGPPath, api.CountersPath, api.EpisodesPath, api.ExplainPath, api.FlowsPath, api.HealthPath, api.NotificationsPath, api.PairsPath, api.ProxiesPath, api.RDMAPath,
	api.RDMATracePath,
	api.ReloadsPath, api.SendersPath, api.VersionPath,
}

// watched are the resources that become events when they change, at each so many looks.
var watched = []struct {
	kind, path string
	every      int
}{
	{"version", api.VersionPath, 4},
	{"counters", api.CountersPath, 1},
	{"health", api.HealthPath, 2},
	{"mode", api.ModePath, 2},
	{"notifications", api.NotificationsPath + "?limit=50", 2},
	{"suppressed", api.NotificationsPath + "?limit=50&outcome=suppressed", 2},
	{"fleet", api.FleetPath, 4},
	{"reloads", api.ReloadsPath, 4},
}

// Live is a running gateway.
type Live struct {
	client  *api.Client
	hub     *hub
	reading chan struct{}
	before  map[string][]byte // the latest answer of each kind
	looks   int
	// episodes are the latest ones, the oldest first, and the first of them that may change.
	episodes []report.Episode
	changing uint64
}

// NewLive shows the gateway of a client of the API.
func NewLive(client *api.Client) *Live {
	return &Live{client: client, hub: newHub(), reading: make(chan struct{}, maxReading), before: map[string][]byte{}}
}

func (*Live) entry() string { return "" } // the live view

func (l *Live) routes(get func(string, http.HandlerFunc)) {
	get("/source", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]any{"live": true, "tables": api.PageTables()})
	})
	get("/events", l.hub.serve)
	for _, path := range readable {
		get(path, l.pass)
	}
}

// pass answers with what the API answers.
func (l *Live) pass(w http.ResponseWriter, r *http.Request) {
	select {
	case l.reading <- struct{}{}:
		defer func() { <-l.reading }()
	case <-r.Context().Done():
		return
	}
	body, err := l.client.JSON(r.Context(), api.Path(r.URL.Path, r.URL.Query()))
	if err != nil {
		refuse(w, http.StatusBadGateway, err)
		return
	}
	defer body.Close()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if _, err := io.Copy(w, io.LimitReader(body, maxAnswer)); err != nil {
		panic(http.ErrAbortHandler) // a part must not look like the whole
	}
}

// run asks the gateway while a page is open.
func (l *Live) run(ctx context.Context) {
	var others sync.WaitGroup
	defer others.Wait()
	others.Go(func() { l.measureSenders(ctx) })
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		if l.hub.empty() {
			l.looks = 0
			l.gone()
			select {
			case <-ctx.Done():
				return
			case <-l.hub.came:
			}
		}
		if err := l.look(ctx); err != nil && ctx.Err() == nil {
			text, _ := json.Marshal(map[string]string{"error": err.Error()}) // a string is always JSON
			l.gone()
			e := newEvent("gone", text)
			l.hub.send(e, nil)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// gone forgets a gateway that may be another one when it answers again.
func (l *Live) gone() {
	l.hub.forget()
	clear(l.before)
	l.episodes, l.changing, l.looks = nil, 0, 0
}

// look sends what has changed.
func (l *Live) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	for _, w := range watched {
		if l.looks%w.every != 0 {
			continue
		}
		text, err := l.read(ctx, w.path)
		if err != nil {
			return err
		}
		if w.kind == "counters" {
			if text, err = brief(text); err != nil {
				return err
			}
		}
		if w.kind == "counters" || !bytes.Equal(text, l.before[w.kind]) {
			l.before[w.kind] = text
			if e := newEvent(w.kind, text); e != nil {
				l.hub.send(e, e)
			}
		}
	}
	l.looks++
	return l.lookAtEpisodes(ctx)
}

// brief leaves zeros and histograms out of counters: with 64 ports that is a tenth.
func brief(text []byte) ([]byte, error) {
	var c report.Counters
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, err
	}
	return json.Marshal(Brief(&c))
}

// Brief is counters without zeros and histograms, as pages get them.
func Brief(c *report.Counters) *report.Counters {
	out := *c
	out.Counters, out.Histograms, out.Ports = c.Counters.NonZero(), nil, slices.Clone(c.Ports)
	for i := range out.Ports {
		p := &out.Ports[i]
		p.Counters, p.Device = p.Counters.NonZero(), p.Device.NonZero()
	}
	return &out
}

func (l *Live) read(ctx context.Context, path string) ([]byte, error) {
	body, err := l.client.JSON(ctx, path)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, maxAnswer))
	if err == nil && len(text) == maxAnswer {
		err = fmt.Errorf("the gateway answers with more than %d bytes to %s", maxAnswer, path)
	}
	return text, err
}

// lookAtEpisodes sends the episodes that are new or have changed.
func (l *Live) lookAtEpisodes(ctx context.Context) error {
	if l.looks%2 != 1 {
		return nil
	}
	text, err := l.read(ctx, fmt.Sprintf("%s?since=%d", api.EpisodesPath, max(l.changing, 1)))
	if err != nil {
		return err
	}
	if bytes.Equal(text, l.before["episodes"]) {
		return nil
	}
	l.before["episodes"] = text
	var changed api.Episodes
	if err := json.Unmarshal(text, &changed); err != nil {
		return err
	}
	for i := range changed.Episodes {
		if e := &changed.Episodes[i]; len(e.Senders) > mostSenders {
			e.MoreSenders += len(e.Senders) - mostSenders
			e.Senders = e.Senders[:mostSenders]
		}
	}
	l.keep(changed.Episodes)
	e, all := episodesEvent(changed.Episodes), episodesEvent(l.episodes)
	if e == nil || all == nil {
		return errors.New("an episode is not JSON")
	}
	l.hub.send(e, all)
	return nil
}

// keep replaces the episodes from changing on.
func (l *Live) keep(changed []report.Episode) {
	l.episodes = slices.DeleteFunc(l.episodes, func(e report.Episode) bool { return e.ID >= l.changing })
	l.episodes = append(l.episodes, changed...)
	l.episodes = slices.Clone(l.episodes[max(len(l.episodes)-keptEpisodes, 0):])
	for i := range l.episodes {
		if l.changing = l.episodes[i].ID; l.episodes[i].End == nil {
			break
		}
	}
}

func episodesEvent(all []report.Episode) *event {
	text, err := json.Marshal(api.Episodes{Episodes: append([]report.Episode{}, all...)})
	if err != nil {
		return nil
	}
	return newEvent("episodes", text)
}

// measureSenders sends the senders with the highest rates.
func (l *Live) measureSenders(ctx context.Context) {
	tick := time.NewTicker(sendersEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if l.hub.empty() {
			continue
		}
		text, err := l.read(ctx, api.SendersPath+"?limit=50&interval=500ms")
		if err != nil {
			continue // look reports a gateway that doesn't answer
		}
		if e := newEvent("senders", text); e != nil {
			l.hub.send(e, e)
		}
	}
}
