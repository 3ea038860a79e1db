package api

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/internal/testkit/ontime"
	"github.com/cnpgate/cnpgate/pairing"
)

// TestRates: a rate is what a flow has sent between two looks, by its worker's clock, and only if it is the same flow.
func TestRates(t *testing.T) {
	record := func(index, generation uint32, at int64, bytes uint64) *dataplane.FlowRecord {
		return &dataplane.FlowRecord{
			Flow: flowtable.Ref{Index: flowtable.Index(index), Generation: generation}, At: at, Traffic: pairing.Traffic{Bytes: bytes},
		}
	}
	var r rates
	r.note(1, record(7, 3, 1e9, 1000))
	r.note(1, record(2, 1, 1e9, 500))
	for _, c := range []struct {
		name   string
		worker int
		record *dataplane.FlowRecord
		want   int64 // -1: none
	}{
		{"a second later", 1, record(7, 3, 2e9, 126_000), 1_000_000},
		{"a millisecond later", 1, record(7, 3, 1.001e9, 126_000), 1_000_000_000},
		{"nothing more", 1, record(2, 1, 2e9, 500), 0},
		{"at the same time", 1, record(7, 3, 1e9, 126_000), -1},
		{"another flow at its place", 1, record(7, 4, 2e9, 126_000), -1},
		{"a place that had no flow", 1, record(3, 3, 2e9, 126_000), -1},
		{"a place beyond all", 1, record(8, 3, 2e9, 126_000), -1},
		{"a worker that had none", 0, record(7, 3, 2e9, 126_000), -1},
		{"a worker beyond all", 2, record(7, 3, 2e9, 126_000), -1},
		{"fewer bytes than before", 1, record(7, 3, 2e9, 999), -1},
	} {
		got := r.of(c.worker, c.record)
		if c.want < 0 && got != nil || c.want >= 0 && (got == nil || *got != uint64(c.want)) {
			t.Errorf("%s: %v, want %d", c.name, got, c.want)
		}
	}
}

// measured is a gateway whose worker does what the test asks for while a request waits for its interval.
func measured(t *testing.T, meanwhile func(g *gate)) *gate {
	t.Helper()
	g := newGate(t, 1)
	asked := make(chan func())
	g.server.flows.wait = func(context.Context, time.Duration) error {
		done := make(chan struct{})
		asked <- func() { meanwhile(g); close(done) }
		<-done
		return nil
	}
	flow := testkit.RoCE{Src: "10.1.0.1", Dst: "10.9.0.9", DestQP: 100}
	g.see(t, 0, 0, flow)
	g.working.Go(func() {
		for w := g.Plane.Worker(0); !g.done[0].Load(); {
			select {
			case do := <-asked:
				do()
			default:
				w.Step()
				runtime.Gosched()
			}
		}
	})
	return g
}

// TestFlowRates: with an interval, the flows that were there all the time have a rate; without one, none. Each has the time since its last packet.
func TestFlowRates(t *testing.T) {
	g := measured(t, func(g *gate) {
		start := g.Now
		g.see(t, 0, 0, testkit.RoCE{Src: "10.1.0.1", Dst: "10.9.0.9", DestQP: 100}, testkit.RoCE{Src: "10.1.0.2", Dst: "10.9.0.9", DestQP: 100})
		g.Advance(1e9 - (g.Now - start))
	})
	flows, err := Get[FlowsBody](t.Context(), NewClient(g.path), Path(FlowsPath, url.Values{"interval": {"1s"}}))
	if err != nil || len(flows.Flows) != 2 {
		t.Fatalf("%d flows, %v", len(flows.Flows), err)
	}
	if rate := flows.Flows[0].RateBPS; rate == nil || *rate != 500*8 {
		t.Errorf("the rate is %v, want 500 bytes in a second", rate)
	}
	if flows.Flows[1].RateBPS != nil {
		t.Errorf("a flow that has begun meanwhile has the rate %d", *flows.Flows[1].RateBPS)
	}
	for _, f := range flows.Flows {
		if f.AgeNS < 0.99e9 || f.AgeNS > 1e9 {
			t.Errorf("from %v: the last packet was %d ns ago, want nearly a second", f.SourceIP, f.AgeNS)
		}
	}
	senders, err := Get[SendersBody](t.Context(), NewClient(g.path), SendersPath+"?interval=1s&limit=1")
	if err != nil || len(senders.Senders) != 1 || senders.Senders[0].RateBPS == nil || *senders.Senders[0].RateBPS != 500*8 || !senders.More {
		t.Errorf("the fastest sender: %+v, %v", senders, err)
	}
	flows, err = Get[FlowsBody](t.Context(), NewClient(g.path), FlowsPath)
	if err != nil || len(flows.Flows) != 2 || flows.Flows[0].RateBPS != nil {
		t.Errorf("without an interval: %+v, %v", flows, err)
	}
	for _, interval := range []string{"0", "9ms", "5001ms", "-1s", "1", "x", ""} {
		g.want(t, http.MethodGet, FlowsPath+"?interval="+interval, "", http.StatusBadRequest, "expected a time from 10ms to 5s, such as 1s, or no interval")
	}
}

// TestRatesEnd: a request that fails while it waits lets the next one measure.
func TestRatesEnd(t *testing.T) {
	g := measured(t, func(*gate) {})
	wait := g.server.flows.wait
	g.server.flows.wait = func(context.Context, time.Duration) error { return errors.New("ended") }
	g.want(t, http.MethodGet, FlowsPath+"?interval=1s", "", http.StatusServiceUnavailable, "the gateway is stopping")
	g.server.flows.wait = wait
	g.want(t, http.MethodGet, FlowsPath+"?interval=1s", "", http.StatusOK, `"age_ns"`)
}

// TestSlowReaderOfRates: a client that doesn't read its answer keeps others from measuring for a bounded time.
func TestSlowReaderOfRates(t *testing.T) {
	if ontime.Again(t) { // the next client has two seconds, too
		return
	}
	g := newGate(t, 1)
	g.server.flows.ratesTime = 2 * time.Second // less than the next request waits
	for i := range uint32(3000) {              // an answer that no buffer of the connection holds
		g.see(t, 0, 0, testkit.RoCE{Src: "10.1.0.1", Dst: "10.9.0.8", DestQP: 2 + i})
	}
	g.run(0)
	slow, err := net.Dial("unix", g.path)
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	if _, err := io.WriteString(slow, "GET "+FlowsPath+"?interval=10ms HTTP/1.1\r\nHost: gate\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	for len(g.server.flows.sampling) == 0 {
		runtime.Gosched()
	}
	g.want(t, http.MethodGet, FlowsPath+"?interval=10ms&limit=1", "", http.StatusOK, `"more":true`)
	if text, err := io.ReadAll(slow); err != nil || strings.Contains(string(text), `"more"`) {
		t.Errorf("the slow client got %d bytes (%v), want a part of the answer that can't be taken for the whole", len(text), err)
	}
}
