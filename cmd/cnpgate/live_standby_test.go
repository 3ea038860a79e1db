//go:build live && !nodpdk

package main

import (
	"os"
	"os/exec"
	"path/filepath"
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
	own := t.TempDir()
	p := &process{t: t, dir: of.dir, log: filepath.Join(own, "log"), report: filepath.Join(own, "report.json"), ended: make(chan error, 1)}
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
	p.says(`"message":"The gateway is standing by."`, 1)
	return p
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

// TestLiveStandby: a gateway that stands by takes over when the one before is killed, and the next one when that is stopped in order.
func TestLiveStandby(t *testing.T) {
	if ontime.Again(t) {
		return
	}
	program := liveBinary(t)
	enterNamespace(t)
	first := startGateway(t, program)
	a, b := newHost(t, "a1"), newHost(t, "b1")
	end := a.load(1000)
	defer end()
	flows(t, "at first", b, startTime)
	second := standByFor(t, program, first)
	third := standByFor(t, program, first)
	killed := outage(t, b, second, func() {
		first.signal(syscall.SIGKILL)
		<-first.ended
	})
	second.says(`"message":"The gateway takes over: the devices are free."`, 1)
	second.says(`"message":"The gateway is forwarding."`, 1)
	if err := second.turns(200, `"healthy":true`); err != nil {
		t.Error(err)
	}
	stopped := outage(t, b, third, func() { second.stop() })
	third.says(`"message":"The gateway is forwarding."`, 1)
	if err := third.turns(200, `"healthy":true`); err != nil {
		t.Error(err)
	}
	last := standByFor(t, program, third)
	last.signal(syscall.SIGTERM)
	if err := <-last.ended; err != nil {
		t.Errorf("a gateway that is stopped while it stands by: %v", err)
	}
	third.stop()
	t.Logf("from SIGKILL until the next gateway forwards: %v; from SIGTERM: %v", killed.Round(time.Millisecond), stopped.Round(time.Millisecond))
}
