package control

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/burst/inmem"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/telemetry"
)

// bench is devices without any: each worker's frames wait in a list, time goes on with each exchange, and what is sent is counted.
// Time stands still between the last frame's arrival and the draining, so that it is the draining that the frames leave by.
type bench struct {
	backends []*feeder
	clock    atomic.Int64
	entered  []int // cores, in any order
	left     atomic.Int32
	refuse   map[int]error // by core
	mutex    sync.Mutex
}

// feeder is a backend that injects a few frames before each exchange.
type feeder struct {
	*inmem.Backend
	clock  *atomic.Int64 // ns; of all workers
	step   int64         // ns that an exchange takes
	now    int64
	frames []feed
	fed    chan struct{} // closed when the last frame has been received
	// onDrain is called at the tenth exchange of a drain.
	onDrain func()
	drained int // exchanges since the drain began
	sent    atomic.Uint64
}

type feed struct {
	port  int
	frame []byte
}

func (f *feeder) Exchange() int64 {
	for range 4 {
		if len(f.frames) == 0 {
			break
		}
		next := f.frames[0]
		if !f.Inject(next.port, next.frame, uint32(len(next.frame))) {
			panic("no buffer for a frame")
		}
		if f.frames = f.frames[1:]; len(f.frames) == 0 {
			close(f.fed)
		}
	}
	if len(f.frames) > 0 || f.Batch().Drain {
		f.clock.Add(f.step)
	}
	f.SetTime(max(f.now, f.clock.Load()))
	f.now = f.Backend.Exchange()
	if f.Batch().Drain {
		f.drained++
		if f.drained == 10 && f.onDrain != nil {
			f.onDrain()
		}
	}
	return f.now
}

func (b *bench) Backend(worker int) burst.Backend { return b.backends[worker] }

