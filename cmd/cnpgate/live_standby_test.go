//go:build live && !nodpdk

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cnpgate/cnpgate/internal/testkit/ontime"
)

// takeoverTime is the longest allowed time from the end of a gateway until the standby gateway forwards.
const takeoverTime = 30 * time.Second

// standByFor starts a gateway that stands by, with the configuration file of another one, and waits until it does.
func standByFor(t *testing.T, program string, of *process) *process {
	t.Helper()
	p := startStandby(t, program, of.dir)
	p.says(`"message":"The gateway is standing by."`, 1)
	return p
}

// startStandby starts a gateway with --standby, and the configuration file of a folder.
func startStandby(t *testing.T, program, dir string) *process {
	t.Helper()
	own := t.TempDir()
	p := &process{t: t, dir: dir, log: filepath.Join(own, "log"), report: filepath.Join(own, "report.json"), ended: make(chan error, 1)}
	log, err := os.Create(p.log)
	if err != nil {
		t.Fatal(err)
	}
	p.cmd = exec.Command(program, "run", "--standby", "--config", filepath.Join(p.dir, "c.yaml"), "--report", p.report)
	p.cmd.Stderr = log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.ended <- p.cmd.Wait() }()
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	return p
}

// delivery is what became of numbered frames.
type delivery struct{ lost, doubled, reordered int }

// deliveryOf compares the numbers of the received frames with those of the first n.
func deliveryOf(order []uint64, n uint64) (d delivery) {
	times := make([]int, n)
	last := uint64(0)
	for _, i := range order {
		if i < last {
			d.reordered++
		}
		last = max(last, i)
		times[i]++
	}
	for _, n := range times {
		switch {
		case n == 0:
			d.lost++
		case n > 1:
			d.doubled++
		}
	}
	return d
}

// TestLiveHandover: while frames flow, the next gateway takes over. It loses, doubles and reorders none if the one before is stopped in order; if that is
// killed, what it held may be lost.
func TestLiveHandover(t *testing.T) {
	if ontime.Again(t) {
		return
	}
	program := liveBinary(t)
	drained := func(t *testing.T, p *process) {
		t.Helper()
		if got := cnpgate(t, p.dir, "drain", "--socket", filepath.Join(p.dir, "api.sock")); got.status != 0 || got.stdout != "drained; it is safe to stop the gateway\n" {
			t.Fatalf("%+v", got)
		}
		p.stop()
	}
	stopped := func(_ *testing.T, p *process) { p.stop() }
	killed := func(_ *testing.T, p *process) {
		p.signal(syscall.SIGKILL)
		<-p.ended
	}
	for _, c := range []struct {
		name, workers string
		before        func(t *testing.T, first, second *process) // while the second stands by
		end           func(*testing.T, *process)
		most          int // lost
	}{
		{"drain, SIGTERM", "[0]", nil, drained, 0},
		{"SIGTERM, two workers", "[0, 1]", nil, stopped, 0},
		{"SIGKILL", "[0]", nil, killed, 64},
		{"an interface was made again", "[0]", func(t *testing.T, first, _ *process) {
			ip(t, "link del b0")
			first.says("Interface b0 is gone", 1)
			makeWire(t, "b")
			first.says("Interface b0 is back", 1)
		}, stopped, 0},
		{"another configuration, which the first hasn't", "[0]", func(t *testing.T, first, second *process) {
			text, err := os.ReadFile(filepath.Join(first.dir, "c.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			put(t, first.dir, "c.yaml", []byte(strings.ReplaceAll(string(text), "queue_capacity: 500KB", "queue_capacity: 400KB")))
			second.says("The standby starts again.", 1)
			second.says(`"message":"The gateway is standing by."`, 2)
		}, stopped, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			enterNamespace(t)
			first := startWith(t, program, strings.Replace(liveConfig, "[0]", c.workers, 1))
			second := standByFor(t, program, first)
			if c.before != nil {
				c.before(t, first, second)
			}
			a, b := newHost(t, "a1"), newHost(t, "b1")
			time.Sleep(time.Second) // it prepares
			end := a.load(1000)
			flows(t, "at first", b, startTime)
			c.end(t, first)
			second.says(`"message":"The gateway is forwarding."`, 1)
			flows(t, "taken over", b, recoveryTime)
			end()
			b.settle()
			b.close()
			second.stop()
			d := deliveryOf(b.order, a.sent.Load())
			if d.lost > c.most || d.doubled > 0 || d.reordered > 0 {
				t.Errorf("of %d frames: %+v, expected at most %d lost", a.sent.Load(), d, c.most)
			}
			if c.most > 0 {
				faulted(t, "The active gateway", a, b, 0)
			}
			t.Logf("%d frames: %+v; the longest pause: %v", a.sent.Load(), d, b.silence.Round(time.Millisecond))
		})
	}
}

// outage is the time from the order to end a gateway until a host receives a frame that another gateway forwarded.
func outage(t *testing.T, b *host, next *process, end func()) time.Duration {
	t.Helper()
	begin := time.Now()
	end()
	for before := b.received.Load(); b.received.Load() == before; time.Sleep(time.Millisecond) {
		if time.Since(begin) > takeoverTime {
			log, _ := os.ReadFile(next.log)
			t.Fatalf("nothing is forwarded for %v:\n%s", takeoverTime, log)
		}
	}
	return time.Since(begin)
}
