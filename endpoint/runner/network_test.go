package runner

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/control/assemble"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/stepper"
	"github.com/cnpgate/cnpgate/endpoint"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/burst/inmem"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/telemetry"
)

const (
	tick       = 20_000 // ns between two looks of each endpoint and of the gateway
	bufferSize = 4352
	epoch      = 1_000_000_000 // ns
)

// network is a sender, a gateway and a receiver in virtual time, with wires that take no time:
//
//	sender == fabric, gateway, wan == receiver
type network struct {
	t        *testing.T
	now      int64
	ends     [2]*Runner
	backends [2]*inmem.Backend
	gateway  *inmem.Backend
	plane    *dataplane.Dataplane
	time     *stepper.Stepper
	peak     uint64 // of the WAN queue, bytes
	built    int    // notifications of the gateway
	// toSender may drop what the gateway sends to the sender.
	toSender func(frame []byte) bool
}

const gatewayConfig = `gateway: {name: test, ipv4: 198.18.0.254, ipv6: "fd00:18::fe"}
ports:
  - {name: fabric, device: fabric, role: fabric, peer: wan, rate: 10Gbps, mtu: 4200}
  - {name: wan, device: wan, role: wan, peer: fabric, rate: 100Mbps, rtt: 2ms, mtu: 4200, queue_capacity: 4MB, profile: test}
profiles: {test: {k_base: 100KB}}
flows: {capacity: 1Ki}
%s
`

// notifying makes the gateway notify the sender in a format, and enables the format.
func notifying(format string) string {
	section := map[string]string{"fast-cnp": "fast_cnp", "ppfc": "ppfc"}[format]
	if section == "" {
		section = "long_haul_cnp"
	}
	return fmt.Sprintf("endpoints: [{prefix: 'fd00:18::2/128', accepts: [%s]}]\nnotifications: {%s: {enabled: true}}", format, section)
}

// over6 is a sender over IPv6 that accepts a format, and what the gateway needs for it.
func over6(kind packet.Notification) (sender Config, gateway string) {
	return sending(kind), notifying(kind.String())
}

// over4 is the same over IPv4.
func over4(kind packet.Notification) (sender Config, gateway string) {
	s := sending(kind)
	s.Addr, s.Peer, s.Trusted[0] = netip.MustParseAddr("198.18.0.2"), netip.MustParseAddr("198.18.0.1"), netip.MustParsePrefix("198.18.0.254/32")
	return s, strings.Replace(notifying(kind.String()), "fd00:18::2/128", "198.18.0.2/32", 1)
}

var (
	senderAddr   = netip.MustParseAddr("fd00:18::2")
	receiverAddr = netip.MustParseAddr("fd00:18::1")
	gatewayAddr  = netip.MustParsePrefix("fd00:18::fe/128")
	senderMAC    = [6]byte{2, 0, 0, 0x18, 0, 2}
	receiverMAC  = [6]byte{2, 0, 0, 0x18, 0, 1}
)

// sending is the sender's default configuration in the tests: 300 Mbit/s for a second.
func sending(accept ...packet.Notification) Config {
	return Config{
		Send: true, Addr: senderAddr, MAC: senderMAC, Peer: receiverAddr, PeerMAC: receiverMAC,
		QPs: 4, FirstQP: 0x100, PeerFirstQP: 0x200, PSN: 0xfff000, Verb: endpoint.Write, Message: 1 << 16, Window: 4 << 20, MTU: 4096,
		Load:    []Phase{{Rate: 300_000_000, Length: second}},
		Timeout: second / 2, RTT: 2_000_000, Trusted: []netip.Prefix{gatewayAddr}, Accept: accept, CNPInterval: 50_000,
	}
}

// answering is the matching configuration of the receiver.
func answering(s Config) Config {
	return Config{
		Addr: s.Peer, MAC: s.PeerMAC, QPs: s.QPs, FirstQP: s.PeerFirstQP, PeerFirstQP: s.FirstQP, PSN: s.PSN,
		Verb: s.Verb, Message: s.Message, Window: s.Window, MTU: s.MTU, Load: []Phase{{Rate: 1_000_000_000}}, CMPort: s.CMPort,
		Timeout: s.Timeout, RTT: s.RTT, NoCNP: true, CNPInterval: 50_000,
	}
}

