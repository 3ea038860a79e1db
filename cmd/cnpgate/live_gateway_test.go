//go:build live && !nodpdk

package main

import (
	"bytes"
	be "encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/internal/testkit/program"
)

// The tests here run the gateway between two veth pairs in a network namespace of the test's thread, which ends with it:
//
//	host a -- a1 ==== a0 -- cnpgate -- b0 ==== b1 -- host b

// enterNamespace puts the test's thread, and what it starts, into a new network namespace with the veth pairs.
func enterNamespace(t *testing.T) {
	t.Helper()
	runtime.LockOSThread() // never unlocked: Go ends the thread with the test
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatalf("a network namespace: %v (root is needed)", err)
	}
	makeWire(t, "a", "b")
}

func makeWire(t *testing.T, sides ...string) {
	t.Helper()
	addWire(t, sides...)
	switchOn(t, sides...)
}

func addWire(t *testing.T, sides ...string) {
	t.Helper()
	var lines []string
	for _, side := range sides {
		lines = append(lines, fmt.Sprintf("link add %s0 type veth peer name %s1", side, side))
	}
	ip(t, lines...)
	withoutIPv6(t, ends(sides)...)
}

// ends are the interfaces of wires.
func ends(sides []string) (names []string) {
	for _, side := range sides {
		names = append(names, side+"0", side+"1")
	}
	return names
}

// withoutIPv6 keeps the kernel from sending by interfaces in the thread's namespace.
func withoutIPv6(t *testing.T, interfaces ...string) {
	t.Helper()
	for _, name := range interfaces {
		if err := os.WriteFile("/proc/sys/net/ipv6/conf/"+name+"/disable_ipv6", []byte("1"), 0); err != nil {
			t.Fatal(err)
		}
	}
}

// switchOn returns when all ends have a link, which the kernel says a little later.
func switchOn(t *testing.T, sides ...string) {
	t.Helper()
	var lines []string
	for _, name := range ends(sides) {
		lines = append(lines, "link set "+name+" up")
	}
	ip(t, lines...)
	for _, name := range ends(sides) {
		for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
			if i, err := net.InterfaceByName(name); err == nil && i.Flags&net.FlagRunning != 0 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s has no link", name)
			}
		}
	}
}

// ip carries out lines of ip(8), in one process.
func ip(t *testing.T, lines ...string) {
	t.Helper()
	c := exec.Command("ip", "-batch", "-")
	c.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("ip %q: %v\n%s", lines, err, out)
	}
}

// setMTU sets the MTU of interfaces.
func setMTU(t *testing.T, mtu int, interfaces ...string) {
	t.Helper()
	var lines []string
	for _, name := range interfaces {
		lines = append(lines, fmt.Sprintf("link set %s mtu %d", name, mtu))
	}
	ip(t, lines...)
}

