//go:build live && !nodpdk

package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/internal/testkit/ontime"
)

// limit changes a resource limit of a running gateway; the returned function restores it.
func limit(t *testing.T, p *process, resource int, to uint64) (restore func()) {
	t.Helper()
	var was unix.Rlimit
	pid := p.cmd.Process.Pid
	if err := unix.Prlimit(pid, resource, nil, &was); err != nil {
		t.Fatal(err)
	}
	set := func(l unix.Rlimit) {
		t.Helper()
		if err := unix.Prlimit(pid, resource, &l, nil); err != nil {
			t.Fatal(err)
		}
	}
	set(unix.Rlimit{Cur: to, Max: was.Max})
	return func() { set(was) }
}

// TestLiveNoDescriptors: a gateway that may open no more files forwards. It refuses a reload and answers no new client; once it may again, it does both.
func TestLiveNoDescriptors(t *testing.T) {
	if ontime.Again(t) {
		return
	}
	program := liveBinary(t)
	enterNamespace(t)
	p := startGateway(t, program)
	a, b := newHost(t, "a1"), newHost(t, "b1")
	end := a.load(1000)
	flows(t, "at first", b, startTime)
	restore := limit(t, p, unix.RLIMIT_NOFILE, 0)
	client, err := net.Dial("unix", filepath.Join(p.dir, "api.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	p.says("accept4: too many open files", 1)
	p.signal(syscall.SIGHUP)
	p.says("can't read the configuration file: too many open files", 1)
	flows(t, "without descriptors", b, recoveryTime)
	restore()
	if err := p.turns(200, `"healthy":true`); err != nil {
		t.Error(err)
	}
	p.signal(syscall.SIGHUP)
	p.says("The configuration was reloaded", 1)
	end()
	b.settle()
	_, wan := p.stop()
	b.close()
	if arrived := b.received.Load(); wan.Counters.Forwarded != arrived {
		t.Errorf("%d frames count as forwarded, %d arrived", wan.Counters.Forwarded, arrived)
	}
	faulted(t, "No file descriptors", a, b, 0)
}

// TestLiveNoMemory: the memory ends while a gateway reads a large configuration. It ends like one that the kernel kills for want of memory, and the standby takes over.
func TestLiveNoMemory(t *testing.T) {
	if ontime.Again(t) {
		return
	}
	program := liveBinary(t)
	enterNamespace(t)
	p := startGateway(t, program)
	next := standByFor(t, program, p)
	a, b := newHost(t, "a1"), newHost(t, "b1")
	end := a.load(1000)
	flows(t, "at first", b, startTime)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	var kilobytes uint64
	_, size, _ := strings.Cut(string(status), "VmSize:")
	if _, err := fmt.Sscan(size, &kilobytes); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(p.dir, "c.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	large := slices.Concat(text, []byte("endpoints:\n"))
	for i := range 200_000 {
		large = fmt.Appendf(large, "  - {prefix: 10.%d.%d.%d/32, accepts: [standard-cnp]}\n", i>>16, i>>8&0xff, i&0xff)
	}
	took := outage(t, b, next, func() {
		limit(t, p, unix.RLIMIT_AS, kilobytes<<10)
		put(t, p.dir, "c.yaml", large)
		p.signal(syscall.SIGHUP)
		err = <-p.ended
		put(t, p.dir, "c.yaml", text)
	})
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Success() {
		t.Errorf("the gateway without memory: %v", err)
	}
	next.says(`"message":"The gateway is forwarding."`, 1)
	t.Logf("the standby forwards %v after the reload was asked for; until its memory ended the gateway forwarded", took)
	end()
	b.settle()
	b.close()
	faulted(t, "No memory, at a reload", a, b, 0)
	next.stop()
}
