package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/control/report"
)

// readings are two of a gateway, two seconds apart: its WAN queue fills, a flow in VLAN 10 was notified and has slowed down, and one with the same
// addresses in VLAN 20 was not.
func readings(t *testing.T) (before, now *reading) {
	t.Helper()
	read := func(at int64, text, flows, episodes string) *reading {
		r := &reading{at: time.Unix(at, 0).UTC(), counters: &report.Counters{}, flows: &api.FlowsBody{Total: 4}, senders: &api.SendersBody{Total: 3},
			episodes: &api.Episodes{}, health: &api.Health{Problems: map[string]string{"dc": "no link"}}, modes: &api.Modes{}}
		senders := strings.NewReplacer(`"notifications":{"standard-cnp":`, `"flows":1,"notifications":`, `},"ecn_marked"`, `,"ecn_marked"`).Replace(flows) // of one flow each
		for from, to := range map[string]any{text: r.counters, flows: &r.flows.Flows, senders: &r.senders.Senders, episodes: &r.episodes.Episodes} {
			if err := json.Unmarshal([]byte(from), to); err != nil {
				t.Fatal(err)
			}
		}
		return r
	}
	counters := func(bytes, sent, endpoint, limit string) string {
		return `{"gateway":"gw","counters":{},"ports":[
{"name":"dc","role":"fabric","peer":"wan","rate_bps":10000000000,"counters":{"received_bytes_total":` + bytes + `,"notifications_sent_total":{"standard-cnp":` + sent +
			`},"notifications_suppressed_total":{"no-endpoint":` + endpoint + `,"flow-limit":` + limit + `}},"queues":[{"class":"all","queue_depth_bytes":0}]},
{"name":"wan","role":"wan","peer":"dc","rate_bps":1000000000,"queue_depth_bytes":6000,"queue_capacity_bytes":60000,"counters":{"forwarded_bytes_total":` + bytes +
			`,"dropped_packets_total":{"queue-full-bytes":` + sent + `}},"queues":[{"class":"all","queue_depth_bytes":6000,"queue_watermark_bytes":7000}]}]}`
	}
	flow := func(source, vlan, rate, sent string) string {
		return `{"port":"dc","source_ip":"` + source + `","destination_ip":"fd00:2222:3333::9","destination_qp":100,"vlan":[` + vlan + `],"rate_bps":` + rate +
			`,"queued_bytes":3000,"notifications":{"standard-cnp":` + sent + `},"ecn_marked":4}`
	}
	const a, b = "fd00:1111:2222:3333::1", "fd00::7"
	episodes := `[{"id":1,"port":"wan","class":"all","start":"2026-01-02T03:04:05Z","end":null,"notifications":{"standard-cnp":9},"notifications_observed":1,"flows":[
{"source_ip":"` + a + `","destination_ip":"fd00:2222:3333::9","destination_qp":100,"vlan":[10],"rate_before_bps":4000000,"rate_after_bps":1000000,"slowed":true}],
"senders":[{"source_ip":"` + a + `","destination_ip":"fd00:2222:3333::9","destination_qp":100,"vlan":[10],"rate_before_bps":4000000,"rate_after_bps":1000000,"slowed":true}]}]`
	before = read(100, counters("1000", "5", "1", "5"), "["+flow(a, "10", "0", "5")+"]", "[]")
	return before, read(102, counters("250001000", "9", "21", "10"), "["+flow(a, "10", "600000000", "9")+","+flow(a, "20", "400000000", "0")+","+flow(b, "10", "1000", "0")+"]", episodes)
}

const topFlows = `gw  00:01:42  notified 2/s  suppressed 12/s (no-endpoint)

PORT ROLE   RX    TX    LOAD QUEUE NOTIFIED/S MARKED/S DROPPED/S PROBLEM
dc   fabric 1Gbps 0bps  0%   0B    2          0        0         no link
wan  wan    0bps  1Gbps 100% 6KB   0          0        2         -

SOURCE                 DESTINATION       QP  VLAN RATE    QUEUED NOTIFIED/S REACTION
fd00:1111:2222:3333::1 fd00:2222:3333::9 100 10   600Mbps 3KB    2          -75%
fd00:1111:2222:3333::1 fd00:2222:3333::9 100 20   400Mbps 3KB    0          -
and 2 others
`

