package webserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/fleetlink"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/fleet"
	"github.com/cnpgate/cnpgate/health"
	"github.com/cnpgate/cnpgate/telemetry"
)

// fake is a gateway that answers at a Unix socket with what a test wants to be shown.
type fake struct {
	t         testing.TB
	socket    string
	ports     int
	flows     int // of 10 senders each
	asked     atomic.Int64
	looks     atomic.Int64 // at counters
	started   time.Time
	http      *httptest.Server
	mutex     sync.Mutex
	unhealthy map[string]string
	differs   bool // the configuration file, from what is in force
	rdma      *health.Report
	trace     func(*http.Request) any // of a connection
	episodes  []report.Episode
	perAnswer int // notifications of an answer
	everyLook time.Duration
	beginning time.Time
}

func newFake(t testing.TB, ports, flows int) *fake {
	f := &fake{t: t, socket: filepath.Join(t.TempDir(), "api.sock"), ports: ports, flows: flows, perAnswer: 20, everyLook: lookEvery,
		beginning: time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC), unhealthy: map[string]string{}}
	f.start()
	t.Cleanup(f.stop)
	return f
}

// start answers, as a gateway that has just started.
func (f *fake) start() {
	l, err := net.Listen("unix", f.socket)
	if err != nil {
		f.t.Fatal(err)
	}
	f.started = time.Now()
	mux := http.NewServeMux()
	for path, answer := range map[string]func(*http.Request) any{
		api.VersionPath:  func(*http.Request) any { return api.Version{Identity: f.identity()} },
		api.CountersPath: func(*http.Request) any { return f.counters() },
		api.HealthPath: func(*http.Request) any {
			f.mutex.Lock()
			defer f.mutex.Unlock()
			h := api.Health{Healthy: len(f.unhealthy) == 0, Problems: f.unhealthy}
			if f.differs {
				h.Notices = []string{"gw.yaml differs from the configuration in force"}
			}
			return h
		},
		api.ModePath: func(*http.Request) any {
			return api.Modes{Ports: []api.PortMode{{Port: "p0", Mode: "send"}, {Port: "p1", Mode: "observe"}}}
		},
		api.EpisodesPath:      f.episodesFrom,
		api.NotificationsPath: f.notifications,
		api.ReloadsPath: func(*http.Request) any {
			return api.Reloads{Reloads: []api.ReloadRecord{{Time: f.started.UTC(), Outcome: "started", ConfigHash: "0123456789abcdef"},
				{Time: f.started.UTC(), Outcome: "refused", ConfigHash: "0123456789abcdef", Error: "gw.yaml:3:1: ports[0].rate: missing"}}}
		},
		api.FleetPath: func(*http.Request) any {
			return fleetlink.FleetStatus{Enabled: true, Site: "dc-a", Name: "gw-1", Shares: fleetlink.FleetShares{Wants: 4711},
				Members:     []fleet.MemberView{{Name: "gw-1", Self: true, State: "active", UpMS: 60_000}, {Name: "gw-2", State: "silent", SilentMS: 9000, RoundUS: 250}},
				Connections: []fleetlink.FleetConnection{{URL: "tls://192.0.2.2:4222", Error: "connection refused"}},
				Counters:    map[string]uint64{"dropped_in": 3}, Refused: map[string]uint64{"signature": 7}}
		},
		api.RDMAPath:      func(*http.Request) any { return f.rdma },
		api.RDMATracePath: func(r *http.Request) any { return f.trace(r) },
		api.FlowsPath:     f.flowsOf,
		api.SendersPath:   f.senders,
		api.PairsPath: func(*http.Request) any {
			qp := uint32(17)
			how := "port"
			return api.PairsBody{Pairs: []api.Pair{{Port: "p1", SourceIP: f.sender(0), SourceQP: &qp, DestinationIP: f.receiver(0), DestinationQP: 18, QPState: "confirmed", QPEvidence: &how}}}
		},
		api.ExplainPath: func(*http.Request) any {
			return api.Explanation{Notified: true, Flows: []api.ExplainedFlow{{Flow: f.flow(0), Notified: true, Gates: []report.Gate{
				{Name: "flow", State: report.Passes, Text: "12 packets"}, {Name: "limits", State: report.Waits, Text: "per_flow"}}}}}
		},
	} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			f.asked.Add(1)
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(answer(r))
		})
	}
	f.http = &httptest.Server{Listener: l, Config: &http.Server{Handler: mux}}
	f.http.Start()
}

