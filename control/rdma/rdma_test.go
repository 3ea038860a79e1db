package rdma

import (
	"bytes"
	"context"
	"encoding/json"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/health"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/pairing"
)

// connections are so many connections that two workers follow, of two packets and an ACK each.
func connections(t *testing.T, many int) *testkit.Rig {
	t.Helper()
	src, dst := packet.AddrFrom(netip.MustParseAddr("10.1.0.1")), packet.AddrFrom(netip.MustParseAddr("10.9.0.9"))
	var pairs []pairing.QPPair
	for n := range uint32(many) {
		pairs = append(pairs, pairing.QPPair{Source: src, Destination: dst, SourceQP: 1000 + n, DestinationQP: 5000 + n})
	}
	static, err := pairing.NewQPMap(pairs, 1)
	if err != nil {
		t.Fatal(err)
	}
	r := testkit.New(t, testkit.Setup{Workers: 2, Static: static, Forget: true, Change: func(c *dataplane.Config) { c.Followed = 64 }})
	for worker := range 2 { // each begins to inspect a second after its first frame
		r.InjectAt(t, worker, 0, testkit.RoCE{Src: "10.1.0.1", Dst: "10.9.0.9", Opcode: packet.UDSendOnly, DestQP: packet.GSIQP}.Frame())
	}
	r.Settle()
	r.Advance(2e9)
	for n := range uint32(many) {
		worker := int(n & 1)
		for psn := range uint32(2) {
			r.InjectAt(t, worker, 0, testkit.RoCE{Src: "10.1.0.1", Dst: "10.9.0.9", Opcode: packet.RCSendOnly, DestQP: 5000 + n, PSN: psn, Size: 500}.Frame())
			r.Advance(10_000)
			r.Settle()
		}
		r.InjectAt(t, worker, 1, testkit.RoCE{Src: "10.9.0.9", Dst: "10.1.0.1", Opcode: packet.RCAcknowledge, DestQP: 1000 + n, PSN: 1}.Frame())
		r.Settle()
	}
	r.Drain()
	return r
}

// TestReport: a report has the connections of all workers, more than are copied at once; it is given again for a second.
func TestReport(t *testing.T) {
	const many = 3 * atOnce
	r := connections(t, many)
	var done atomic.Bool
	var working sync.WaitGroup
	for worker := range 2 {
		working.Go(func() {
			for w := r.Plane.Worker(worker); !done.Load(); runtime.Gosched() {
				w.Step()
			}
		})
	}
	c := New(r.Plane, []string{"dc", "line"})
	if first := c.Latest(); first.Summary.Connections != 0 || first.Verdicts == nil {
		t.Errorf("before the first report: %+v", first)
	}
	report, err := c.Report(t.Context())
	done.Store(true)
	working.Wait()
	if err != nil {
		t.Fatal(err)
	}
	s := &report.Summary
	if s.Connections != many || s.Packets != 3*many || s.NotPaired != 0 || len(report.Verdicts) != 0 || c.Latest() != report {
		t.Errorf("summary %+v, verdicts %+v", s, report.Verdicts)
	}
	if e := report.Connections[0].Ends; e[0].Port != "dc" || e[1].Port != "line" {
		t.Errorf("ends %+v", e)
	}
	b, err := json.Marshal(report)
	for _, want := range []string{`"verdicts":[]`, `"paired":true`, `"transport":"RC"`, `"requester":0`} {
		if err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%v: no %s in %s", err, want, b[:min(len(b), 2000)])
		}
	}
	r.Close(t)
}

// TestSlowWorker: on a busy machine a worker may need more time for all connections than it has for some of them. It is waited for as long as it answers.
func TestSlowWorker(t *testing.T) {
	const many = 4 * atOnce
	r := connections(t, many)
	synctest.Test(t, func(t *testing.T) {
		var done atomic.Bool
		var working sync.WaitGroup
		working.Go(func() {
			for !done.Load() {
				time.Sleep(answerTime / (atOnce/8 + 2)) // a step copies 8
				r.Plane.Worker(0).Step()
			}
		})
		n, began := 0, time.Now()
		err := New(r.Plane, []string{"dc", "line"}).read(t.Context(), 0, func(*health.Connection) bool { n++; return true })
		done.Store(true)
		working.Wait()
		if took := time.Since(began); err != nil || n != many/2 || took < answerTime {
			t.Errorf("%d of %d connections in %v, %v", n, many/2, took, err)
		}
	})
	r.Close(t)
}

// TestSilentWorker: a worker that doesn't step is no reason to wait for ever, and gets no request that is still open.
func TestSilentWorker(t *testing.T) {
	r := connections(t, 2)
	c := New(r.Plane, []string{"dc", "line"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.read(ctx, 0, nil); err == nil || !strings.Contains(err.Error(), "worker 0 does not answer") {
		t.Errorf("got %v", err)
	}
	if !r.Plane.Worker(0).Ask(&dataplane.Snapshot{Health: &dataplane.HealthCopy{}}) {
		t.Error("the worker still has the request")
	}
	r.Settle()
	r.Close(t)
}

// TestEpisodes: a verdict is logged when it begins and when it no longer grows, once each, and again when it comes back. Their number is bounded.
func TestEpisodes(t *testing.T) {
	var log bytes.Buffer
	e := episodes{log: zerolog.New(&log), open: map[[2]string]*episode{}}
	now := time.Unix(1_700_000_000, 0)
	look := func(weights ...uint64) (begun, over int) {
		now = now.Add(lookEvery)
		var all []health.Verdict
		for n, w := range weights {
			if w > 0 {
				all = append(all, health.Verdict{Name: health.LossUpstream, Subject: string(rune('a' + n)), Weight: w})
			}
		}
		log.Reset()
		e.look(now, all)
		return strings.Count(log.String(), "is not healthy"), strings.Count(log.String(), "no longer happens")
	}
	for i, step := range []struct {
		weights     []uint64
		begun, over int
	}{
		{[]uint64{5, 0}, 1, 0}, {[]uint64{7, 0}, 0, 0}, {[]uint64{7, 1}, 1, 0}, {[]uint64{7, 2}, 0, 0}, {[]uint64{7, 3}, 0, 0}, {[]uint64{7, 4}, 0, 0}, {[]uint64{7, 5}, 0, 0},
		{[]uint64{7, 6}, 0, 0}, {[]uint64{7, 7}, 0, 1}, // it did not grow for a minute
		{[]uint64{8, 8}, 1, 0}, {[]uint64{0, 9}, 0, 1}, {[]uint64{1, 10}, 1, 0}, {nil, 0, 2},
	} {
		if begun, over := look(step.weights...); begun != step.begun || over != step.over {
			t.Errorf("look %d: %d begun, %d over, want %+v", i, begun, over, step)
		}
	}
	many := make([]uint64, 3*openMost)
	for i := range many {
		many[i] = 1
	}
	if begun, _ := look(many...); begun != openMost || len(e.open) != openMost {
		t.Errorf("%d of %d verdicts are logged, %d in memory", begun, len(many), len(e.open))
	}
}