const topSenders = `SOURCE                 VLAN FLOWS RATE    QUEUED NOTIFIED/S MARKED/S SLOWED
fd00::7                10   1     1kbps   3KB    0          0        -
fd00:1111:2222:3333::1 10   1     600Mbps 3KB    2          0        1/1
fd00:1111:2222:3333::1 20   1     400Mbps 3KB    0          0        -
`

const topQueues = `PORT CLASS QUEUE FULL PEAK CAPACITY NOTIFIED SLOWED
wan  all   6KB   10%  7KB  60KB     10       1/1
dc   all   0B    -    0B   0B       0        -
`

// TestTopView: two readings compared, tenants apart.
func TestTopView(t *testing.T) {
	t.Setenv("TZ", "UTC")
	time.Local = time.UTC
	v := compare(readings(t))
	for _, c := range []struct {
		by, sort string
		most     int
		want     string
	}{{"flow", "rate", 2, topFlows}, {"sender", "name", 9, topSenders}, {"queue", "queue", 9, topQueues}} {
		v.sort(c.by, c.sort)
		var text bytes.Buffer
		if err := v.print(&text, c.by, c.most, 0); err != nil || !strings.HasSuffix(text.String(), c.want) {
			t.Errorf("by %s, sorted by %s:\n%s\nwant\n%s%v", c.by, c.sort, &text, c.want, err)
		}
	}
	v.sort("flow", "rate")
	var narrow bytes.Buffer
	if err := v.print(&narrow, "flow", 9, 100); err != nil || !strings.Contains(narrow.String(), "\n~1:2222:3333::1 ~0:2222:3333::9 100 ") {
		t.Errorf("%s, %v", &narrow, err)
	}
	for _, kind := range topKinds { // what doesn't fit is left out, and nothing is cut
		narrow.Reset()
		if err := v.print(&narrow, kind, 9, usualColumns); err != nil {
			t.Error(err)
		}
		for line := range strings.SplitSeq(narrow.String(), "\n") {
			if utf8.RuneCountInString(line) > usualColumns {
				t.Errorf("%s: a line of more than %d columns: %s", kind, usualColumns, line)
			}
		}
	}
}

// TestTopRestarted: between a gateway and the one after its restart there are no rates.
func TestTopRestarted(t *testing.T) {
	before, now := readings(t)
	first, second := time.Unix(1, 0), time.Unix(2, 0)
	before.counters.StartTime, now.counters.StartTime = &first, &second
	if v := compare(before, now); v.Ports[0].RX != 0 || v.Suppressed != 0 || v.Top != "" {
		t.Errorf("%+v", v)
	}
}

// TestFitted: a text is cut to a display.
func TestFitted(t *testing.T) {
	if got := fitted("abcdef\nµµµµ\nc\nd\n", 3, 3); got != "abc\r\nµµµ\r\nc" {
		t.Errorf("%q", got)
	}
}

// TestTopKeys: each key changes what is shown, and some quit.
func TestTopKeys(t *testing.T) {
	var f topFlags
	for key, want := range map[byte]string{'p': "port", 'u': "queue", 's': "sender", 'f': "flow"} {
		if f.press(key) || f.by != want {
			t.Errorf("%c: by %s", key, f.by)
		}
	}
	for key, want := range map[byte]string{'r': "rate", 'd': "queue", 'n': "notified", 'a': "name"} {
		if f.press(key) || f.sort != want {
			t.Errorf("%c: sorted by %s", key, f.sort)
		}
	}
	if !f.press('q') || !f.press(3) || f.press('x') {
		t.Error("the wrong keys quit")
	}
}

