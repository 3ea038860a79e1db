package control

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/report"
)

// live is a run with an API.
type live struct {
	*bench
	path   string
	log    shared
	stop   func()
	done   chan error
	report *report.Report
}

// shared is a log that is read while others write it.
type shared struct {
	mutex sync.Mutex
	text  strings.Builder
}

func (s *shared) Write(b []byte) (int, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.text.Write(b)
}

func (s *shared) String() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.text.String()
}

// startLive runs a gateway until all its frames have come in, and on.
func startLive(t *testing.T, cores []int, frames int) *live {
	t.Helper()
	c, b := newBench(t, cores, "backoff", "1Gbps", frames)
	l := &live{bench: b, path: filepath.Join(t.TempDir(), "run", "api.sock"), done: make(chan error)}
	c.Management.Socket = l.path
	ctx, cancel := context.WithCancel(t.Context())
	l.stop = cancel
	go func() {
		var err error
		l.report, err = Run(ctx, c, b, Options{Log: zerolog.New(&l.log)})
		l.done <- err
	}()
	for _, f := range b.backends {
		<-f.fed
	}
	l.log.await(t, `"message":"The gateway is forwarding."`)
	l.log.await(t, `"message":"The API listens at a Unix socket."`)
	return l
}

// flows asks until the flows are as wanted, or a minute has passed.
func (l *live) flows(t *testing.T, what string, as func([]api.Flow) bool) []api.Flow {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		answer, err := api.Get[api.FlowsBody](t.Context(), api.NewClient(l.path), api.FlowsPath)
		if err != nil {
			t.Fatal(err)
		}
		if flows := answer.Flows; as(flows) {
			return flows
		}
		if time.Now().After(deadline) {
			t.Fatalf("never %s, but %+v", what, answer.Flows)
		}
		runtime.Gosched()
	}
}

// hint makes a request about one.
func (l *live) hint(t *testing.T, method, query, body string, status int) {
	t.Helper()
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", l.path)
	}}
	r, err := http.NewRequestWithContext(t.Context(), method, "http://gateway/v1/hints"+query, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	a, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = a.Body.Close()
	if a.StatusCode != status {
		t.Errorf("%s: status %d, want %d", method, a.StatusCode, status)
	}
}

// TestRunAnswers: flows are seen while workers run, and are those of the report afterwards; hints confirm them.
func TestRunAnswers(t *testing.T) {
	before := runtime.NumGoroutine()
	const frames = 210 // of 7 flows, each from both sides
	l := startLive(t, []int{0, 1}, frames)
	packets := func(flows []api.Flow) (n uint64) {
		for _, f := range flows {
			n += f.Packets
		}
		return n
	}
	flows := l.flows(t, "all packets", func(flows []api.Flow) bool { return packets(flows) == 2*frames })
	if len(flows) != 2*2*7 { // each worker has its own, by each port
		t.Errorf("%d flows", len(flows))
	}
	const five = `{"source_ip":"198.18.0.1","destination_ip":"198.19.0.1","source_qp":500,"destination_qp":5}`
	named := func(state, evidence string) func([]api.Flow) bool {
		return func(flows []api.Flow) bool {
			n := 0
			for _, f := range flows {
				hinted := f.QPEvidence != nil && *f.QPEvidence == evidence && f.SourceQP != nil && *f.SourceQP == 500
				if f.DestinationQP == 5 && f.QPState == state && hinted == (evidence != "") {
					n++
				}
			}
			return n == 4
		}
	}
	l.hint(t, http.MethodPut, "", five, http.StatusCreated)
	l.flows(t, "confirmed", named("confirmed", "hint"))
	l.hint(t, http.MethodDelete, "?source_ip=198.18.0.1&destination_ip=198.19.0.1&source_qp=500&destination_qp=5", "", http.StatusOK)
	l.flows(t, "unknown again", named("unknown", ""))
	l.hint(t, http.MethodPut, "", five, http.StatusCreated)
	l.flows(t, "confirmed", named("confirmed", "hint"))
	if info, err := os.Lstat(l.path); err != nil || info.Mode() != fs.ModeSocket|0o660 {
		t.Errorf("the socket: %v, %v", info, err)
	}

	l.stop()
	if err := <-l.done; err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(l.path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
	reported := []api.Flow{}
	for _, f := range l.report.Flows {
		reported = append(reported, api.Flow{Flow: f})
	}
	if packets(reported) != 2*frames || !named("confirmed", "hint")(reported) {
		t.Errorf("the report has %+v", l.report.Flows)
	}
	// On a busy machine a worker may be kept off its core.
	if got := l.log.String(); !strings.Contains(got, `"message":"The API listens at a Unix socket."`) ||
		strings.Count(got, `"level":"error"`) != strings.Count(got, "A worker has stopped stepping.") {
		t.Errorf("the log: %s", got)
	}
	l.bench.done(t, before)
}

// TestSecondGateway: where another one answers, which it leaves alone, it forwards without the API, and answers once that one has ended.
func TestSecondGateway(t *testing.T) {
	before := runtime.NumGoroutine()
	l := startLive(t, []int{0}, 10)
	c, b := newBench(t, []int{0}, "backoff", "1Gbps", 0)
	c.Management.Socket = l.path
	log, over := &shared{}, make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		_, err := Run(ctx, c, b, Options{Log: zerolog.New(log)})
		over <- err
	}()
	log.await(t, `"message":"The gateway is forwarding."`)
	log.await(t, "another process answers at "+l.path)
	l.flows(t, "all packets", func(flows []api.Flow) bool { return len(flows) > 0 })
	l.stop()
	if err := <-l.done; err != nil {
		t.Error(err)
	}
	log.await(t, `"service":"management.listen","message":"The service works again."`)
	if h, err := api.Get[api.Health](t.Context(), api.NewClient(l.path), api.HealthPath); err != nil || len(h.Services) > 0 {
		t.Errorf("%+v, %v", h, err)
	}
	stop()
	if err := <-over; err != nil {
		t.Error(err)
	}
	l.bench.done(t, before)
	b.done(t, before)
}

// TestFailedRunEndsTheAPI: it ends with the workers, not with the context.
func TestFailedRunEndsTheAPI(t *testing.T) {
	before := runtime.NumGoroutine()
	c, b := newBench(t, []int{0, 1}, "backoff", "1Gbps", 0)
	c.Management.Socket = filepath.Join(t.TempDir(), "api.sock")
	b.refuse[1] = errors.New("no such core")
	if _, err := Run(t.Context(), c, b, Options{Log: zerolog.Nop()}); err == nil {
		t.Error("no error")
	}
	if _, err := os.Lstat(c.Management.Socket); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
	b.done(t, before)
}
