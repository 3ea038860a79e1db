package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/control/advertise"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/control/rdma"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/health"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/pairing"
)

const gateConfig = `gateway: {name: gw, ipv4: 192.0.2.1}
ports:
  - {name: dc, device: d0, role: fabric, peer: wan, rate: 10Gbps}
  - {name: wan, device: d1, role: wan, peer: dc, rate: 10Gbps}
qp_map: [{source_ip: 10.1.0.1, destination_ip: 10.9.0.9, source_qp: 50, destination_qp: 100}]
management: {listen: "unix:`

// gate is a gateway with an API, of which each worker steps on a goroutine of its own.
type gate struct {
	*testkit.Rig
	fakes
	server  *Server
	path    string
	log     bytes.Buffer
	cancel  func()         // ends the API
	served  chan error     // what Serve returned
	done    []atomic.Bool  // by worker: stops stepping
	working sync.WaitGroup // of workers
	client  http.Client
}

func newGate(t testing.TB, workers int) *gate {
	t.Helper()
	return newGateFor(t, workers, 4096)
}

// newGateFor is newGate with so many places for flows.
func newGateFor(t testing.TB, workers, flows int) *gate {
	t.Helper()
	g := &gate{path: filepath.Join(t.TempDir(), "api.sock"), served: make(chan error, 1), done: make([]atomic.Bool, workers)}
	c, err := config.Parse("gate.yaml", []byte(gateConfig+g.path+"\"}\n"))
	if err != nil {
		t.Fatal(err)
	}
	var pairs []pairing.QPPair
	for _, p := range c.QPMap {
		pairs = append(pairs, pairing.QPPair{Source: packet.AddrFrom(p.Source), Destination: packet.AddrFrom(p.Destination),
			SourceQP: p.SourceQP, DestinationQP: p.DestinationQP})
	}
	static, err := pairing.NewQPMap(pairs, 1)
	if err != nil {
		t.Fatal(err)
	}
	g.Rig = testkit.New(t, testkit.Setup{Workers: workers, Forget: true, Static: static, Flows: flows,
		Change: func(c *dataplane.Config) { c.Followed = 8 }})
	g.config, g.level, g.problems = c, "info", map[string]string{}
	if g.server, err = Open(c, g.Plane, g, zerolog.New(&g.log).Level(zerolog.InfoLevel)); err != nil {
		t.Fatal(err)
	}
	at, err := Listen(g.path)
	if err != nil {
		t.Fatal(err)
	}
	g.server.Move(at)
	ctx, cancel := context.WithCancel(t.Context())
	g.cancel = cancel
	go func() { g.served <- g.server.Serve(ctx) }()
	g.client.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", g.path)
	}}
	t.Cleanup(func() { g.close(t) })
	return g
}

// fakes are what control does for the API of a gateway.
type fakes struct {
	problems map[string]string
	config   *config.Config
	level    string
	reload   func(ReloadRequest) (*Reloaded, error)
	modes    map[string]bool // by port, whether it observes
	refusal  error           // of SetMode, Confirm and Revert
	draining bool
	notices  []string
	episodes []report.Episode
	bgp      advertise.Status
	fleet    Fleet
	rdma     *rdma.Collector // nil: no connection is followed
}

func (f *fakes) Problems() map[string]string { return f.problems }
func (f *fakes) Services() map[string]string { return nil }
func (f *fakes) Episodes() []report.Episode  { return f.episodes }
func (f *fakes) BGP() advertise.Status       { return f.bgp }
func (f *fakes) Fleet() Fleet                { return f.fleet }
func (f *fakes) Config() *config.Config      { return f.config }
func (f *fakes) Reloads() []ReloadRecord     { return []ReloadRecord{{Outcome: "started"}} }
func (f *fakes) Notices() []string           { return f.notices }
func (f *fakes) SetDrain(on bool)            { f.draining = on }
func (f *fakes) Drained() Drain              { return Drain{Draining: f.draining, Safe: f.draining} }
func (f *fakes) RDMA(ctx context.Context) (*health.Report, error) {
	if f.rdma != nil {
		return f.rdma.Report(ctx)
	}
	return (&health.Builder{}).Report(nil, 0), nil
}

func (f *fakes) TraceRDMA(ctx context.Context, q rdma.Wanted) (*health.Trace, error) {
	if f.rdma != nil {
		return f.rdma.Trace(ctx, q)
	}
	return &health.Trace{Points: []health.Point{}}, nil
}