func (b *bench) Enter(core int) (func(), error) {
	if err := b.refuse[core]; err != nil {
		return nil, err
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.entered = append(b.entered, core)
	return func() { b.left.Add(1) }, nil
}

func (b *bench) LinkUp(int) (bool, error) { return true, nil }
func (b *bench) Describe(int) report.Device {
	return report.Device{Driver: "net_bench", MTU: 9000, LinkUp: true}
}
func (b *bench) SetLink(int, bool) error { return errors.ErrUnsupported }

func (b *bench) Counters(int) (telemetry.Values, error) {
	return telemetry.Values{"device_missed_packets_total": {Value: 3}}, nil
}
func (b *bench) Watch(context.Context, func(Notice)) error { return nil }

const runConfig = `
gateway: {name: test, ipv4: 192.0.2.1}
dpdk: {workers: [%s], idle: %s}
flows: {capacity: 1Ki}
ports:
  - {name: dc, device: none0, role: fabric, peer: line, rate: %s}
  - {name: line, device: none1, role: wan, peer: dc, rate: %s}
`

func newBench(t *testing.T, cores []int, idle, rate string, frames int) (*config.Config, *bench) {
	t.Helper()
	list := strings.Trim(strings.ReplaceAll(fmt.Sprint(cores), " ", ", "), "[]")
	c, err := config.Parse("run_test", fmt.Appendf(nil, runConfig, list, idle, rate, rate))
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{refuse: map[int]error{}}
	b.clock.Store(testkit.Epoch)
	step := int64(1_000)
	if c.DPDK.Backoff {
		step = 30_000 // as the workers sleep for real, though briefly
	}
	for range cores {
		memory, _ := testkit.Heap(2048 * 1024)
		f := &feeder{clock: &b.clock, step: step, fed: make(chan struct{})}
		f.Backend, err = inmem.New(inmem.Config{Ports: 2, Burst: c.DPDK.Burst, BufferSize: 2048, Memory: memory, Sent: func(inmem.Sent) { f.sent.Add(1) }})
		if err != nil {
			t.Fatal(err)
		}
		for i := range frames {
			f.frames = append(f.frames, feed{i % 2, testkit.RoCE{Src: "198.18.0.1", Dst: "198.19.0.1", DestQP: uint32(2 + i%7), Size: 500}.Frame()})
		}
		b.backends = append(b.backends, f)
	}
	return c, b
}

// done fails the test unless all goroutines that were started are gone, workers have left their cores and buffers are back.
func (b *bench) done(t *testing.T, goroutines int) {
	t.Helper()
	for range 10_000_000 {
		if runtime.NumGoroutine() <= goroutines {
			break
		}
		runtime.Gosched()
	}
	if n := runtime.NumGoroutine(); n > goroutines {
		stacks := make([]byte, 1<<16)
		t.Errorf("%d goroutines are left of a run:\n%s", n-goroutines, stacks[:runtime.Stack(stacks, true)])
	}
	if int(b.left.Load()) != len(b.entered) {
		t.Errorf("%d workers entered their cores, %d left", len(b.entered), b.left.Load())
	}
	for i, f := range b.backends {
		if n := f.InUse() - f.Waiting(); n != 0 {
			t.Errorf("worker %d: %d buffers are not given back", i, n)
		}
	}
}

func number(t *testing.T, r *report.Report, name string) uint64 {
	t.Helper()
	reading, ok := r.Counters[name]
	if !ok {
		t.Fatalf("the report has no %s", name)
	}
	return reading.Sum()
}

// TestRunForwardsAndDrains: workers start, forward, and at the end of the context send what is queued before they stop.
func TestRunForwardsAndDrains(t *testing.T) {
	for _, idle := range []string{"poll", "backoff"} {
		for _, cores := range [][]int{{0}, {0, 1, 2}} {
			t.Run(fmt.Sprint(idle, " ", cores), func(t *testing.T) {
				before := runtime.NumGoroutine()
				const frames = 200
				c, b := newBench(t, cores, idle, "100Mbps", frames) // 42 us a frame
				var log shared
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go func() {
					for _, f := range b.backends {
						<-f.fed
					}
					cancel()
				}()
				r, err := Run(ctx, c, b, Options{Log: zerolog.New(&log), Timeline: true})
				if err != nil {
					t.Fatal(err)
				}
				want := uint64(len(cores) * frames)
				if a, z := number(t, r, "received_packets_total"), number(t, r, "forwarded_packets_total"); a != want || z != want {
					t.Errorf("%d frames received, %d forwarded, expected %d", a, z, want)
				}
				sent := uint64(0)
				for _, f := range b.backends {
					sent += f.sent.Load()
				}
				if err := r.Counters.Check(); sent != want || err != nil {
					t.Errorf("%d frames sent of %d (%v)", sent, want, err)
				}
				slices.Sort(b.entered)
				if !slices.Equal(b.entered, cores) {
					t.Errorf("workers on cores %v, expected %v", b.entered, cores)
				}
				for _, part := range []string{`"port":"dc"`, `"forwarded_packets_total":`, `"device_missed_packets_total":3`, `"message":"The gateway has stopped. `} {
					if !strings.Contains(log.String(), part) {
						t.Errorf("the log lacks %s:\n%s", part, &log)
					}
				}
				b.done(t, before)
			})
		}
	}
}

// TestRunAborted: an abort drops and counts all queued frames and returns their buffers, at once.
func TestRunAborted(t *testing.T) {
	before := runtime.NumGoroutine()
	const frames = 300
	c, b := newBench(t, []int{0, 1}, "poll", "100kbps", frames)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	abort, draining := make(chan struct{}), make(chan struct{}, 2)
	for _, f := range b.backends {
		f.step = 0 // nothing leaves
		f.onDrain = func() {
			draining <- struct{}{}
			<-abort
		}
	}
	go func() {
		for _, f := range b.backends {
			<-f.fed
		}
		cancel()
		<-draining
		<-draining
		close(abort)
	}()
	r, err := Run(ctx, c, b, Options{Log: zerolog.Nop(), Abort: abort})
	if err != nil {
		t.Fatal(err)
	}
	dropped := r.Counters["dropped_packets_total"].By["shutdown"]
	if sent := number(t, r, "forwarded_packets_total"); dropped < 500 || sent+dropped != number(t, r, "received_packets_total") {
		t.Errorf("%d frames sent, %d dropped", sent, dropped)
	}
	for i, f := range b.backends {
		if f.drained > 20 { // to give 300 buffers and the spares back takes some
			t.Errorf("worker %d went on for %d exchanges", i, f.drained-10)
		}
	}
	b.done(t, before)
}

// TestRunWatches: while workers run their links are looked at and the depth of their queues is kept; at the end a link that was taken
// down for its peer's sake is let up.
func TestRunWatches(t *testing.T) {
	before := runtime.NumGoroutine()
	c, b := newBench(t, []int{0}, "poll", "100kbps", 10)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w := &watchedBench{bench: b, wire: newWire(2), looks: 12, seen: cancel}
	var log shared
	r, err := Run(ctx, c, w, Options{Log: zerolog.New(&log), Timeline: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(w.calls, ", "); got != "1 false, 1 true" {
		t.Errorf("the calls to the devices are %q", got)
	}
	if n := len(r.Timeline); n < 2 || r.Timeline[n-1].DepthBytes == 0 {
		t.Errorf("timeline %+v", r.Timeline)
	}
	if want := `"problem":"there is none","port":"line","healthy":false,"message":"Interface is gone."`; !strings.Contains(log.String(), want) {
		t.Errorf("the log lacks %s:\n%s", want, log.String())
	}
	b.done(t, before)
}

// watchedBench pulls the cable of port 0 after a few looks at it, and ends the run after some more.
type watchedBench struct {
	*bench
	*wire
	looks int
	seen  func()
}

func (w *watchedBench) Backend(worker int) burst.Backend       { return w.bench.Backend(worker) }
func (w *watchedBench) Enter(core int) (func(), error)         { return w.bench.Enter(core) }
func (w *watchedBench) Counters(int) (telemetry.Values, error) { return telemetry.Values{}, nil }
func (w *watchedBench) Watch(ctx context.Context, report func(Notice)) error {
	report(Notice{Port: 1, Text: "interface is gone", Problem: "there is none"})
	<-ctx.Done()
	return nil
}
func (w *watchedBench) SetLink(port int, up bool) error { return w.wire.SetLink(port, up) }
func (w *watchedBench) Describe(port int) report.Device { return w.bench.Describe(port) }

func (w *watchedBench) LinkUp(port int) (bool, error) {
	if port == 0 {
		switch w.looks--; w.looks {
		case 8:
			w.cable[0] = false
		case 0:
			w.seen()
		}
	}
	return w.wire.LinkUp(port)
}

// TestRunWithoutACore: a worker that can't enter ends the run, says which and why, and the others drain and stop.
func TestRunWithoutACore(t *testing.T) {
	for _, refused := range [][]int{{1}, {0}, {0, 1, 2}} {
		before := runtime.NumGoroutine()
		c, b := newBench(t, []int{0, 1, 2}, "poll", "1Gbps", 50)
		for _, core := range refused {
			b.refuse[core] = fmt.Errorf("core %d is on fire", core)
		}
		r, err := Run(t.Context(), c, b, Options{Log: zerolog.Nop()})
		for _, core := range refused {
			if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("worker %d on core %d: core %d is on fire", core, core, core)) {
				t.Errorf("error %v doesn't name worker %d", err, core)
			}
		}
		if len(b.entered) != 3-len(refused) {
			t.Errorf("%d workers entered", len(b.entered))
		}
		if r == nil || r.Counters.Check() != nil {
			t.Errorf("report %v", r)
		}
		b.done(t, before)
	}
}

// TestRunAlreadyOver: a context that has ended starts nothing that doesn't stop.
func TestRunAlreadyOver(t *testing.T) {
	before := runtime.NumGoroutine()
	c, b := newBench(t, []int{0, 1}, "backoff", "1Gbps", 0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, c, b, Options{Log: zerolog.Nop()}); err != nil {
		t.Error(err)
	}
	b.done(t, before)
}

// TestLostFramesAreAnError: a run with an unaccounted frame ends with an error.
func TestLostFramesAreAnError(t *testing.T) {
	g := &gateway{started: &config.Config{}}
	for _, queued := range []uint64{1, 2, 3} {
		r := &report.Report{Counters: telemetry.Values{"received_packets_total": {Value: 6}, "forwarded_packets_total": {Value: 4}, "queued_packets": {Value: queued}}}
		lost := 2 - int64(queued)
		if err := g.account(r); (err != nil) != (lost != 0) || lost != 0 && !strings.Contains(err.Error(), fmt.Sprint(lost, " frames")) {
			t.Errorf("%d frames lost: error %v", lost, err)
		}
	}
}
