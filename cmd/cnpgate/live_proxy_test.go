//go:build live && !nodpdk

package main

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit/notifications"
	"github.com/cnpgate/cnpgate/internal/testkit/ontime"
)

// Two gateways: one beside the sender, which is the proxy, and one at the congested line. Between them and behind the congested one there may be a
// tunnel:
//
//	[ endpoint send -- a1 ]==[ a0 -- proxy -- m0 ]==[ m1 -- edge -- t0 ]==[ t1 -- congested -- u0 ]==[ u1 -- edge -- b0 ]==[ b1 -- endpoint receive ]
//
// The sender accepts standard CNPs only, and the receiver sends none.
const congestedNodeConfig = `gateway: {name: congested, ipv4: 198.18.0.10, ipv6: "fd00:18::a"}
dpdk: {hugepages: false, workers: [0], idle: backoff}
ports:
  - {name: fabric, device: "net_af_packet0,iface=t1", role: fabric, peer: wan, rate: 10Gbps, mtu: 4250, queue_capacity: 1MB}
  - {name: wan, device: "net_af_packet1,iface=u0", role: wan, peer: fabric, rate: 20Mbps, rtt: 2ms, mtu: 4250, queue_capacity: 5MB, profile: live}
profiles: {live: {mode: thresholds, k_base: 100KB}}
flows: {capacity: 1Ki}
proxy: {enabled: true, senders: [{prefix: %s, proxy: "%s"}]}
management: {listen: "unix:%%s/api.sock"}
`

const proxyNodeConfig = `gateway: {name: proxy, ipv4: 198.18.0.11, ipv6: "fd00:18::b"}
dpdk: {hugepages: false, workers: [1], idle: backoff}
ports:
  - {name: fabric, device: "net_af_packet0,iface=a0", role: fabric, peer: wan, rate: 10Gbps, mtu: 4250, queue_capacity: 1MB}
  - {name: wan, device: "net_af_packet1,iface=m0", role: wan, peer: fabric, rate: 10Gbps, mtu: 4250, queue_capacity: 2MB, profile: idle}
profiles: {idle: {mode: thresholds, k_base: 1MB}}
flows: {capacity: 1Ki}
endpoints: [{prefix: %s, accepts: [standard-cnp]}]
notifications: {standard_cnp: {enabled: true}}
proxy: {enabled: true, sources: [%s]}
management: {listen: "unix:%%s/api.sock"}
`

var (
	senderMAC, receiverMAC = [6]byte{2, 0, 0, 0x18, 0, 2}, [6]byte{2, 0, 0, 0x18, 0, 1}

	proxySender = "endpoint send -i a1 --address %[1]s --mac 02:00:00:18:00:02 --peer %[2]s --trust %[2]s --peer-mac 02:00:00:18:00:01" +
		" --qps 3 --first-qp 0x123 --peer-first-qp 0x456 --mtu 4096 --rtt 2ms --rate 60Mbps --duration 1s --timeout 500ms -o json --progress"
	proxyReceiver = "endpoint receive -i b1 --address %s --mac 02:00:00:18:00:01 --no-cnp" +
		" --qps 3 --first-qp 0x456 --peer-first-qp 0x123 --mtu 4096 --rtt 2ms -o json --progress"
)

// TestLiveProxy: the congested gateway notifies the proxy, and that notifies the sender by standard CNPs of the receiver's address to the true source QP.
// scapy and tshark agree with every byte of both.
func TestLiveProxy(t *testing.T) {
	if ontime.Again(t) {
		return
	}
	program := liveBinary(t)
	for i, through := range []struct{ near, far tunnel }{
		{noTunnel, noTunnel},
		{vxlanTunnel(nearEdge, farEdge), vxlanTunnel(farEdge, nearEdge)},
		{mplsTunnel(nearEdge, farEdge, senderMAC, receiverMAC), mplsTunnel(farEdge, nearEdge, receiverMAC, senderMAC)},
	} {
		for j, c := range []struct{ version, sender, receiver, congested, proxy string }{
			{"IPv4", "198.18.0.2", "198.18.0.1", "198.18.0.10", "198.18.0.11"},
			{"IPv6", "fd00:18::2", "fd00:18::1", "fd00:18::a", "fd00:18::b"},
		} {
			if !everyVariant && i != j { // IPv4 without a tunnel, IPv6 through VXLAN
				continue
			}
			t.Run(c.version+" "+through.near.name, func(t *testing.T) {
				enterNamespace(t)
				makeWire(t, "m", "t", "u")
				setMTU(t, 4400, "a0", "a1", "m0", "m1", "t0", "t1", "u0", "u1", "b0", "b1")
				prefix := hostPrefix(c.sender)
				near := startProvider(openWire(t, "m1"), openWire(t, "t0"), through.near)
				far := startProvider(openWire(t, "b0"), openWire(t, "u1"), through.far)
				var sending *os.File
				var receiver *endpointProcess
				var heard *listener
				elsewhere(t, "a1", func() { sending, heard = namespace(t), listenForCNPs(t, "a1") })
				elsewhere(t, "b1", func() { receiver = startEndpoint(t, program, fmt.Sprintf(proxyReceiver, c.receiver)) })
				congested := startWith(t, program, fmt.Sprintf(congestedNodeConfig, prefix, c.proxy))
				proxy := startWith(t, program, fmt.Sprintf(proxyNodeConfig, prefix, hostPrefix(c.congested)))
				here := namespace(t)
				enter(t, sending)
				sender := startEndpoint(t, program, fmt.Sprintf(proxySender, c.sender, c.receiver))
				enter(t, here)
				s := sender.ends()
				if err := receiver.cmd.Process.Signal(syscall.SIGTERM); err != nil {
					t.Fatal(err)
				}
				receiver.ends()
				atCongested, congestedWAN := congested.stop()
				toSender, atProxy := proxy.stop()
				near.stop()
				far.stop()
				cnps := heard.stop()
				t.Logf("%d notifications to the proxy, %d CNPs; goodput %.1f Mbit/s, peak %d KB, dropped %v", len(near.notifications), len(cnps), s.GoodputBps/1e6,
					congestedWAN.Watermark/1000, congestedWAN.Counters.Dropped)
				sent := atCongested.Counters.Notified["proxy-notification"]
				if sent == 0 || uint64(len(near.notifications)) != sent || atProxy.Counters.ProxyAccepted+total(atProxy.Counters.ProxyRefused) != sent {
					t.Errorf("%d sent, %d on the wire; the proxy accepted %d and refused %v; expected some, and each at the proxy", sent, len(near.notifications),
						atProxy.Counters.ProxyAccepted, atProxy.Counters.ProxyRefused)
				}
				if n := uint64(len(cnps)); n == 0 || toSender.Counters.Notified["standard-cnp"] != toSender.Counters.ProxyTranslated["standard-cnp"] || toSender.Counters.Notified["standard-cnp"] != n || s.Notifications.Accepted["slowed-down"] != n {
					t.Errorf("%d CNPs on the wire, %v sent, of which %v for the congested gateway, the sender obeyed %v; expected as many", n, toSender.Counters.Notified,
						toSender.Counters.ProxyTranslated, s.Notifications.Accepted)
				}
				scapyAgrees(t, near.notifications, cnps)
				tsharkAgrees(t, cnps, c.receiver, c.sender, trueQPs(t, near.notifications))
			})
		}
	}
}