func (f *fake) stop() { f.http.Close() }

func (f *fake) identity() report.Identity {
	return report.Identity{Gateway: "fake", Version: "v1.2.3", StartTime: &f.started, ConfigHash: "0123456789abcdef"}
}

// now is the time that the answers are about: it goes on by everyLook with each answer about counters.
func (f *fake) now() time.Time { return f.beginning.Add(time.Duration(f.looks.Load()) * f.everyLook) }

func (f *fake) counters() *report.Counters {
	n := uint64(f.looks.Add(1))
	c := &report.Counters{Identity: f.identity(), Counters: telemetry.Values{}}
	if f.differs {
		c.Counters.Add(telemetry.ConfigFileDiffers, "", 1)
	}
	c.Counters.Add(telemetry.FlowsKnown, "", uint64(f.flows))
	c.Counters.Add(telemetry.QPEvidence, "port", n)
	c.Counters.Add(telemetry.QPConfirmed, "port", n)
	c.Counters.Add(telemetry.NotificationsSent, "standard-cnp", 3*n)
	for i := range f.ports {
		role := []string{"fabric", "wan"}[i%2]
		v := telemetry.Values{}
		v.Add(telemetry.ReceivedBytes, "", n*uint64(1e9+i))
		v.Add(telemetry.ForwardedBytes, "", n*uint64(5e8+i))
		v.Add(telemetry.ReceivedPackets, "", n*uint64(1e6))
		v.Add(telemetry.NotificationsSent, "standard-cnp", 3*n)
		v.Add(telemetry.NotificationsSuppressed, "flow-limit", n)
		depth := 1000 * (uint64(i) + n%50)
		c.Ports = append(c.Ports, report.Port{Name: fmt.Sprint("p", i), Role: role, Peer: fmt.Sprint("p", i^1), RateBps: 10e9, KMinBytes: 20000, KMaxBytes: 60000, CapacityBytes: 1e6,
			RTTNanoseconds: 2e6, DepthBytes: depth, WatermarkBytes: depth + 5000, Queues: []report.Queue{{Class: "lossless", DepthBytes: depth}, {Class: "rest"}}, Counters: v})
	}
	return c
}

func (f *fake) episodesFrom(r *http.Request) any {
	since, _ := strconv.ParseUint(r.URL.Query().Get("since"), 10, 64)
	f.mutex.Lock()
	defer f.mutex.Unlock()
	a := api.Episodes{Episodes: []report.Episode{}}
	for _, e := range f.episodes {
		if e.ID >= since {
			a.Episodes = append(a.Episodes, e)
		}
	}
	return a
}

// congest adds an episode that has ended.
func (f *fake) congest(n int) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for range n {
		id := uint64(1)
		if len(f.episodes) > 0 {
			id = f.episodes[len(f.episodes)-1].ID + 1
		}
		start := f.beginning.Add(time.Duration(id) * 10 * time.Second)
		end, slowed, before, after := start.Add(3*time.Second), true, uint64(9e9), uint64(2e9)
		flow := report.EpisodeFlow{SourceIP: f.sender(0), DestinationIP: f.receiver(0), DestinationQP: 18, Bytes: 1e9, Queued: 1e5, Notifications: 7, Before: &before, After: &after, Slowed: &slowed, FirstNotified: &start}
		f.episodes = append(f.episodes, report.Episode{ID: id, Port: fmt.Sprint("p", 1+id%3*2), Class: "lossless", Start: start, End: &end, PeakBytes: 1e5 * (id%7 + 1), ECNMarked: 55,
			Notifications: map[string]uint64{"standard-cnp": 7}, Suppressed: map[string]uint64{"flow-limit": 3}, Flows: []report.EpisodeFlow{flow}, Senders: []report.EpisodeFlow{flow}})
		f.episodes = f.episodes[max(len(f.episodes)-keptEpisodes, 0):]
	}
}

