//go:build live && !nodpdk

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nkeys"
	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/internal/testkit/ontime"
)

// taken listens at a port of the loopback address, until the returned function is called.
func taken(t *testing.T) (address string, free func()) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String(), func() { _ = l.Close() }
}

// full is a file system without space for a file's contents.
func full(t *testing.T) (folder string) {
	t.Helper()
	folder = t.TempDir()
	shell(t, "mount", "-t", "tmpfs", "-o", "size=4k", "none", folder)
	t.Cleanup(func() { shell(t, "umount", "-l", folder) })
	put(t, folder, "filler", make([]byte, 4096))
	return folder
}

// TestLiveServices: a gateway forwards without each of its services, at the start and at a takeover; show health says which one doesn't work and why, and it works once
// it can.
func TestLiveServices(t *testing.T) {
	program := liveBinary(t)
	enterNamespace(t)
	ip(t, "link set lo up")
	dir := t.TempDir()
	metrics, freeMetrics := taken(t)
	page, freePage := taken(t)
	other, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "api.sock"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(dir, "missing")
	text := strings.Replace(fmt.Sprintf(liveConfig, dir), "management: {", fmt.Sprintf("management: {metrics: %q, web: {listen: %q}, ipfix: \"192.0.2.99:4739\", ", metrics, page), 1) +
		"bypass: {file: " + missing + ", interval: 20ms}\n" +
		"proxy: {enabled: true, ospf: {api: \"127.0.0.1:1\", accept: [{prefix: 10.3.0.0/16}]}, ospf6: {socket: " + missing + ", accept: [{prefix: \"2001:db8::/32\"}]},\n" +
		"  bgp: {as: 65001, router_id: 192.0.2.9, ipv4: 198.51.100.9, peers: [{address: 192.0.2.10, as: 65002, password_file: " + missing + "}]}}\n" +
		"fleet: {site: dc, key: " + missing + ", members: [{name: live, key: " + public + "}], embedded: true, listen: \"127.0.0.1:4222\"}\n"
	put(t, dir, "c.yaml", []byte(text))
	first := startStandby(t, program, dir)
	without := map[string]string{
		"management.listen": "another process answers", "management.metrics": "address already in use", "management.web": "address already in use",
		"bypass": "no such file", "proxy.ospf": "connection refused", "proxy.ospf6": "no such file", "proxy.bgp": "no such file", "fleet": "no such file",
		"management.ipfix": "network is unreachable",
	}
	for takesOver := range 2 {
		p := first
		if takesOver > 0 {
			p = startStandby(t, program, dir)
			p.says(`"message":"The gateway is standing by."`, 1)
			first.signal(syscall.SIGKILL)
			<-first.ended
		}
		p.says(`"message":"The gateway is forwarding."`, 1)
		a, b := newHost(t, "a1"), newHost(t, "b1")
		end := a.load(1000)
		flows(t, "without its services", b, startTime)
		for service := range without {
			p.says(`"service":"`+service+`"`, 1)
		}
		end()
		b.settle()
		b.close()
		faulted(t, "Address of `listen`", a, b, 0)
		if groupOf("/etc/group", operators) < 0 {
			p.says("There is no group cnpgate", 1)
			faulted(t, "Group `cnpgate` missing", a, b, 0)
		}
		first = p
	}
	_ = other.Close()
	first.works("management.listen")
	got := cnpgate(t, dir, "show", "health", "-o", "json", "--socket", filepath.Join(dir, "api.sock"))
	var health api.Health
	if err := json.Unmarshal([]byte(got.stdout), &health); err != nil || got.status != 0 || !health.Healthy {
		t.Errorf("%v: %+v", err, got)
	}
	delete(without, "management.listen")
	for service, why := range without {
		if !strings.Contains(health.Services[service], why) {
			t.Errorf("%s: %q, expected %q", service, health.Services[service], why)
		}
	}
	freeMetrics()
	freePage()
	put(t, dir, "missing", nil)
	a, b := newHost(t, "a1"), newHost(t, "b1")
	defer a.load(1000)()
	for _, service := range []string{"management.metrics", "management.web", "bypass"} {
		first.works(service)
	}
	flows(t, "with them", b, recoveryTime)
	first.stop()
}

