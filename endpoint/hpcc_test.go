package endpoint

import (
	"net/netip"
	"testing"

	"github.com/cnpgate/cnpgate/cnpgen"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// ipv6 is the address of the first of a test's hosts.
var ipv6 = packet.Addr{Hi: 0x20010db8 << 32, Lo: 1}

// gateway sends the notifications of tests.
var gateway = cnpgen.Gateway{
	IPv6: packet.Addr{Hi: 0x20010db8 << 32, Lo: 0xfe}, HasIPv6: true,
	IPv4: packet.AddrFrom(netip.MustParseAddr("10.255.0.1")), HasIPv4: true,
	Code: packet.DefaultCodePoints, DSCP: 48, ICRCExtensionHeaders: true,
}

var trustGateway = []netip.Prefix{netip.MustParsePrefix("2001:db8::fe/128"), netip.MustParsePrefix("10.255.0.1/32")}

// telemetry makes a bottleneck add its data to the trace of each packet and send it back in a Fast CNP, so that senders learn as much as from
// acknowledgements with INT in the paper.
func (n *network) telemetry(delay int64) {
	var out [cnpgen.MaxLen]byte
	n.narrow.pass = func(now int64, frame []byte, length int, queue int64) {
		p := parsed(frame, length)
		if p.Opcode == packet.RCAcknowledge || p.Opcode == packet.CNP {
			return
		}
		hop := Hop{Node: 7, Time: now + 1, Queue: uint32(queue), Sent: n.narrow.sent - uint64(queue), Rate: n.narrow.rate}
		if !PutHop(frame, p, &hop) {
			n.t.Fatal("a packet has no place for a hop")
		}
		target, _ := cnpgen.TargetOf(frame, p)
		size, carried := cnpgen.FastCNP(out[:], &target, &gateway, packet.FindIOAMTrace(frame, p))
		if size == 0 || carried != cnpgen.CarriesTrace {
			n.t.Fatal("no Fast CNP with a trace")
		}
		n.sent[frame[11]-1] = append(n.sent[frame[11]-1], transit{now + delay, append([]byte(nil), out[:size]...), size})
	}
}

// TestHPCCBottleneck: through one bottleneck, flows share eta, 95 %, of its rate and leave no queue, as the paper's sections 3.2 and 5 have it.
func TestHPCCBottleneck(t *testing.T) {
	const (
		rtt  = 20_000
		rate = 25 * gigabit
	)
	numbers := []int{1, 2, 4, 8}
	if testing.Short() {
		numbers = []int{1, 4}
	}
	for _, flows := range numbers {
		c := Config{
			Addr: ipv6, LineRate: rate,
			Reaction: ReactionConfig{
				Algorithm: HPCC, FastCNP: true, Trusted: trustGateway, RTT: rtt,
				HPCC: HPCCConfig{Hops: 2, Increase: 195}, // W_init * (1 - eta) / 16
			},
		}
		n := newNetworkOf(t, flows+1, c, rtt/2)
		n.narrow = &bottleneck{to: flows, rate: rate, jitter: 200}
		n.telemetry(rtt / 2)
		for i := range flows {
			qp, _ := n.connectTo(i, flows)
			n.start(i, Stream{QP: qp, Bytes: 1 << 30, At: int64(i) * 1_000_000})
		}
		const measured = 10_000_000
		n.run(int64(flows)*1_000_000 + 40_000_000)
		n.narrow.highest = 0
		start, began := n.narrow.sent, make([]uint64, flows)
		for i := range began {
			began[i] = n.hosts[i].counters.BytesSent
		}
		n.run(n.now + measured)
		used := float64(n.narrow.sent-start) * 8 * second / (measured * rate)
		least, most := 1.0, 0.0
		for i := range began {
			share := float64(n.hosts[i].counters.BytesSent-began[i]) * 8 * second / (measured * rate) * float64(flows)
			least, most = min(least, share), max(most, share)
		}
		t.Logf("%d flows use %.1f %% of the link; shares from %.2f to %.2f of the fair one; %d bytes of queue at most", flows, 100*used, least, most, n.narrow.highest)
		if used < 0.93 || used > 0.97 {
			t.Errorf("%d flows use %.3f of the link, want 0.95", flows, used)
		}
		if least < 0.8 || most > 1.2 {
			t.Errorf("shares of %d flows are %.2f to %.2f of the fair one", flows, least, most)
		}
		if n.narrow.highest > 10_000 {
			t.Errorf("%d flows leave a queue of %d bytes", flows, n.narrow.highest)
		}
	}
}

// TestHPCCTimeWraps: a trace has the low 32 bits of a node's seconds. The data after they have wrapped is later than the data before.
func TestHPCCTimeWraps(t *testing.T) {
	s := newScene(t, true, func(c *ReactionConfig) { c.Algorithm = HPCC })
	const wrap = int64(1) << 32 * second
	sent := uint64(0)
	for i, at := range []int64{wrap - 3*sceneRTT, wrap - 2*sceneRTT, wrap - sceneRTT, wrap, wrap + sceneRTT, wrap + 2*sceneRTT} {
		sent += sceneRate / 8 / 1000 // the link is fully used
		hop := Hop{Node: 7, Time: at, Queue: 1, Sent: sent, Rate: sceneRate}
		if d := s.receive(s.fast(trace(hop)), nil); d != Measured {
			t.Errorf("trace %d: %v", i, d)
		}
		if i > 0 && (s.flow.hpcc.load < 0.9 || s.flow.hpcc.load > 1.1) {
			t.Errorf("trace %d: the link's load is %g, expected about 1", i, s.flow.hpcc.load)
		}
		s.now += sceneRTT
		if again := s.receive(s.fast(trace(hop)), nil); again != Replayed {
			t.Errorf("trace %d again: %v", i, again)
		}
	}
}
