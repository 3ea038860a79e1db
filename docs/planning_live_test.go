package docs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/control"
	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/burst/inmem"
	testprogram "github.com/cnpgate/cnpgate/internal/testkit/program"
	"github.com/cnpgate/cnpgate/telemetry"
)

// liveAnswers are what a gateway is asked for: a path of the API, the metrics, or a command.
var liveAnswers = []struct{ name, what string }{
	{"`GET /v1/flows`, all", api.FlowsPath},
	{"`GET /v1/flows`, the 100 fastest", api.FlowsPath + "?sort=rate&limit=100&interval=100ms"},
	{"`GET /v1/senders`, the 100 fastest", api.SendersPath + "?limit=100&interval=100ms"},
	{"`GET /v1/episodes`", api.EpisodesPath},
	{"`GET /v1/rdma`", api.RDMAPath},
	{"`GET /metrics`", "metrics"},
	{"`show flows`", "show flows --interval 0"},
	{"`show flows --sort rate --limit 20`", "show flows --sort rate --limit 20 --interval 100ms"},
	{"`show senders`", "show senders --interval 100ms"},
	{"`top --count 1`", "top --interval 100ms --count 1"},
}

const (
	livePace    = 20 * time.Microsecond // between two packets of a worker and port
	liveRounds  = 3                     // packets of each flow before it answers
	liveMetrics = "127.0.0.1:9469"
	liveStep    = "Longest step of a worker, us"
	liveHead    = "| Answer: time, size | 10,000 flows | 100,000 flows | 1,000,000 flows |\n|---|---|---|---|\n"
)

// TestPlanningLive: the table of planning.md has what a gateway with so many flows answers. With -table columns are measured anew.
func TestPlanningLive(t *testing.T) {
	const page = "planning.md"
	text, begin, end := tableOf(t, page, liveHead)
	var rows [][]string
	for row := range strings.SplitSeq(strings.TrimSpace(text[begin:end]), "\n") {
		rows = append(rows, strings.Split(strings.Trim(row, "| "), " | "))
	}
	if *measurePlanning == "" {
		for i, row := range rows {
			if len(rows) != len(liveAnswers)+1 || len(row) != 4 || i < len(liveAnswers) && row[0] != liveAnswers[i].name {
				t.Fatalf("%s: row %q of %d; go test ./docs -run PlanningLive -table . measures it", page, row, len(rows))
			}
		}
		return
	}
	for column, head := range strings.Split(strings.Trim(strings.Split(liveHead, "\n")[0], "| "), " | ") {
		if column == 0 || !regexp.MustCompile(*measurePlanning).MatchString(head) {
			continue
		}
		for len(rows) <= len(liveAnswers) {
			rows = append(rows, []string{"", "-", "-", "-"})
		}
		for i, cell := range measureLive(t, number(strings.TrimSuffix(head, " flows"))/2) {
			rows[i][0], rows[i][column] = liveStep, cell
			if i < len(liveAnswers) {
				rows[i][0] = liveAnswers[i].name
			}
		}
		var all strings.Builder
		for _, row := range rows {
			all.WriteString("| " + strings.Join(row, " | ") + " |\n")
		}
		text, end = text[:begin]+all.String()+text[end:], begin+all.Len()
		if err := os.WriteFile(page, []byte(text), 0o644); err != nil { // also if a later column fails
			t.Fatal(err)
		}
	}
}

// measureLive asks a gateway with two workers in memory, whose WAN port is congested by 4,096 hosts. It returns a cell for each answer, and the longest step.
func measureLive(t *testing.T, connections int) (cells []string) {
	dir := t.TempDir()
	program, socket := filepath.Join(dir, "cnpgate"), filepath.Join(dir, "api.sock")
	testprogram.Put(t, "..", program)
	c, err := config.Parse("live.yaml", fmt.Appendf(nil, `gateway: {name: live, ipv6: "fd00:ffff::1"}
dpdk: {workers: [0, 1], idle: backoff}
ports:
  - {name: fabric, device: d0, role: fabric, peer: wan, rate: 400Gbps}
  - {name: wan, device: d1, role: wan, peer: fabric, rate: 150Mbps, queue_capacity: 16MB}
flows: {capacity: %d, paired: %[1]d}
endpoints: [{prefix: "fd00::/16", accepts: [standard-cnp]}]
notifications: {standard_cnp: {enabled: true}}
management: {listen: "unix:%s", metrics: %q}
`, 2*connections, socket, liveMetrics))
	if err != nil {
		t.Fatal(err)
	}
	d := newLiveDevices(t, connections, c.DPDK.Burst)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := control.Run(ctx, c, d, control.Options{Log: zerolog.New(io.Discard)})
		ended <- err
	}()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	for d.learning() {
		if len(ended) > 0 {
			t.Fatal("the gateway has ended")
		}
		time.Sleep(10 * time.Millisecond)
	}
	for _, a := range liveAnswers {
		began, size := time.Now(), int64(0)
		switch {
		case strings.HasPrefix(a.what, "/"):
			body, err := api.NewClient(socket).JSON(ctx, a.what)
			if err != nil {
				t.Fatal(err)
			}
			size = drained(t, body)
		case a.what == "metrics":
			r, err := http.Get("http://" + liveMetrics + "/metrics")
			if err != nil {
				t.Fatal(err)
			}
			size = drained(t, r.Body)
		default:
			out, err := exec.Command(program, append(strings.Fields(a.what), "--socket", socket)...).Output()
			if err != nil {
				t.Fatalf("%s: %v", a.what, err)
			}
			size = int64(len(out))
		}
		cells = append(cells, fmt.Sprintf("%.2f s, %s kB", time.Since(began).Seconds(), grouped((size+999)/1000)))
		t.Logf("%s: %s", a.name, cells[len(cells)-1])
	}
	longest := int64(0)
	for _, f := range d.feeders {
		longest = max(longest, f.longest.Load())
	}
	return append(cells, strconv.FormatInt(longest/1000, 10))
}