// TestLiveLogStandsStill: with a log whose reader stands still, the gateway forwards, answers and stops.
func TestLiveLogStandsStill(t *testing.T) {
	program := liveBinary(t)
	enterNamespace(t)
	dir := t.TempDir()
	put(t, dir, "c.yaml", fmt.Appendf(nil, liveConfig, dir))
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if _, err := unix.FcntlInt(writer.Fd(), unix.F_SETPIPE_SZ, 4096); err != nil {
		t.Fatal(err)
	}
	if _, err := writer.Write(make([]byte, 4096)); err != nil { // not a byte more
		t.Fatal(err)
	}
	c := exec.Command(program, "run", "--config", filepath.Join(dir, "c.yaml"))
	c.Stderr = writer
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	_ = writer.Close()
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	t.Cleanup(func() { _ = c.Process.Kill() })
	a, b := newHost(t, "a1"), newHost(t, "b1")
	end := a.load(1000)
	flows(t, "with a log that nobody reads", b, startTime)
	p := &process{t: t, dir: dir}
	for deadline := time.Now().Add(startTime); ; time.Sleep(5 * time.Millisecond) { // its socket comes a little later
		if _, err := os.Stat(filepath.Join(dir, "api.sock")); err == nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	if err := p.turns(200, `"healthy":true`); err != nil {
		t.Error(err)
	}
	end()
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("the gateway doesn't stop")
	}
}

// TestLiveFullDisk: a disk without space keeps the gateway neither from forwarding nor from stopping in order; the exit status says that there is no report.
func TestLiveFullDisk(t *testing.T) {
	program := liveBinary(t)
	enterNamespace(t)
	p := startReporting(t, program, t.TempDir(), writeConfig(t, liveConfig), filepath.Join(full(t), "report.json"))
	a, b := newHost(t, "a1"), newHost(t, "b1")
	end := a.load(1000)
	flows(t, "on a full disk", b, startTime)
	end()
	b.settle()
	b.close()
	faulted(t, "Disk full", a, b, 0)
	p.signal(syscall.SIGTERM)
	var status *exec.ExitError
	if err := <-p.ended; !errors.As(err, &status) || status.ExitCode() != 1 {
		t.Errorf("the end: %v; expected exit status 1", err)
	}
}

// writeConfig writes a configuration into a folder of its own.
func writeConfig(t *testing.T, text string) (path string) {
	t.Helper()
	dir := t.TempDir()
	put(t, dir, "c.yaml", fmt.Appendf(nil, text, dir))
	return filepath.Join(dir, "c.yaml")
}

// TestLiveExitStatus: a configuration with a mistake ends a start with a status of its own, after which the unit doesn't start again; a device that isn't there yet with
// another, after which it does, until the device is there.
func TestLiveExitStatus(t *testing.T) {
	program := liveBinary(t)
	enterNamespace(t)
	ip(t, "link del b0")
	for text, want := range map[string]int{strings.Replace(liveConfig, "10Gbps", "fast", 1): refused, liveConfig: 1} {
		out, err := exec.Command(program, "run", "--config", writeConfig(t, text)).CombinedOutput()
		var status *exec.ExitError
		if !errors.As(err, &status) || status.ExitCode() != want {
			t.Errorf("%v, expected exit status %d:\n%s", err, want, out)
		}
	}
	makeWire(t, "b")
	a, b := newHost(t, "a1"), newHost(t, "b1")
	end := a.load(1000)
	begin := time.Now()
	p := startGateway(t, program)
	flows(t, "once the interface is there", b, startTime)
	took := time.Since(begin)
	end()
	b.settle()
	b.close()
	record(t, "A device or memory", cost{deliveryOf(b.order, a.sent.Load()).lost, took})
	p.stop()
}

// TestLiveStarved: of a worker that another program keeps from its core, the log and the health say so, and the watchdog doesn't blame it.
func TestLiveStarved(t *testing.T) {
	if ontime.Again(t) {
		return
	}
	program := liveBinary(t)
	enterNamespace(t)
	p := startGateway(t, program)
	a, b := newHost(t, "a1"), newHost(t, "b1")
	end := a.load(1000)
	flows(t, "at first", b, startTime)
	worker := workerThread(t, p, 0)
	policy, err := unix.SchedGetAttr(worker, 0)
	if err == nil {
		err = unix.SchedSetAttr(worker, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: schedIdle}, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	var stop atomic.Bool
	done := make(chan struct{})
	begin := time.Now()
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: Go ends the thread with the goroutine
		var core unix.CPUSet
		core.Set(0)
		if err := unix.SchedSetaffinity(0, &core); err != nil {
			t.Error(err)
		}
		for !stop.Load() {
		}
	}()
	p.says(`"cause":"another thread had its core for `, 1)
	stop.Store(true)
	<-done
	if err := unix.SchedSetAttr(worker, policy, 0); err != nil { // on a busy machine, the others would go on keeping it from its core
		t.Fatal(err)
	}
	lasted := time.Since(begin)
	flows(t, "afterwards", b, recoveryTime)
	end()
	b.settle()
	b.close()
	faulted(t, "A worker kept from its core", a, b, lasted)
	p.stop()
}

