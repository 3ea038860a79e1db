//go:build live && !nodpdk

package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit/ontime"
	"github.com/cnpgate/cnpgate/lossless"
)

// The hosts of these tests are in namespaces of their own:
//
//	[ host a -- a1 ]==[ a0 -- cnpgate -- b0 ]==[ b1 -- host b ]
//
// The fabric sends at five times the WAN's rate. The sender doesn't exceed flow_control.speed; reaction, response and
// xoff_limit are long enough for a shared machine without real-time scheduling, which may keep the worker from its core for 100 ms.
const (
	fabricSpeed   = 500_000_000 // bit/s
	losslessFrame = 1000        // bytes
	losslessCount = 16_000      // frames: four times what the queue holds
)

const losslessConfig = `gateway: {name: live, ipv4: 192.0.2.1}
dpdk: {hugepages: false, workers: [0], idle: backoff}
ports:
  - {name: fabric, device: "net_af_packet0,iface=a0", role: fabric, peer: wan, rate: 500Mbps, mtu: 1500, queue_capacity: 1MB%s}
  - {name: wan, device: "net_af_packet1,iface=b0", role: wan, peer: fabric, rate: 100Mbps, mtu: 1500, queue_capacity: 4MB,
     traffic_classes: [{name: all%s}]}
flows: {capacity: 1Ki}
management: {listen: "unix:%%s/api.sock"}
`

// elsewhere makes a namespace, moves an interface there, and runs f in it.
func elsewhere(t *testing.T, name string, f func()) {
	t.Helper()
	here, err := os.Open("/proc/thread-self/ns/net")
	if err == nil {
		err = unix.Unshare(unix.CLONE_NEWNET)
	}
	if err != nil {
		t.Fatal(err)
	}
	there, err := os.Open("/proc/thread-self/ns/net")
	if err = errors.Join(err, unix.Setns(int(here.Fd()), unix.CLONE_NEWNET)); err != nil {
		t.Fatal(err)
	}
	ip(t, fmt.Sprintf("link set %s netns /proc/%d/fd/%d", name, os.Getpid(), there.Fd()))
	if err := unix.Setns(int(there.Fd()), unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	withoutIPv6(t, name)
	ip(t, "link set "+name+" up")
	f()
	if err := unix.Setns(int(here.Fd()), unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	_, _ = here.Close(), there.Close()
}

// obedient is a sender that obeys the PFC frames of one priority, in user space.
type obedient struct {
	*host
	until  atomic.Int64 // when it may go on, ns since begin
	begin  time.Time
	pauses atomic.Int64
	listen int
	done   chan struct{}
	stop   atomic.Bool
}

func newObedient(t *testing.T, h *host, priority int) *obedient {
	t.Helper()
	const macControl = 0x0888 // EtherType 0x8808 in network byte order
	o := &obedient{host: h, begin: time.Now(), done: make(chan struct{})}
	var err error
	o.listen, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = errors.Join(unix.Bind(o.listen, &unix.SockaddrLinklayer{Ifindex: h.index, Protocol: macControl}),
			unix.SetsockoptTimeval(o.listen, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 20_000}))
	}
	if err != nil {
		t.Fatal(err)
	}
	go o.obey(priority)
	return o
}

func (o *obedient) obey(priority int) {
	defer close(o.done)
	b := make([]byte, 2048)
	for !o.stop.Load() {
		n, _, err := unix.Recvfrom(o.listen, b, 0)
		if err != nil || n < 60 || [6]byte(b) != packet.MACControlAddr || b[14] != 1 || b[15] != 1 {
			continue
		}
		if pfc := packet.DecodePFC(b[packet.EthernetLen:]); pfc.Enabled>>priority&1 == 1 {
			o.pauses.Add(1)
			o.until.Store(int64(time.Since(o.begin)) + lossless.PauseTime(pfc.Time[priority], fabricSpeed))
		}
	}
}

// sendAll sends frames at the fabric's speed while it may, and makes up for 2 ms at most.
func (o *obedient) sendAll(t *testing.T, frames int) {
	t.Helper()
	f := make([]byte, losslessFrame)
	copy(f, []byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5})
	const perFrame, late = int64(8e9) * (losslessFrame + 24) / fabricSpeed, int64(2e6)
	next := int64(0)
	for deadline := time.Now().Add(time.Minute); frames > 0; {
		if time.Now().After(deadline) {
			t.Fatalf("%d frames are not sent after a minute: stopped for ever", frames)
		}
		now := int64(time.Since(o.begin))
		if now < next || now < o.until.Load() {
			time.Sleep(200 * time.Microsecond)
			continue
		}
		if err := unix.Send(o.send, f, 0); err != nil {
			t.Fatal(err)
		}
		next = max(next, now-late) + perFrame
		o.sent.Add(1)
		frames--
	}
}

// TestLiveLossless: the sender loses no frame with PFC, and loses some without it.
func TestLiveLossless(t *testing.T) {
	if ontime.Again(t) {
		return
	}
	program := liveBinary(t)
	for _, c := range []struct {
		name        string
		fabric, wan string
		lossless    bool
	}{
		{"lossless", ", flow_control: {cable: 1m, reaction: 10ms, response: 15ms, xoff_limit: 10s}", ", priority: 3, lossless: true", true},
		{"not lossless", ", flow_control: {}", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			enterNamespace(t)
			var a, b *host
			var o *obedient
			elsewhere(t, "a1", func() {
				a = newHost(t, "a1")
				o = newObedient(t, a, 3)
			})
			elsewhere(t, "b1", func() { b = newHost(t, "b1") })
			p := startWith(t, program, fmt.Sprintf(losslessConfig, c.fabric, c.wan))
			o.sendAll(t, losslessCount)
			b.settle()
			o.stop.Store(true)
			<-o.done
			_ = unix.Close(o.listen)
			fabric, wan := p.stop()
			b.close()
			dropped := wan.Counters.Dropped["queue-full-bytes"] + wan.Counters.Dropped["queue-full-frames"]
			missed := fabric.Device["device_missed_packets_total"] + fabric.Device["device_no_buffer_packets_total"]
			t.Logf("sent %d, missed by the device %d, dropped %d, arrived %d, PFC frames %d", a.sent.Load(), missed, dropped, b.received.Load(), o.pauses.Load())
			if c.lossless && (dropped+missed != 0 || b.received.Load() != losslessCount || o.pauses.Load() < 2) {
				t.Errorf("expected all %d frames to arrive, and pauses", losslessCount)
			}
			if !c.lossless && (dropped == 0 || o.pauses.Load() != 0) {
				t.Error("expected frames to be dropped, and no pause")
			}
			if strings.Contains(readLog(t, p), "xoff_limit") {
				t.Error("the limit of XOff was reached")
			}
		})
	}
}

func readLog(t *testing.T, p *process) string {
	t.Helper()
	text, err := os.ReadFile(p.log)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
