package webserver

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strconv"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/report"
)

// Event is what happened at a time of a recording: the answer of the API's resource that a running gateway would send as an event of this kind.
type Event struct {
	Milliseconds float64 `json:"at_ms"`
	Kind         string  `json:"kind"`
	Data         any     `json:"data"`
}

// Chart is a finished plot.
type Chart struct {
	Title string   `json:"title"`
	Unit  string   `json:"unit"`     // bytes, bps or count
	Times []int64  `json:"times_ns"` // of each value
	Lines []Series `json:"lines"`
}

// Series is a line of a chart. A value of null is a gap.
type Series struct {
	Label  string     `json:"label"`
	Values []*float64 `json:"values"`
}

// Recording is what has happened in a run that is over. It is immutable once it is served.
type Recording struct {
	Title string `json:"title"`
	// BeganMS is the start of the events' times, ms since 1970; 0: not known.
	BeganMS int64   `json:"began_unix_ms,omitempty"`
	Events  []Event `json:"events"` // by time
	Charts  []Chart `json:"charts"`

	Flows         []api.Flow            `json:"-"`
	Notifications []report.Notification `json:"-"`
}

// AddReport adds the contents of a report as the state at a time.
func (c *Recording) AddReport(r *report.Report, milliseconds float64) {
	c.Title = cmp.Or(c.Title, r.Gateway)
	c.Flows = make([]api.Flow, len(r.Flows))
	for i := range r.Flows {
		c.Flows[i] = api.Flow{Flow: r.Flows[i]}
	}
	counters := report.Counters{Identity: r.Identity, Counters: r.Counters, Ports: r.Ports}
	c.Events = append(c.Events, Event{milliseconds, "version", r.Identity}, Event{milliseconds, "counters", Brief(&counters)})
	if len(r.Timeline) > 0 {
		c.Charts = append(c.Charts, depthChart(r.Timeline))
	}
}

// depthChart plots the timeline of a report.
func depthChart(all []report.Depth) Chart {
	chart, at := Chart{Title: "Queue depth", Unit: "bytes"}, map[string]int{}
	for _, d := range all {
		if _, known := at[d.Port]; !known {
			at[d.Port] = len(chart.Lines)
			chart.Lines = append(chart.Lines, Series{Label: d.Port})
		}
		if ns := d.MS * 1e6; len(chart.Times) == 0 || chart.Times[len(chart.Times)-1] != ns {
			chart.Times = append(chart.Times, ns)
		}
		line, value := &chart.Lines[at[d.Port]], float64(d.DepthBytes)
		for len(line.Values) < len(chart.Times)-1 {
			line.Values = append(line.Values, nil)
		}
		if len(line.Values) < len(chart.Times) {
			line.Values = append(line.Values, &value)
		}
	}
	for i := range chart.Lines {
		for len(chart.Lines[i].Values) < len(chart.Times) {
			chart.Lines[i].Values = append(chart.Lines[i].Values, nil)
		}
	}
	return chart
}

func (c *Recording) run(ctx context.Context) { <-ctx.Done() }

func (*Recording) entry() string { return "" } // the live view

func (c *Recording) routes(get func(string, http.HandlerFunc)) {
	get("/source", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]any{"live": false, "title": c.Title, "tables": api.PageTables()})
	})
	text, err := json.Marshal(c)
	if err != nil {
		text = fmt.Appendf(nil, `{"title":%q}`, err) // its values are the API's, which are always JSON
	}
	get("/recording", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = w.Write(text) // the page may have gone
	})
	get(api.FlowsPath, recorded(c.Flows, flowOf, func(all []api.Flow, more bool) any { return api.FlowsBody{Flows: all, More: more} }))
	pairs := slices.DeleteFunc(slices.Clone(c.Flows), func(f api.Flow) bool { return f.QPEvidence == nil })
	get(api.PairsPath, recorded(pairs, flowOf, func(all []api.Flow, more bool) any { return map[string]any{"pairs": all, "more": more} }))
	get(api.SendersPath, recorded(sendersOf(c.Flows), senderOf, func(all []api.Sender, more bool) any {
		return map[string]any{"senders": all, "more": more}
	}))
	get(api.NotificationsPath, recorded(c.Notifications, notificationOf, func(all []report.Notification, _ bool) any { return api.Notifications{Notifications: all} }))
}

// row is what rows are selected and sorted by.
type row struct {
	source, destination          netip.Addr
	outcome                      string
	rate, queued, bytes, notices uint64
}

func flowOf(f *api.Flow) row {
	r := row{source: f.SourceIP, destination: f.DestinationIP, queued: f.QueuedBytes, bytes: f.Bytes}
	if f.RateBPS != nil {
		r.rate = *f.RateBPS
	}
	for _, n := range f.Notifications {
		r.notices += n
	}
	return r
}

func senderOf(s *api.Sender) row {
	r := row{source: s.SourceIP, queued: s.QueuedBytes, bytes: s.Bytes, notices: s.Notifications}
	if s.RateBPS != nil {
		r.rate = *s.RateBPS
	}
	return r
}

func notificationOf(n *report.Notification) row {
	return row{source: n.SourceIP, destination: n.DestinationIP, outcome: n.Outcome}
}

// recorded answers with the rows of a page that a request selects, with the parameters of the API.
func recorded[T any](all []T, of func(*T) row, body func(rows []T, more bool) any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		number := func(key string, otherwise int) int {
			n, err := strconv.Atoi(q.Get(key))
			if err != nil || n < 0 {
				return otherwise
			}
			return n
		}
		is := func(key string, a netip.Addr) bool { return !q.Has(key) || q.Get(key) == a.String() }
		rows := []T{}
		for i := range all {
			if x := of(&all[i]); is("source_ip", x.source) && is("destination_ip", x.destination) && (q.Get("outcome") == "" || q.Get("outcome") == x.outcome) {
				rows = append(rows, all[i])
			}
		}
		if by := q.Get("sort"); by != "" {
			value := func(t *T) uint64 {
				x := of(t)
				return map[string]uint64{"rate": x.rate, "queued": x.queued, "bytes": x.bytes, "notifications": x.notices}[by]
			}
			slices.SortStableFunc(rows, func(a, b T) int { return cmp.Compare(value(&b), value(&a)) })
		}
		offset, limit := min(number("offset", 0), len(rows)), number("limit", api.MaxRanked)
		end := min(offset+min(limit, api.MaxRanked), len(rows))
		answer(w, http.StatusOK, body(rows[offset:end], end < len(rows)))
	}
}

// sendersOf adds up the flows of each sender.
func sendersOf(flows []api.Flow) (all []api.Sender) {
	at := map[string]int{}
	for i := range flows {
		f := &flows[i]
		key := fmt.Sprint(f.SourceIP, f.VLAN, f.Tunnel, f.TunnelID)
		if _, known := at[key]; !known {
			at[key] = len(all)
			all = append(all, api.Sender{SourceIP: f.SourceIP, VLAN: f.VLAN, Tunnel: f.Tunnel, TunnelID: f.TunnelID})
		}
		s := &all[at[key]]
		s.Flows++
		s.Bytes += f.Bytes
		s.QueuedBytes += f.QueuedBytes
		s.ECNMarked += f.ECNMarked
		s.Notifications += flowOf(f).notices
		s.Unresponsive = s.Unresponsive || f.Unresponsive
	}
	return all
}
