//go:build live && !nodpdk

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/internal/testkit/ontime"
)

const tracedConfig = `gateway: {name: live, ipv6: "2001:db8::1"}
dpdk: {hugepages: false, workers: [0], idle: backoff}
ports:
  - {name: fabric, device: "net_af_packet0,iface=a0", role: fabric, peer: wan, rate: 10Gbps, mtu: 1500, queue_capacity: 500KB}
  - {name: wan, device: "net_af_packet1,iface=b0", role: wan, peer: fabric, rate: 2Mbps, mtu: 1500, queue_capacity: 500KB}
profiles: {default: {mode: thresholds, k_base: 20KB}}
endpoints: [{prefix: "fd00:18::/64", accepts: [fast-cnp]}]
notifications: {fast_cnp: {enabled: true}}
flows: {capacity: 1Ki}
management: {listen: "unix:%s/api.sock"}
`

// TestLiveTrace: while a flow congests the WAN port, a trace shows what was decided about some of its packets, and no packet is lost to it; in observe mode it says so.
func TestLiveTrace(t *testing.T) {
	if ontime.Again(t) {
		return
	}
	program := liveBinary(t)
	enterNamespace(t)
	p := startWith(t, program, tracedConfig)
	a := newHost(t, "a1")
	socket := filepath.Join(p.dir, "api.sock")
	trace := func(file string) string {
		t.Helper()
		capture := command(p.dir, "capture", "--flow", "fd00:18::1,fd00:19::1,7", "--trace", "--duration", "2s", "-w", file, "--socket", socket)
		begun, err := capture.StderrPipe()
		if err == nil {
			err = capture.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		for seen, c := "", make([]byte, 1); !strings.HasSuffix(seen, "capturing notifications and packets"); seen += string(c) {
			if _, err := begun.Read(c); err != nil {
				t.Fatalf("%v after %q", err, seen)
			}
		}
		for range 100 {
			f := testkit.RoCE{Src: "fd00:18::1", Dst: "fd00:19::1", DestQP: 7, Size: 1000, ECN: packet.ECT0}.Frame()
			if err := unix.Send(a.send, f, 0); err != nil {
				t.Fatal(err)
			}
			a.sent.Add(1)
			time.Sleep(time.Millisecond)
		}
		rest := &bytes.Buffer{}
		_, _ = rest.ReadFrom(begun)
		if err := capture.Wait(); err != nil {
			t.Fatalf("%v: %s", err, rest)
		}
		decoded := within(t, p.dir, "decode", file)
		if decoded.status != 0 {
			t.Fatalf("%+v", decoded)
		}
		return decoded.stdout
	}
	sent := trace("sent.pcapng")
	for _, want := range []string{"flow: began with this packet at worker 0", "flow: known to worker 0", "queue: wan/default, which held ", "notify: no: the queue is not congested", "notify: fast-cnp to fd00:18::1, by port fabric",
		"mark: CE was set", "send: by port wan, after ", "fast-cnp from 2001:db8::1 to fd00:18::1, accepted"} {
		if !strings.Contains(sent, want) {
			t.Errorf("the trace lacks %q:\n%s", want, sent)
		}
	}
	if got := within(t, p.dir, "show", "ports", "--interval", "0", "--socket", socket); strings.Count(got.stdout, "    net_af_packet on ") != 2 || strings.Count(got.stdout, ", link up") != 2 || !strings.Contains(got.stdout, ", MAC ") {
		t.Errorf("the facts of the ports: %+v", got)
	}
	if got := within(t, p.dir, "set", "mode", "observe", "--port", "wan", "--socket", socket); got.status != 0 || !strings.Contains(got.stdout, "wan     observe  send\n") {
		t.Fatalf("%+v", got)
	}
	if got := within(t, p.dir, "show", "health", "--socket", socket); got.status != 0 || !strings.Contains(got.stdout, "port wan: mode observe, and send in the configuration") {
		t.Errorf("%+v", got)
	}
	observed := trace("observed.pcapng")
	for _, want := range []string{"which is not sent: observe mode", "mark: CE would be set: observe mode"} {
		if !strings.Contains(observed, want) {
			t.Errorf("the trace lacks %q:\n%s", want, observed)
		}
	}
	fabric, wan := p.stop()
	if sent := a.sent.Load(); fabric.Counters.Received != sent || wan.Counters.Forwarded != sent {
		t.Errorf("%d packets sent, %d received, %d forwarded", sent, fabric.Counters.Received, wan.Counters.Forwarded)
	}
}

// TestLiveBypass: the heartbeat stops with the process, whatever becomes of it, and a worker that hangs; it goes on with them.
func TestLiveBypass(t *testing.T) {
	if ontime.Again(t) {
		return
	}
	program := liveBinary(t)
	enterNamespace(t)
	dir := t.TempDir()
	value := filepath.Join(dir, "value")
	if err := os.WriteFile(value, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p := startIn(t, program, dir, liveConfig+"bypass: {file: "+value+", interval: 20ms}\n")
	beat := func() time.Time {
		t.Helper()
		info, err := os.Stat(value)
		if err != nil {
			t.Fatal(err)
		}
		return info.ModTime()
	}
	goesOn := func(when string) {
		t.Helper()
		from := beat()
		for deadline := time.Now().Add(20 * time.Second); !beat().After(from); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: no heartbeat", when)
			}
		}
	}
	goesOn("at first")
	p.signal(syscall.SIGSTOP)
	time.Sleep(50 * time.Millisecond)
	last := beat()
	if time.Sleep(300 * time.Millisecond); beat() != last {
		t.Error("a stopped gateway has a heartbeat")
	}
	p.signal(syscall.SIGCONT)
	goesOn("stopped for a while")
	ip(t, "link set b1 down")
	p.says("the heartbeat has stopped, so the bypass becomes active: port ", 1)
	ip(t, "link set b1 up")
	p.works("bypass")
	goesOn("without a link for a while")
	a, b := newHost(t, "a1"), newHost(t, "b1")
	end := a.load(1000)
	flows(t, "before its worker hangs", b, startTime)
	begin := time.Now()
	carryOn := hang(t, p, 0)
	p.says("the bypass becomes active: worker 0 has stopped stepping", 1)
	last = beat()
	if time.Sleep(300 * time.Millisecond); beat() != last {
		t.Error("a gateway whose worker hangs has a heartbeat")
	}
	carryOn()
	lasted := time.Since(begin)
	goesOn("after its worker hung")
	flows(t, "after its worker hung", b, recoveryTime)
	end()
	b.settle()
	b.close()
	faulted(t, "A worker that hangs", a, b, lasted)
	p.stop()
	if last = beat(); time.Since(last) > 20*time.Second {
		t.Error("no heartbeat up to the end")
	}
	p = startIn(t, program, dir, liveConfig+"bypass: {file: "+value+", interval: 20ms}\n")
	goesOn("started again")
	p.signal(syscall.SIGKILL)
	<-p.ended
	last = beat()
	if time.Sleep(300 * time.Millisecond); beat() != last {
		t.Error("a killed gateway has a heartbeat")
	}
}

