package control

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/internal/testkit/ontime"
	"github.com/cnpgate/cnpgate/telemetry"
)

// TestHeart: a worker that stops is reported once, within 100 ms, and once more when it steps again.
func TestHeart(t *testing.T) {
	const ms, hangs = time.Millisecond, "it hangs: it had its core, or waits for the kernel or a debugger"
	var h heart
	steps := []uint64{7, 7}
	for i, c := range []struct {
		elapsed time.Duration
		moves   [2]uint64
		want    []change
	}{
		{20 * ms, [2]uint64{1, 1}, nil},
		{20 * ms, [2]uint64{1, 0}, nil},
		{20 * ms, [2]uint64{1, 0}, nil},
		{20 * ms, [2]uint64{1, 0}, []change{{1, true, 60 * ms, hangs}}},
		{20 * ms, [2]uint64{1, 0}, nil},
		{20 * ms, [2]uint64{1, 1}, []change{{1, false, 80 * ms, hangs}}},
		{20 * ms, [2]uint64{1, 1}, nil},
		{time.Hour, [2]uint64{0, 0}, nil}, // the whole process was stopped
		{20 * ms, [2]uint64{1, 1}, nil},
		{20 * ms, [2]uint64{0, 0}, nil},
		{20 * ms, [2]uint64{0, 0}, nil},
		{20 * ms, [2]uint64{0, 0}, []change{{0, true, 60 * ms, hangs}, {1, true, 60 * ms, hangs}}},
	} {
		steps[0], steps[1] = steps[0]+c.moves[0], steps[1]+c.moves[1]
		if got := h.look(c.elapsed, steps, func(int) usage { return usage{} }); !slices.Equal(got, c.want) {
			t.Errorf("look %d: %v, want %v", i, got, c.want)
		}
	}
	if got := h.stalled(); !slices.Equal(got, []change{{0, true, 60 * ms, hangs}, {1, true, 60 * ms, hangs}}) || !h.hangs() {
		t.Errorf("stalled are %v", got)
	}
	got, want := telemetry.Values{}, telemetry.Values{
		"worker_stalled":      {By: map[string]uint64{"0": 1, "1": 1}},
		"worker_stalls_total": {By: map[string]uint64{"0": 1, "1": 2}},
	}
	if h.addTo(got); !reflect.DeepEqual(got, want) {
		t.Errorf("the metrics are %v, want %v", got, want)
	}
}

// TestHeartInTime: whenever a worker stops, it is reported within 100 ms where the looks are in time, and never where it steps every 29 ms.
func TestHeartInTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h heart
		gap := time.Duration(rapid.IntRange(1, 29).Draw(t, "gap")) * time.Millisecond
		stop := time.Duration(rapid.IntRange(0, 500).Draw(t, "stop")) * time.Millisecond
		late := rapid.SliceOfN(rapid.IntRange(0, 10), 40, 40).Draw(t, "late")
		now, last := time.Duration(0), time.Duration(0)
		for _, l := range late {
			now = last - last%lookEvery + lookEvery + time.Duration(l)*time.Millisecond // a ticker's ticks, each a little late
			changes := h.look(now-last, []uint64{1 + uint64(min(now, stop)/gap)}, func(int) usage { return usage{} })
			last = now
			lastStep := stop - stop%gap
			if len(changes) > 0 {
				if now < stop || now-lastStep < stallAfter {
					t.Fatalf("reported at %v though it stepped until %v: %v", now, lastStep, changes)
				}
				return
			}
			if now-lastStep > 100*time.Millisecond {
				t.Fatalf("not reported at %v though it has not stepped since %v", now, lastStep)
			}
		}
	})
}