// hostPrefix is an address's own prefix, in quotes.
func hostPrefix(address string) string {
	a := netip.MustParseAddr(address)
	return `"` + netip.PrefixFrom(a, a.BitLen()).String() + `"`
}

func total(m map[string]uint64) (n uint64) {
	for _, v := range m {
		n += v
	}
	return n
}

// trueQPs are the source QPs of the flows of which proxies were notified: the sender's and the receiver's QPs count upwards together.
func trueQPs(t *testing.T, all [][]byte) map[string]bool {
	t.Helper()
	qps := map[string]bool{}
	for _, b := range all {
		var outer, inner packet.Parsed
		packet.Parse(b, uint32(len(b)), &outer)
		payload := b[int(outer.L4)+packet.UDPLen:]
		packet.ParseIP(payload[packet.ProxiedLen(payload[0]>>4):], &inner)
		if inner.Kind != packet.RoCEv2 {
			t.Fatalf("the invoking packet of % x is no RoCEv2 packet", b)
		}
		qps[fmt.Sprintf("0x%06x", inner.DestQP-0x456+0x123)] = true
	}
	return qps
}

// scapyAgrees checks checksums, lengths, addresses of the invoking packet and ICRCs.
func scapyAgrees(t *testing.T, toProxy, cnps [][]byte) {
	t.Helper()
	var input strings.Builder
	for kind, frames := range map[string][][]byte{"proxy-notification": toProxy, "standard-cnp": cnps} {
		for _, f := range frames {
			fmt.Fprintf(&input, "%s 0 ffff %x\n", kind, f)
		}
	}
	c := exec.Command("/usr/bin/python3", "-W", "ignore", "../../cnpgen/testdata/second_opinion.py")
	c.Stdin = strings.NewReader(input.String())
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("scapy: %v\n%s", err, out)
	}
}

// tsharkAgrees checks who the CNPs are from, who they are for, and which QPs they name.
func tsharkAgrees(t *testing.T, cnps [][]byte, from, to string, qps map[string]bool) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cnps.pcap")
	if err := os.WriteFile(path, notifications.Pcap(cnps), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("tshark", "-n", "-r", path, "-T", "fields", "-e", "ip.src", "-e", "ipv6.src", "-e", "ip.dst", "-e", "ipv6.dst",
		"-e", "infiniband.bth.opcode", "-e", "infiniband.bth.destqp").Output()
	if err != nil {
		t.Fatalf("tshark: %v", err)
	}
	named := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) != 4 || f[0] != from || f[1] != to || f[2] != "129" || !qps[f[3]] {
			t.Fatalf("tshark reads %q, expected a CNP from %s to %s and one of %v", line, from, to, slices.Collect(maps.Keys(qps)))
		}
		named[f[3]] = true
	}
	if len(named) == 0 {
		t.Error("tshark reads no CNP")
	}
}

// listener keeps the CNPs that come in by an interface.
type listener struct {
	wire    *wirePort
	stopped atomic.Bool
	loop    sync.WaitGroup
	cnps    [][]byte
}

func listenForCNPs(t *testing.T, name string) *listener {
	t.Helper()
	l := &listener{wire: openWire(t, name)}
	l.loop.Go(l.receive)
	return l
}

func (l *listener) receive() {
	b := make([]byte, 16384)
	for {
		n, _, err := unix.Recvfrom(l.wire.socket, b, 0)
		if err != nil {
			if l.stopped.Load() && errors.Is(err, unix.EAGAIN) {
				return
			}
			continue
		}
		var p packet.Parsed
		if packet.Parse(b[:n], uint32(n), &p); p.Opcode == packet.CNP && p.Kind == packet.RoCEv2 {
			l.cnps = append(l.cnps, slices.Clone(b[:n]))
		}
	}
}

// stop returns the CNPs, once none waits any more.
func (l *listener) stop() [][]byte {
	l.stopped.Store(true)
	l.loop.Wait()
	_ = unix.Close(l.wire.socket)
	return l.cnps
}