func shell(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// liveBinary is the gateway with DPDK and its page, one for all tests and their attempts.
func liveBinary(t *testing.T) string {
	t.Helper()
	path := filepath.Join(filepath.Dir(binary), "cnpgate-live")
	if _, err := os.Stat(path); err == nil {
		return path
	}
	program.Put(t, "../..", path+".new")
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	return path
}

const liveConfig = `gateway: {name: live, ipv4: 192.0.2.1}
dpdk: {hugepages: false, workers: [0], idle: backoff}
ports:
  - {name: fabric, device: "net_af_packet0,iface=a0", role: fabric, peer: wan, rate: 10Gbps, mtu: 1500, queue_capacity: 500KB}
  - {name: wan, device: "net_af_packet1,iface=b0", role: wan, peer: fabric, rate: 10Gbps, mtu: 1500, queue_capacity: 500KB}
flows: {capacity: 1Ki}
management: {listen: "unix:%s/api.sock"}
`

// process is a gateway that runs.
type process struct {
	t      *testing.T
	dir    string
	cmd    *exec.Cmd
	log    string
	report string
	ended  chan error
}

func startGateway(t *testing.T, program string) *process {
	t.Helper()
	return startWith(t, program, liveConfig)
}

func startWith(t *testing.T, program, text string) *process {
	t.Helper()
	return startIn(t, program, t.TempDir(), text)
}

// startIn starts a gateway whose files are in a folder.
func startIn(t *testing.T, program, dir, text string) *process {
	t.Helper()
	config := filepath.Join(dir, "c.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, text, dir), 0o600); err != nil {
		t.Fatal(err)
	}
	return startFile(t, program, dir, config)
}

// startFile starts a gateway with a configuration file. Its log and report are in a folder.
func startFile(t *testing.T, program, dir, config string) *process {
	t.Helper()
	return startReporting(t, program, dir, config, filepath.Join(dir, "report.json"))
}

// startReporting is startFile with a path of the report.
func startReporting(t *testing.T, program, dir, config, report string) *process {
	t.Helper()
	p := &process{t: t, dir: dir, log: filepath.Join(dir, "log"), report: report, ended: make(chan error, 1)}
	log, err := os.Create(p.log)
	if err != nil {
		t.Fatal(err)
	}
	p.cmd = exec.Command(program, "run", "--config", config, "--report", p.report)
	p.cmd.Stderr = log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.ended <- p.cmd.Wait() }()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		if log, _ := os.ReadFile(p.log); bytes.Contains(log, []byte(`"call":`)) { // of the sandbox
			t.Errorf("the gateway made a system call that its sandbox does not know:\n%s", log)
		}
	})
	p.says(`"message":"The gateway is forwarding."`, 1)
	p.says(`"message":"The link is up."`, 2)
	return p
}

// says waits until the log has a text so often.
func (p *process) says(text string, times int) {
	p.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		b, err := os.ReadFile(p.log)
		if err == nil && strings.Count(string(b), text) >= times {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("the log has %q %d times, expected %d:\n%s", text, strings.Count(string(b), text), times, b)
		}
	}
}

// works waits until the log says that a service works again.
func (p *process) works(service string) {
	p.t.Helper()
	line := regexp.MustCompile(`"service":"` + regexp.QuoteMeta(service) + `".*"message":"The service works again\."`)
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		b, err := os.ReadFile(p.log)
		if err == nil && line.Match(b) {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("%s doesn't work again:\n%s", service, b)
		}
	}
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

type portReport struct {
	Counters struct {
		Received  uint64            `json:"received_packets_total"`
		Forwarded uint64            `json:"forwarded_packets_total"`
		Dropped   map[string]uint64 `json:"dropped_packets_total"`
		Notified  map[string]uint64 `json:"notifications_sent_total"`

		ProxyAccepted   uint64            `json:"proxy_notifications_accepted_total"`
		ProxyRefused    map[string]uint64 `json:"proxy_notifications_refused_total"`
		ProxyTranslated map[string]uint64 `json:"proxy_notifications_translated_total"`
	} `json:"counters"`
	Watermark uint64            `json:"queue_watermark_bytes"`
	Device    map[string]uint64 `json:"device"`
}

// stop ends the gateway in order, and returns its reports of the fabric port and the WAN port.
func (p *process) stop() (fabric, wan portReport) {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	if err := <-p.ended; err != nil {
		log, _ := os.ReadFile(p.log)
		p.t.Errorf("the gateway: %v\n%s", err, log)
	}
	text, err := os.ReadFile(p.report)
	var r struct{ Ports []portReport }
	if err := errors.Join(err, json.Unmarshal(text, &r)); err != nil || len(r.Ports) != 2 {
		p.t.Fatalf("the report: %v\n%s", err, text)
	}
	return r.Ports[0], r.Ports[1]
}

// health asks the gateway's API.
func (p *process) health() (status int, body string) {
	p.t.Helper()
	c, err := net.Dial("unix", filepath.Join(p.dir, "api.sock"))
	if err != nil {
		p.t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "GET /v1/health HTTP/1.0\r\nHost: gateway\r\n\r\n")
	var b bytes.Buffer
	if _, err := b.ReadFrom(c); err != nil {
		p.t.Fatal(err)
	}
	_, _ = fmt.Sscanf(b.String(), "HTTP/1.0 %d", &status)
	return status, b.String()
}