// TestKeepAlive: four times within the timeout, while no worker hangs.
func TestKeepAlive(t *testing.T) {
	const second = time.Second
	for _, c := range []struct {
		timeout time.Duration
		alive   func(at time.Duration) bool
		want    []time.Duration
	}{
		{0, func(time.Duration) bool { return true }, nil},
		{2 * second, func(time.Duration) bool { return true }, []time.Duration{second / 2, second, 3 * second / 2}},
		{2 * second, func(at time.Duration) bool { return at < second || at > 5*second/4 }, []time.Duration{second / 2, 13 * second / 10, 9 * second / 5}},
	} {
		k, got := keepAlive{timeout: c.timeout}, []time.Duration(nil)
		for at := second / 10; at < 2*second; at += second / 10 {
			if k.due(second/10, c.alive(at)) {
				got = append(got, at)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("timeout %v: at %v, want %v", c.timeout, got, c.want)
		}
	}
}

// hanger is a backend whose exchange passes on the received frames and then blocks until the test releases it.
type hanger struct {
	*feeder
	hang, goOn chan struct{}
}

func (h *hanger) Exchange() int64 {
	now := h.feeder.Exchange()
	if h.hang != nil && len(h.frames) == 0 {
		close(h.hang)
		h.hang = nil
		<-h.goOn
	}
	return now
}

// stuck is devices with workers that hang.
type stuck struct {
	*bench
	first *hanger
}

func (s *stuck) Backend(worker int) burst.Backend {
	if worker == 0 {
		return s.first
	}
	return s.bench.Backend(worker)
}

// TestWorkerHangs: while a worker hangs, health is red and says which, the log says so, and the metric; when it steps again, all is well.
func TestWorkerHangs(t *testing.T) {
	if ontime.Again(t) {
		return
	}
	c, b := newBench(t, []int{0, 3}, "backoff", "1Gbps", 10)
	devices := &stuck{b, &hanger{b.backends[0], make(chan struct{}), make(chan struct{})}}
	hangs := devices.first.hang
	log := &lineLog{lines: make(chan string, 100)}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	g := newGateway(c, devices, Options{Log: zerolog.New(log)})
	go func() {
		r, err := g.run(ctx)
		if err == nil && r.Counters["worker_stalls_total"].By["0"] == 0 {
			err = fmt.Errorf("the report has the counters %v", r.Counters["worker_stalls_total"])
		}
		ended <- err
	}()
	<-hangs
	log.wait(t, `"worker":0,"core":0,`, "A worker has stopped stepping.")
	problems := g.Problems()
	for _, port := range []string{"dc", "line"} {
		if want := "worker 0 on core 0 has stopped stepping: "; !strings.HasPrefix(problems[port], want) {
			t.Errorf("%s: health says %q, want %q", port, problems[port], want)
		}
	}
	if v := g.Counters().Counters["worker_stalled"].By["0"]; v != 1 {
		t.Errorf("worker_stalled is %d", v)
	}
	close(devices.first.goOn)
	log.wait(t, `"worker":0,"core":0,`, "The worker steps again.")
	if problems := g.Problems(); len(problems) != 0 {
		t.Errorf("health says %v", problems)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestServiceManagerIsFed: where the service manager has a watchdog, it hears of the gateway while the workers step.
func TestServiceManagerIsFed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", "100000")
	t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
	c, b := newBench(t, []int{0}, "backoff", "1Gbps", 10)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := Run(ctx, c, b, Options{Log: zerolog.Nop()})
		ended <- err
	}()
	buffer := make([]byte, 4096)
	for fed := 0; fed < 3; {
		n, err := l.Read(buffer)
		if err != nil {
			t.Fatal(err)
		}
		if string(buffer[:n]) == "WATCHDOG=1" {
			fed++
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// lineLog hands over the lines of a log.
type lineLog struct{ lines chan string }

func (l *lineLog) Write(b []byte) (int, error) {
	l.lines <- string(b)
	return len(b), nil
}

// wait reads lines until one has all texts.
func (l *lineLog) wait(t *testing.T, texts ...string) {
	t.Helper()
	for line := range l.lines {
		if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) }) {
			return
		}
	}
}

// guarded is a backend with one frame at the end of a page, behind which no memory can be read: the frame claims to be longer than it is.
type guarded struct {
	*feeder
	frame  []byte
	length int // that it claims
	place  int // in the burst
}

func (g *guarded) Exchange() int64 {
	now := g.feeder.Exchange()
	if g.frame == nil || len(g.Batch().Ports[1].Rx) <= g.place {
		return now
	}
	page := os.Getpagesize()
	memory, err := unix.Mmap(-1, 0, 2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err == nil {
		err = unix.Mprotect(memory[page:], unix.PROT_NONE)
	}
	if err != nil {
		panic(err)
	}
	at := page - len(g.frame)
	copy(memory[at:], g.frame)
	f := &g.Batch().Ports[1].Rx[g.place]
	f.Data = uint64(uintptr(unsafe.Pointer(&memory[at])) - uintptr(g.Batch().Base))
	f.Len, f.Head = uint32(g.length), uint32(g.length)
	return now
}

type guardedBench struct {
	*bench
	first *guarded
}

func (b *guardedBench) Backend(int) burst.Backend { return b.first }

// faultLength is what the frames claim to have.
const faultLength = 350

// faults are frames whose handling fails, by name; they are cut where the memory ends.
var faults = []struct {
	name string
	make func() []byte
}{
	{"in the plain parser", func() []byte {
		return testkit.RoCE{Src: "198.18.0.1", Dst: "198.19.0.1", DestQP: 7, Size: 500}.Frame()[:20]
	}},
	{"in the parser", func() []byte { return append(make([]byte, 12), 0x88, 0xa8, 0, 1, 0x81, 0, 0, 2, 0x86, 0xdd, 0x60) }},
	{"in learning", func() []byte {
		f := testkit.RoCE{Src: "198.18.0.1", Dst: "198.19.0.1", DestQP: 1, SourceQP: 1, Opcode: packet.UDSendOnly, Size: faultLength}.Frame()
		copy(f[62:], []byte{1, 7, 2, 3}) // a MAD of communication management, whose attribute is at 78
		return f[:70]
	}},
}

const faultVariable = "CNPGATE_TEST_FAULT"

// TestPanicNamesPacket: where the handling of a packet panics, the process ends at once with its own status, and the log names the packet.
func TestPanicNamesPacket(t *testing.T) {
	if name := os.Getenv(faultVariable); name != "" {
		panicOver(t, name)
		return
	}
	if ontime.Again(t) { // the log has panicLogTime
		return
	}
	for _, c := range faults {
		t.Run(c.name, func(t *testing.T) {
			child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestPanicNamesPacket$")
			child.Env = append(os.Environ(), faultVariable+"="+c.name)
			out, err := child.CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != PanicStatus {
				t.Fatalf("%v, expected the exit status %d\n%s", err, PanicStatus, out)
			}
			for _, want := range []string{
				`"level":"fatal"`, `"worker":0`, `"core":5`, `"panic":"runtime error: invalid memory address`, `"port":"line"`, `"place":2`, `"burst":4`, fmt.Sprintf(`"length":%d`, faultLength),
				`"packet":"` + hex.EncodeToString(c.make()) + `"`, `github.com/cnpgate/cnpgate/dataplane`, "please report it",
			} {
				if !strings.Contains(string(out), want) {
					t.Errorf("the log lacks %s:\n%s", want, out)
				}
			}
		})
	}
}

// stuckLog is standard error once nobody reads it any more: the line about a panic is never taken.
type stuckLog struct{}

func (stuckLog) Write(b []byte) (int, error) {
	if strings.Contains(string(b), `"level":"fatal"`) {
		select {}
	}
	return len(b), nil
}

const stuckVariable = "CNPGATE_TEST_STUCK"

// TestPanicWithStuckLog: the process ends also where the log does not take the line, so that another gateway can have the devices.
func TestPanicWithStuckLog(t *testing.T) {
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestPanicNamesPacket$", "-test.timeout=20s")
	child.Env = append(os.Environ(), faultVariable+"="+faults[0].name, stuckVariable+"=1")
	out, err := child.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != PanicStatus {
		t.Fatalf("%v, expected the exit status %d\n%s", err, PanicStatus, out)
	}
}

// panicOver runs a gateway that receives the frame of a fault, third of four.
func panicOver(t *testing.T, name string) {
	log := zerolog.New(os.Stderr)
	if os.Getenv(stuckVariable) != "" {
		log = zerolog.New(stuckLog{})
	}
	c, b := newBench(t, []int{5}, "poll", "1Gbps", 0)
	i := slices.IndexFunc(faults, func(f struct {
		name string
		make func() []byte
	}) bool {
		return f.name == name
	})
	for range 4 {
		b.backends[0].frames = append(b.backends[0].frames, feed{1, testkit.RoCE{Src: "198.19.0.1", Dst: "198.18.0.1", DestQP: 9, Size: 500}.Frame()})
	}
	_, err := Run(t.Context(), c, &guardedBench{b, &guarded{b.backends[0], faults[i].make(), faultLength, 2}}, Options{Log: log})
	t.Fatalf("the gateway has ended in order: %v", err)
}