// TestTopInPipe: plain text, or one object per line, as often as was asked for; no terminal sequences.
func TestTopInPipe(t *testing.T) {
	dir := workspace(t)
	gatewayAt(t, filepath.Join(dir, "gw.sock"), answered, true)
	got := cnpgate(t, dir, "top", "--socket", "gw.sock", "--interval", "100ms", "--count", "2", "--by", "flow")
	if got.status != 0 || strings.Count(got.stdout, "SOURCE ") != 2 || strings.Contains(got.stdout, "\x1b") || !strings.Contains(got.stdout, "198.18.0.2 198.18.0.1  61  -     9.85Gbps") {
		t.Errorf("%+v", got)
	}
	got = cnpgate(t, dir, "top", "--socket", "gw.sock", "--interval", "100ms", "--count", "2", "-o", "json", "--limit", "1")
	lines := strings.Split(strings.TrimSpace(got.stdout), "\n")
	var v topView
	if err := json.Unmarshal([]byte(lines[0]), &v); err != nil || got.status != 0 || len(lines) != 2 || len(v.Flows) != 1 || v.Flows[0].Rate != 9850123456 {
		t.Errorf("%+v: %v", got, err)
	}
	if got := cnpgate(t, dir, "top", "--socket", "none.sock"); got.status != 1 || !strings.Contains(got.stderr, "no socket at none.sock") {
		t.Errorf("%+v", got)
	}
}

// TestTopOfMany: whatever is shown, the gateway is never asked for all of its flows or senders, since it may have a million. The first ten flows by rate aren't, either.
func TestTopOfMany(t *testing.T) {
	dir := workspace(t)
	gatewayAt(t, filepath.Join(dir, "gw.sock"), answered, true)
	asked := between(t, filepath.Join(dir, "asked.sock"), filepath.Join(dir, "gw.sock"))
	commands := [][]string{{"show", "flows", "--sort", "RATE", "--limit", "10", "--interval", "10ms"}}
	for _, kind := range topKinds {
		for _, sort := range topSorts {
			commands = append(commands, []string{"top", "--interval", "100ms", "--count", "1", "--by", kind, "--sort", sort})
		}
	}
	for _, args := range commands {
		if got := cnpgate(t, dir, append(args, "--socket", "asked.sock")...); got.status != 0 {
			t.Fatalf("%v: %+v", args, got)
		}
		for _, u := range asked() {
			q := u.Query()
			if limit, _ := strconv.Atoi(q.Get("limit")); (u.Path == api.FlowsPath || u.Path == api.SendersPath) && (limit < 1 || limit > api.MaxRanked || !slices.Contains(api.Sorts, q.Get("sort"))) {
				t.Errorf("%v asks for %s", args, u)
			}
		}
	}
}

// between passes requests at a socket on to another one, and returns those of the time since the last call.
func between(t *testing.T, path, to string) (asked func() []*url.URL) {
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	var mutex sync.Mutex
	var all []*url.URL
	pass := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			mutex.Lock()
			defer mutex.Unlock()
			all = append(all, r.In.URL)
			r.Out.URL.Scheme, r.Out.URL.Host = "http", "gateway"
		},
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", to)
		}},
	}
	serve(t, l, pass)
	return func() (these []*url.URL) {
		mutex.Lock()
		defer mutex.Unlock()
		these, all = all, nil
		return these
	}
}

// TestTopInObserveMode: the header says that nobody is notified.
func TestTopInObserveMode(t *testing.T) {
	before, now := readings(t)
	now.modes.Ports = []api.PortMode{{Port: "wan", Mode: config.ModeObserve}}
	var text strings.Builder
	if err := compare(before, now).print(&text, "port", 10, 0); err != nil {
		t.Fatal(err)
	}
	if want := "gw  00:01:42  observe mode (wan): would notify 2/s  suppressed"; !strings.HasPrefix(text.String(), want) {
		t.Errorf("%s; want %s", text.String(), want)
	}
}