func (f *fake) sender(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)})
}

func (f *fake) receiver(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 9, byte(i >> 8), byte(i)})
}

func (f *fake) notifications(r *http.Request) any {
	a, first := api.Notifications{Notifications: []report.Notification{}}, uint64(f.looks.Load())*uint64(f.perAnswer)
	outcome := r.URL.Query().Get("outcome")
	for i := range f.perAnswer {
		n := report.Notification{Time: f.now().Add(time.Duration(i) * time.Millisecond), Number: first + uint64(i), Outcome: "sent", Port: "p1", Class: "lossless", SentBy: "p0", Kind: "standard-cnp",
			Action: "slow-down", SourceIP: f.sender(i), DestinationIP: f.receiver(i), DestinationQP: 18, QPState: "confirmed", DepthBytes: 70000, Why: "queue p1/lossless holds 70KB; senders are notified above 60KB"}
		if outcome == "suppressed" {
			n.Outcome, n.Reason, n.Kind, n.Action = outcome, "flow-limit", "", ""
		}
		a.Notifications = append(a.Notifications, n)
	}
	return a
}

func (f *fake) flow(i int) api.Flow {
	rate := uint64(1e9 / (i + 1))
	return api.Flow{Port: "p0", RateBPS: &rate, Flow: report.Flow{SourceIP: f.sender(i / 10), DestinationIP: f.receiver(i / 10), DestinationQP: uint32(18 + i), QPState: "unknown", Packets: 10,
		Bytes: uint64(f.flows-i) * 1000, Notifications: map[string]uint64{"standard-cnp": 4}}}
}

func pageOf(r *http.Request, all int) (offset, end int) {
	offset, _ = strconv.Atoi(r.URL.Query().Get("offset"))
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	return min(offset, all), min(offset+limit, all)
}

func (f *fake) flowsOf(r *http.Request) any {
	all := f.flows
	if r.URL.Query().Has("source_ip") || r.URL.Query().Has("destination_ip") {
		all = min(all, 10)
	}
	offset, end := pageOf(r, all)
	a := api.FlowsBody{Flows: []api.Flow{}, More: end < all}
	for i := offset; i < end; i++ {
		a.Flows = append(a.Flows, f.flow(i))
	}
	return a
}

func (f *fake) senders(r *http.Request) any {
	all := f.flows / 10
	if r.URL.Query().Has("source_ip") {
		all = 1
	}
	offset, end := pageOf(r, all)
	a := api.SendersBody{Senders: []api.Sender{}, Total: uint64(all), More: end < all}
	for i := offset; i < end; i++ {
		rate := uint64(1e10 / (i + 1))
		a.Senders = append(a.Senders, api.Sender{SourceIP: f.sender(i), Flows: 10, RateBPS: &rate, Bytes: 1e9, Notifications: uint64(f.looks.Load()), Unresponsive: i == 3})
	}
	return a
}

// files are a page that needs no build.
var files = fstest.MapFS{"live.html": {Data: []byte("<title>live</title>")}, "index.html": {Data: []byte("<title>playground</title>")}, "live.js": {Data: []byte("1")}}

// served is a page that is served.
type served struct {
	*Server
	stop func()
	done chan error
}

func serve(t testing.TB, s *Settings, source Source, from fs.FS) *served {
	t.Helper()
	return start(t, opened(t, s, source, from))
}

// opened is a server that doesn't serve yet.
func opened(t testing.TB, s *Settings, source Source, from fs.FS) *Server {
	t.Helper()
	server, err := open(s, source, from, log.New(io.Discard, "", 0))
	if err != nil {
		t.Fatal(err)
	}
	return server
}

// start lets a server serve until the test ends.
func start(t testing.TB, server *Server) *served {
	ctx, cancel := context.WithCancel(context.Background())
	out := &served{server, cancel, make(chan error, 1)}
	go func() { out.done <- server.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-out.done; err != nil {
			t.Error(err)
		}
	})
	return out
}