// newNetwork makes the network; settings are more of the gateway's configuration.
func newNetwork(t *testing.T, sender, receiver Config, settings string) *network {
	t.Helper()
	c, err := config.Parse("test.yaml", fmt.Appendf(nil, gatewayConfig, settings))
	if err != nil {
		t.Fatal(err)
	}
	n := &network{t: t, now: epoch}
	n.gateway = newBackend(t, 2, 16384, n.fromGateway)
	if n.plane, err = assemble.Dataplane(c, assemble.Options{Backends: []burst.Backend{n.gateway}, Seed: 7}); err != nil {
		t.Fatal(err)
	}
	n.time = stepper.New(n.plane, []*inmem.Backend{n.gateway}, n.now)
	for i, c := range []Config{sender, receiver} {
		n.begin(i, c)
	}
	return n
}

// begin makes an end on a device of its own.
func (n *network) begin(i int, c Config) {
	n.t.Helper()
	n.backends[i] = newBackend(n.t, 1, 512, func(s inmem.Sent) { n.deliver(n.gateway, i, s.Octets) })
	n.backends[i].SetTime(n.now)
	var err error
	if n.ends[i], err = New(c, n.backends[i]); err != nil {
		n.t.Fatal(err)
	}
}

func newBackend(t *testing.T, ports, buffers int, sent func(inmem.Sent)) *inmem.Backend {
	t.Helper()
	b, err := inmem.New(inmem.Config{Ports: ports, Burst: 32, BufferSize: bufferSize, Memory: make([]byte, buffers*bufferSize), Sent: sent})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// fromGateway handles what the gateway sends: by its fabric port, 0, to the sender.
func (n *network) fromGateway(s inmem.Sent) {
	if s.Built {
		n.built++
	}
	if s.Port == 1 || n.toSender == nil || n.toSender(s.Octets) {
		n.deliver(n.backends[s.Port], 0, s.Octets)
	}
}

func (n *network) deliver(to *inmem.Backend, port int, frame []byte) {
	if !to.Inject(port, frame, uint32(len(frame))) {
		n.t.Fatalf("no buffer for a frame at %d ns", n.now)
	}
}

// run goes on for a time, or until the sender has finished.
func (n *network) run(ns int64) {
	for end := n.now + ns; n.now < end && !n.ends[0].Finished(); {
		n.step()
	}
}

// step goes on for a tick.
func (n *network) step() {
	n.time.SetTime(n.now)
	n.time.Step()
	n.peak = max(n.peak, n.plane.Port(1).Depth[0])
	for i, r := range n.ends {
		n.backends[i].SetTime(n.now)
		r.Step()
	}
	n.now += tick
}

// dropped is how many frames the gateway has dropped.
func (n *network) dropped() uint64 {
	s := n.plane.Port(1)
	return s.Values().Sum(telemetry.DroppedPackets)
}

// close checks that every frame is accounted for, and every buffer back.
func (n *network) close() {
	n.t.Helper()
	if err := n.plane.Values().Check(); err != nil {
		n.t.Error(err)
	}
	for i, r := range n.ends {
		s := r.Report()
		sum := s.Received.InSequence + s.Received.Duplicates + s.Received.OutOfSequence + s.Received.ACKs + s.Received.ReadResponses + s.Received.FlowControl
		var cm map[string]uint64
		if s.CM != nil {
			cm = s.CM.Received
		}
		for _, m := range []map[string]uint64{cm, s.Received.Ignored, s.Notifications.Accepted, s.Notifications.Refused} {
			for _, times := range m {
				sum += times
			}
		}
		if sum != s.Received.Packets {
			n.t.Errorf("the %s end received %d frames and accounts for %d: %+v", s.Role, s.Received.Packets, sum, s.Received)
		}
		r.Close()
		if lost := n.backends[i].InUse() - n.backends[i].Waiting(); lost != 0 {
			n.t.Errorf("the %s end didn't give back %d buffers", s.Role, lost)
		}
	}
}