func (f *fakes) Reload(r ReloadRequest) (*Reloaded, error) { return f.reload(r) }
func (f *fakes) Confirm() (*Reloaded, error)               { return &Reloaded{Changes: []string{"kept"}}, f.refusal }
func (f *fakes) Revert() (*Reloaded, error)                { return &Reloaded{Changes: []string{"back"}}, f.refusal }

func (f *fakes) Modes() (all []PortMode) {
	for i := range f.config.Ports {
		name, mode := f.config.Ports[i].Name, config.ModeSend
		if f.modes[name] {
			mode = config.ModeObserve
		}
		all = append(all, PortMode{name, mode, config.ModeSend})
	}
	return all
}

func (f *fakes) SetMode(port string, observe bool) error {
	f.modes = map[string]bool{port: observe}
	return f.refusal
}

func (f *fakes) LogLevel() string         { return f.level }
func (f *fakes) SetLogLevel(level string) { f.level = level }

func (f *fakes) Identity() report.Identity {
	i, start := report.Identify(f.config), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	i.Version, i.StartTime = "v1.2.3", &start
	return i
}

func (g *gate) Counters() *report.Counters {
	c := report.MakeCounters(g.config, g.Plane)
	c.Identity = g.Identity()
	return c
}

// see lets a worker see frames before it runs.
func (g *gate) see(t testing.TB, worker, port int, frames ...testkit.RoCE) {
	t.Helper()
	for _, f := range frames {
		f.Size = 500
		g.InjectAt(t, worker, port, f.Frame())
		g.Drain()
	}
}

// run has workers step until the end.
func (g *gate) run(workers ...int) {
	for _, worker := range workers {
		g.working.Go(func() {
			for w := g.Plane.Worker(worker); !g.done[worker].Load(); {
				w.Step()
				time.Sleep(10 * time.Microsecond) // as with idle: backoff: the clients need the cores
			}
		})
	}
}

func (g *gate) close(t testing.TB) {
	g.client.CloseIdleConnections()
	g.cancel()
	if err := <-g.served; err != nil {
		t.Error(err)
	}
	for worker := range g.done {
		g.done[worker].Store(true)
	}
	g.working.Wait()
	g.Close(t)
	if g.log.Len() > 0 {
		t.Errorf("the API has logged:\n%s", &g.log)
	}
}

// ask makes one request.
func (g *gate) ask(t *testing.T, method, path, body string) (status int, header http.Header, text string) {
	t.Helper()
	var a *http.Response
	for again := 20; ; again-- {
		r, err := http.NewRequestWithContext(t.Context(), method, "http://gate"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if a, err = g.client.Do(r); err == nil {
			break
		}
		if !errors.Is(err, syscall.EPIPE) || again == 0 { // of a body that is too long, the server reads no more: on a busy machine the client may see that before the answer
			t.Fatal(err)
		}
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	if kind := a.Header.Get("Content-Type"); kind != "application/json" || !json.Valid(b) {
		t.Errorf("%s %s: an answer of type %q that is no JSON: %s", method, path, kind, b)
	}
	if err := breach(method, path, body, a.StatusCode, a.Header, b); err != nil {
		t.Errorf("%s %s %s: the answer %d %s is not as documented: %v", method, path, body, a.StatusCode, b, err)
	}
	return a.StatusCode, a.Header, string(b)
}

// want makes one request, and expects the status and, somewhere in the answer, each text.
func (g *gate) want(t *testing.T, method, path, body string, status int, texts ...string) {
	t.Helper()
	got, _, text := g.ask(t, method, path, body)
	if got != status || slices.ContainsFunc(texts, func(part string) bool { return !strings.Contains(text, part) }) {
		t.Errorf("%s %s %s: status %d, want %d\n got %s\nwant %q", method, path, body, got, status, text, texts)
	}
}

// eventually asks for the flows until they are as wanted, or a minute has passed.
func (g *gate) eventually(t *testing.T, query, want string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		status, _, text := g.ask(t, http.MethodGet, FlowsPath+query, "")
		if status != http.StatusOK {
			t.Fatalf("status %d: %s", status, text)
		}
		if strings.Contains(text, want) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("never %s, but %s", want, text)
		}
		runtime.Gosched()
	}
}