// turns waits until the API's health has a status and a text.
func (p *process) turns(status int, text string) error {
	p.t.Helper()
	for deadline := time.Now().Add(recoveryTime); ; time.Sleep(5 * time.Millisecond) {
		got, body := p.health()
		if got == status && strings.Contains(body, text) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("health: %s; expected %d and %q", body, status, text)
		}
	}
}

// host is one end of the wire: it counts what it sends and receives.
type host struct {
	send, listen   int // packet sockets
	index          int // of the interface
	sent, received atomic.Uint64
	stop           atomic.Bool
	done           chan struct{}
	order          []uint64      // the numbers of the received frames
	silence        time.Duration // the longest between two of them
}

func newHost(t *testing.T, name string) *host {
	t.Helper()
	i, err := net.InterfaceByName(name)
	if err != nil {
		t.Fatal(err)
	}
	h := &host{index: i.Index, done: make(chan struct{})}
	h.send, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.Bind(h.send, &unix.SockaddrLinklayer{Ifindex: i.Index})
	}
	if err != nil {
		t.Fatal(err)
	}
	// Of all interfaces: the kernel takes a socket that is bound to one off it while it is down, and puts it back a little late.
	h.listen, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0x0300)
	if err == nil {
		err = errors.Join(
			unix.SetsockoptInt(h.listen, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
			unix.SetsockoptInt(h.listen, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 256<<20),
			unix.SetsockoptTimeval(h.listen, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 50_000}))
	}
	if err != nil {
		t.Fatal(err)
	}
	go h.receive()
	t.Cleanup(h.close)
	return h
}

// receive counts the test's frames until the host is closed and nothing waits.
func (h *host) receive() {
	defer close(h.done)
	b := make([]byte, 16384)
	var last time.Time
	for {
		n, from, err := unix.Recvfrom(h.listen, b, 0)
		if l, ok := from.(*unix.SockaddrLinklayer); ok && err == nil && l.Ifindex == h.index && n > 22 && b[12] == 0x88 && b[13] == 0xb5 {
			h.order = append(h.order, be.BigEndian.Uint64(b[14:]))
			if now := time.Now(); !last.IsZero() {
				h.silence, last = max(h.silence, now.Sub(last)), now
			} else {
				last = now
			}
			h.received.Add(1)
		}
		if err != nil && h.stop.Load() {
			return
		}
	}
}

// settle waits until nothing arrives any more.
func (h *host) settle() {
	for before := uint64(0); before != h.received.Load(); time.Sleep(200 * time.Millisecond) {
		before = h.received.Load()
	}
}

func (h *host) close() {
	if !h.stop.Swap(true) {
		<-h.done
		_, _ = unix.Close(h.send), unix.Close(h.listen)
	}
}

// load sends numbered frames of a size, some thousand a second, until the returned function is called.
func (h *host) load(size int) (end func()) {
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		f := make([]byte, size)
		copy(f, []byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5})
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				for range 8 {
					be.BigEndian.PutUint64(f[14:], h.sent.Load())
					if unix.Send(h.send, f, 0) == nil {
						h.sent.Add(1)
					}
				}
			}
		}
	}()
	return func() {
		close(stop)
		<-done
	}
}

const (
	startTime    = 10 * time.Second // from a gateway's start until it forwards
	recoveryTime = 2 * time.Second  // from the end of a disturbance until it forwards again
)

// flows waits until frames arrive at a host, and fails if that takes longer than it may.
func flows(t *testing.T, what string, h *host, most time.Duration) {
	t.Helper()
	begin := time.Now()
	for before := h.received.Load(); h.received.Load() < before+10; time.Sleep(time.Millisecond) {
		if time.Since(begin) > most {
			t.Fatalf("%s: nothing is forwarded for %v", what, most)
		}
	}
	t.Logf("%s: forwards after %v", what, time.Since(begin).Round(time.Millisecond))
}