// schedIdle is SCHED_IDLE of sched(7): a thread that runs when no other wants to.
const schedIdle = 5

// TestLiveConcerns: of what harms a gateway although it forwards, check and the log say so, and show health does while it lasts.
func TestLiveConcerns(t *testing.T) {
	if ontime.Again(t) {
		return
	}
	program := liveBinary(t)
	enterNamespace(t)
	ip(t, "link add br0 type bridge")
	ip(t, "link set a0 master br0")
	text := liveConfig + "endpoints: [{prefix: 10.1.0.0/16, accepts: [standard-cnp]}]\n"
	const bridged, swapped = "a0 belongs to br0", "fabric and WAN look swapped"
	if out, err := exec.Command(program, "check", writeConfig(t, text)).CombinedOutput(); err != nil || !strings.Contains(string(out), "warning: port fabric: "+bridged) {
		t.Errorf("%v: %s", err, out)
	}
	p := startWith(t, program, text)
	p.says(bridged, 1)
	if err := p.turns(200, bridged); err != nil {
		t.Error(err)
	}
	ip(t, "link set a0 nomaster")
	b := newHost(t, "b1")
	for qp := range uint32(8) { // an endpoint sends from the WAN
		f := testkit.RoCE{Src: "10.1.0.1", Dst: "10.2.0.1", DestQP: 100 + qp, SourceQP: qp, Opcode: packet.RCWriteMiddle, Size: 500}.Frame()
		if err := unix.Send(b.send, f, 0); err != nil {
			t.Fatal(err)
		}
	}
	p.says(strings.ToUpper(swapped[:1])+swapped[1:], 1)
	if _, body := p.health(); !strings.Contains(body, swapped) || strings.Contains(body, bridged) {
		t.Errorf("health: %s", body)
	}
	p.stop()
}

// TestLiveConfigFile: a reload by the file's name also moves the socket; after a reload that went back, health and metric say that the file differs.
func TestLiveConfigFile(t *testing.T) {
	if ontime.Again(t) {
		return
	}
	program := liveBinary(t)
	enterNamespace(t)
	p := startGateway(t, program)
	file := filepath.Join(p.dir, "c.yaml")
	was, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	moved := strings.Replace(string(was), "api.sock", "other.sock", 1)
	put(t, p.dir, "c.yaml", []byte(moved))
	if got := cnpgate(t, p.dir, "reload", "--config", file); got.status != 0 || !strings.Contains(got.stdout, "reloaded; changed: management.listen") {
		t.Fatalf("%+v", got)
	}
	ask := func(line ...string) ran {
		t.Helper()
		return within(t, p.dir, append(line, "--socket", filepath.Join(p.dir, "other.sock"))...)
	}
	if got := ask("show", "health"); got.status != 0 || got.stdout != "healthy\n" {
		t.Errorf("%+v", got)
	}
	put(t, p.dir, "c.yaml", []byte(strings.Replace(moved, "500KB", "400KB", 1)))
	for _, line := range [][]string{{"reload", "--confirm", "60s"}, {"reload", "--revert"}} {
		if got := ask(line...); got.status != 0 {
			t.Fatalf("%v: %+v", line, got)
		}
	}
	p.says("differs from the configuration in force", 1)
	if got := ask("show", "health"); got.status != 0 || !strings.Contains(strings.Join(strings.Fields(got.stdout), " "), "differs from the configuration in force, and the next start uses the file") {
		t.Errorf("%+v", got)
	}
	if got := ask("show", "counters"); !strings.Contains(got.stdout, "config_file_differs") {
		t.Errorf("%+v", got)
	}
	put(t, p.dir, "c.yaml", []byte(moved))
	if got := ask("reload"); got.status != 0 {
		t.Errorf("%+v", got)
	}
	for deadline := time.Now().Add(recoveryTime); ; time.Sleep(5 * time.Millisecond) {
		if got := ask("show", "health"); got.stdout == "healthy\n" {
			break
		} else if time.Now().After(deadline) {
			t.Errorf("%+v", got)
			break
		}
	}
	p.stop()
}
