//go:build live && long && !nodpdk && !nofleet

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/fleetlink"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/internal/testkit/ontime"
)

// The gateways of these tests see one direction each:
//
//	a1 ==== a0 -- gw-1 -- b0 ==== b1      data, from 198.51.100.1 to 198.51.100.2
//	c1 ==== c0 -- gw-2 -- d0 ==== d1      ACKs, from d1

const liveFleetConfig = `gateway: {name: %NAME%, ipv4: 192.0.2.%N%}
dpdk: {hugepages: false, workers: [0], idle: backoff}
ports:
  - {name: fabric, device: "net_af_packet0,iface=%FABRIC%", role: fabric, peer: wan, rate: 10Gbps, mtu: 1500, queue_capacity: 500KB}
  - {name: wan, device: "net_af_packet1,iface=%WAN%", role: wan, peer: fabric, rate: 10Gbps, mtu: 1500, queue_capacity: 500KB}
flows: {capacity: 4Ki, paired: 4Ki}
fleet:
  site: live
  key: %DIR%/%NAME%.nk
  members: [{name: gw-1, key: %KEY1%}, {name: gw-2, key: %KEY2%}]
  embedded: true
  listen: 127.0.0.%N%:4222
  peers: ["nats://127.0.0.%OTHER%:4222"]
  episodes: {store: %DIR%/%NAME%.store}
management: {listen: "unix:%s/api.sock"}
`

const liveConnections = 200