// hang stops the worker on a core, and no other thread, until carryOn is called. Both are called by the test's own thread.
func hang(t *testing.T, p *process, core int) (carryOn func()) {
	t.Helper()
	worker := workerThread(t, p, core)
	if err := errors.Join(unix.PtraceSeize(worker), unix.PtraceInterrupt(worker)); err != nil {
		t.Fatalf("thread %d on core %d: %v", worker, core, err)
	}
	if _, err := unix.Wait4(worker, nil, unix.WALL, nil); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := unix.PtraceDetach(worker); err != nil {
			t.Fatal(err)
		}
	}
}

// workerThread is the ID of the worker's thread on a core.
func workerThread(t *testing.T, p *process, core int) int {
	t.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	worker, most := 0, 0
	for _, task := range tasks {
		text, err := os.ReadFile(task)
		_, switches, found := strings.Cut(string(text), "\nvoluntary_ctxt_switches:\t")
		n, id := 0, 0
		if err == nil && found && strings.Contains(string(text), fmt.Sprintf("Cpus_allowed_list:\t%d\n", core)) {
			_, _ = fmt.Sscan(switches, &n)
			_, _ = fmt.Sscan(filepath.Base(filepath.Dir(task)), &id)
		}
		if n > most { // DPDK's thread for interrupts is there, too, and sleeps
			worker, most = id, n
		}
	}
	return worker
}