// drained reads an answer to its end, and returns its size in bytes.
func drained(t *testing.T, from io.ReadCloser) int64 {
	defer from.Close()
	n, err := io.Copy(io.Discard, from)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// liveDevices are ports in memory.
type liveDevices struct{ feeders []*liveFeeder }

// liveFeeder is a worker's backend: it makes packets arrive, in real time once each connection is known.
type liveFeeder struct {
	*inmem.Backend
	planned
	worker, burst int
	next          [2]int   // connection, by port
	due           [2]int64 // ns
	rounds        atomic.Int64
	before        threadUsage  // when the last exchange ended
	longest       atomic.Int64 // step, ns of CPU time
}

// threadUsage is what a thread has used: CPU time, and how often it was taken off its core.
type threadUsage struct{ cpu, switches int64 }

func usageNow() threadUsage {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &r); err != nil {
		panic(err)
	}
	return threadUsage{cpuTime(), r.Nivcsw}
}

func newLiveDevices(t *testing.T, connections, burst int) *liveDevices {
	d := &liveDevices{}
	for i := range 2 {
		f := &liveFeeder{planned: planned{connections: connections, mix: 2, frames: plannedFrames()}, worker: i, burst: burst}
		var err error
		if f.Backend, err = inmem.New(inmem.Config{Ports: 2, Burst: burst, BufferSize: 512, Memory: make([]byte, 512<<16)}); err != nil {
			t.Fatal(err)
		}
		f.backend = f.Backend
		d.feeders = append(d.feeders, f)
	}
	return d
}

// Exchange implements burst.Backend. Steps in which the thread was taken off its core, or whose packets are the first ones of flows, don't count.
func (f *liveFeeder) Exchange() int64 {
	now, learning := time.Now().UnixNano(), f.rounds.Load() < liveRounds
	if u := usageNow(); !learning && u.switches == f.before.switches {
		f.longest.Store(max(f.longest.Load(), u.cpu-f.before.cpu))
	}
	for port := range f.next {
		for range f.burst {
			if !learning && now < f.due[port] || !f.arrives(port) {
				break
			}
			f.due[port] = max(f.due[port]+livePace.Nanoseconds(), now-time.Millisecond.Nanoseconds())
		}
	}
	f.SetTime(now)
	f.Backend.Exchange()
	f.before = usageNow()
	return now
}

// arrives makes the next packet arrive, if a buffer is free. The worker has the requests of every second connection, and of half of these the acknowledgements, too.
func (f *liveFeeder) arrives(port int) bool {
	for (f.next[port]>>port+f.worker)%2 != 0 {
		f.next[port]++
	}
	if f.next[port] >= f.connections {
		f.next[port] = 0
		if port == 0 {
			f.psn++
			f.rounds.Add(1)
		}
		return false
	}
	if !f.give(uint32(f.next[port]), port) {
		return false
	}
	f.next[port]++
	return true
}

// learning reports whether connections are still to come.
func (d *liveDevices) learning() bool {
	return slices.ContainsFunc(d.feeders, func(f *liveFeeder) bool { return f.rounds.Load() < liveRounds })
}

func (d *liveDevices) Backend(worker int) burst.Backend { return d.feeders[worker] }

func (d *liveDevices) Enter(int) (leave func(), err error) {
	runtime.LockOSThread()
	return runtime.UnlockOSThread, nil
}

func (*liveDevices) LinkUp(int) (bool, error) { return true, nil }

func (*liveDevices) Describe(int) report.Device {
	return report.Device{Driver: "memory", MTU: 9000, LinkUp: true}
}

func (*liveDevices) SetLink(int, bool) error                           { return errors.ErrUnsupported }
func (*liveDevices) Counters(int) (telemetry.Values, error)            { return nil, nil }
func (*liveDevices) Watch(context.Context, func(control.Notice)) error { return nil }