// liveFleet is the configurations of the two gateways.
func liveFleet(t *testing.T) (texts [2]string) {
	dir := t.TempDir()
	var keys [2]string
	for i := range keys {
		pair, err := nkeys.CreateUser()
		if err != nil {
			t.Fatal(err)
		}
		seed, err := pair.Seed()
		if err != nil {
			t.Fatal(err)
		}
		if keys[i], err = pair.PublicKey(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("gw-%d.nk", i+1)), seed, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i, ends := range [][2]string{{"a0", "b0"}, {"c0", "d0"}} {
		texts[i] = strings.NewReplacer("%NAME%", fmt.Sprintf("gw-%d", i+1), "%N%", fmt.Sprint(i+1), "%OTHER%", fmt.Sprint(2-i), "%FABRIC%", ends[0],
			"%WAN%", ends[1], "%DIR%", dir, "%KEY1%", keys[0], "%KEY2%", keys[1]).Replace(liveFleetConfig)
	}
	return texts
}

// qps are the QPs of a connection.
func qps(n int) (a, b uint32) { return 1000 + 2*uint32(n), 50_000 + 7*uint32(n) }

// talk sends the packets of the connections, a request by a1 and its ACK by d1, until the returned function is called.
func talk(t *testing.T, a, d *host) (end func()) {
	stop, done := atomic.Bool{}, make(chan struct{})
	const there, back = "198.51.100.1", "198.51.100.2"
	go func() {
		defer close(done)
		for psn := uint32(0); !stop.Load(); psn++ {
			for n := range liveConnections {
				qa, qb := qps(n)
				port := packet.SourcePort(qa, qb)
				r := testkit.RoCE{Src: there, Dst: back, Opcode: packet.RCSendOnly, DestQP: qb, PSN: (psn + uint32(n)*70_001) & packet.PSNMask, SrcPort: port, Size: 128}
				_ = unix.Send(a.send, r.Frame(), 0)
				r.Src, r.Dst, r.Opcode, r.DestQP, r.Size = back, there, packet.RCAcknowledge, qa, 0
				_ = unix.Send(d.send, r.Frame(), 0)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	return func() { stop.Store(true); <-done }
}

// confirmed counts a gateway's flows from 198.51.100.1 whose source QP is confirmed, and fails if one is wrong.
func confirmed(t *testing.T, p *process) (n int) {
	t.Helper()
	all, err := api.Get[api.PairsBody](t.Context(), api.NewClient(filepath.Join(p.dir, "api.sock")), api.PairsPath+"?source_ip=198.51.100.1")
	if err != nil {
		t.Fatal(err)
	}
	for i := range all.Pairs {
		if one := &all.Pairs[i]; one.SourceQP != nil {
			n++
			if c := int(one.DestinationQP-50_000) / 7; *one.SourceQP != 1000+2*uint32(c) {
				t.Errorf("the source QP of packets to %d is said to be %d", one.DestinationQP, *one.SourceQP)
			}
		}
	}
	return n
}

// TestLiveFleet: two gateways on an asymmetric path find the pairs that one with both directions would, the first within a second, none wrong.
// What happens to the fleet doesn't change forwarding.
func TestLiveFleet(t *testing.T) {
	if ontime.Again(t) {
		return
	}
	program := liveBinary(t)
	enterNamespace(t)
	makeWire(t, "c", "d")
	ip(t, "link set lo up")
	texts := liveFleet(t)
	one, two := startWith(t, program, texts[0]), startWith(t, program, texts[1])
	a, b, d := newHost(t, "a1"), newHost(t, "b1"), newHost(t, "d1")
	eventually := func(what string, holds func() bool) time.Duration {
		t.Helper()
		begin := time.Now()
		for !holds() {
			if time.Since(begin) > 20*time.Second {
				t.Fatalf("not within 20 s: %s", what)
			}
			time.Sleep(20 * time.Millisecond)
		}
		return time.Since(begin)
	}
	status := func(p *process) *fleetlink.FleetStatus {
		s, err := api.Get[fleetlink.FleetStatus](t.Context(), api.NewClient(filepath.Join(p.dir, "api.sock")), api.FleetPath)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	state := func(p *process, name string) string {
		for _, m := range status(p).Members {
			if m.Name == name {
				return m.State
			}
		}
		return ""
	}
	eventually("both are active", func() bool { return state(one, "gw-2") == "active" && state(two, "gw-1") == "active" })
	endTalk := talk(t, a, d)
	first := eventually("a pair is confirmed", func() bool { return confirmed(t, one) > 0 })
	all := eventually("99 % of the pairs are confirmed", func() bool { return confirmed(t, one) >= liveConnections*99/100 })
	t.Logf("first pair after %v, 99 %% after %v", first, all)
	if first > time.Second {
		t.Errorf("the first pair after %v", first)
	}

	endLoad := a.load(500)
	rate := func(during func()) float64 {
		sent, arrived := a.sent.Load(), b.received.Load()
		during()
		time.Sleep(300 * time.Millisecond) // what is on its way arrives
		return float64(b.received.Load()-arrived) / float64(a.sent.Load()-sent)
	}
	quiet := rate(func() { time.Sleep(3 * time.Second) })
	for _, c := range []struct {
		name   string
		during func()
	}{
		{"flooded by a third party", func() { flood(t); time.Sleep(time.Second) }},
		{"the other gateway hangs", func() { two.signal(syscall.SIGSTOP); time.Sleep(4 * time.Second); two.signal(syscall.SIGCONT) }},
		{"the other gateway, and its server, are killed", func() { two.signal(syscall.SIGKILL); <-two.ended; time.Sleep(6 * time.Second) }},
		{"and started again", func() { two = startWith(t, program, texts[1]); time.Sleep(2 * time.Second) }},
	} {
		got := rate(c.during)
		t.Logf("%s: %.4f of the frames arrive, %.4f undisturbed; %d pairs confirmed; resident %d MB", c.name, got, quiet, confirmed(t, one), resident(t, one)>>20)
		if got < .99*quiet {
			t.Errorf("%s: %.4f of the frames arrive, %.4f undisturbed", c.name, got, quiet)
		}
	}
	eventually("gw-2 is active again", func() bool { return state(one, "gw-2") == "active" })
	eventually("99 % of the pairs are confirmed again", func() bool { return confirmed(t, one) >= liveConnections*99/100 })
	endLoad()
	endTalk()
	b.settle()
	b.close()
	faulted(t, "NATS between gateways", a, b, 0)
	two.stop()
	one.stop()
}

// flood connects to gw-1's server without and with a wrong key, and sends garbage past the protocol, for two seconds.
func flood(t *testing.T) {
	stranger, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, err := stranger.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	garbage := strings.Repeat("PUB cnpgate.live.gw-2.pairs 4\r\nabcd\r\n", 1000)
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); {
		if c, err := nats.Connect("nats://127.0.0.1:4222", nats.Nkey(public, stranger.Sign), nats.NoReconnect(), nats.Timeout(200*time.Millisecond)); err == nil {
			c.Close()
			t.Error("a stranger is connected")
		}
		s, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		if unix.Connect(s, &unix.SockaddrInet4{Port: 4222, Addr: [4]byte{127, 0, 0, 1}}) == nil {
			_, _ = unix.Write(s, []byte(garbage))
		}
		_ = unix.Close(s)
	}
}

// resident is the memory of a process, bytes.
func resident(t *testing.T, p *process) (bytes uint64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	var size, pages uint64
	_, _ = fmt.Sscan(string(text), &size, &pages)
	return pages * uint64(os.Getpagesize())
}
