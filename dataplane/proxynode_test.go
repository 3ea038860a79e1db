package dataplane_test

import (
	"bytes"
	"encoding/binary"
	"maps"
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/cnpgen"
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/host"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/proxy"
)

// A congested node's addresses.
const congested4, congested6 = "203.0.113.7", "2001:db8:7::7"

// asking is a notification to the gateway as a proxy, by which a congested node asks to notify the sender of a data packet.
func asking(t testkit.T, frame []byte, to string, level uint8) []byte {
	t.Helper()
	var p packet.Parsed
	packet.Parse(frame, uint32(len(frame)), &p)
	target, ok := cnpgen.TargetOf(frame, &p)
	g := cnpgen.Gateway{IPv4: address(congested4), IPv6: address(congested6), HasIPv4: true, HasIPv6: true, Code: packet.DefaultCodePoints}
	out := make([]byte, cnpgen.MaxLen)
	n := cnpgen.ProxyNotification(out, &target, &g, frame, &p, address(to), level)
	if !ok || n == 0 {
		t.Fatalf("no notification to a proxy")
	}
	return out[:n]
}

// ownOf is the gateway's address of an IP version.
func ownOf(v6 bool) string {
	if v6 {
		return own6
	}
	return own4
}

// proxyFor is a policy of a proxy without congestion of its own, whose senders accept one format.
func proxyFor(format packet.Notification) *dataplane.Policy {
	p := proxying(notifying(grant("fd00:18::/32", format), grant("198.18.0.0/16", format)))
	for f := range p.Who.Enabled {
		p.Who.Enabled[f] = true
	}
	for i := range p.Ports {
		p.Ports[i].Thresholds = congestion.Thresholds{KMin: 1 << 40, KMax: 1 << 41}
	}
	return p
}

func formatCounter(group counters.Counter, f packet.Notification) counters.Counter {
	return group + counters.Counter(f)
}

// refused is a port's count of each refusal, by name, without the zeros.
func refused(r *testkit.Rig, port int) map[string]uint64 {
	out := map[string]uint64{}
	for n := range proxy.Refusals {
		if v := r.Count(port, counters.ProxyRefusedFirst+counters.Counter(n)); v > 0 {
			out[(n + 1).String()] = v
		}
	}
	return out
}

// TestProxyTranslates: a notification to the gateway becomes, at the flow's next data packet, the notification that the sender accepts, by the way and with
// the addresses of that packet.
func TestProxyTranslates(t *testing.T) {
	for _, c := range []struct {
		format packet.Notification
		v6     bool
		kind   packet.Notification
	}{
		{packet.StandardCNP, false, packet.StandardCNP}, {packet.StandardCNP, true, packet.StandardCNP},
		{packet.FastCNP, true, packet.FastCNP},
		{packet.LongHaulCNP, false, packet.ExtendedCNP}, {packet.LongHaulCNP, true, packet.ExtendedCNP},
		{packet.LongHaulCNPICMPv6, true, packet.LongHaulCNPICMPv6},
		{packet.PPFC, false, packet.ExtendedCNP}, {packet.PPFC, true, packet.ExtendedCNP},
	} {
		for _, port := range []int{fabric, wan} {
			s := newScene(t, proxyFor(c.format), nil)
			f := data(c.v6, 3)
			s.arrive(f.Frame())
			s.arriveAt(port, asking(t, f.Frame(), ownOf(c.v6), 5))
			if n := s.Plane.Worker(0).Queued(); n != 1 {
				t.Fatalf("%v: %d frames queued before the next data packet", c.format, n)
			}
			moved := f.Frame() // the sender's and the next hop's MAC addresses have changed
			copy(moved, []byte{2, 0xaa, 0, 0, 0, 1, 2, 0xbb, 0, 0, 0, 2})
			s.arrive(moved, f.Frame())
			notes := s.finish()
			if len(notes) != 1 {
				t.Fatalf("%v: %d notifications", c.format, len(notes))
			}
			kind, p := kindOf(notes[0])
			if kind != c.kind || p.Dst != address(f.Src) || !bytes.Equal(notes[0].Octets[:12], []byte{2, 0xbb, 0, 0, 0, 2, 2, 0xaa, 0, 0, 0, 1}) {
				t.Errorf("%v: notification % x", c.format, notes[0].Octets)
			}
			switch want := address(ownOf(c.v6)); {
			case c.format == packet.StandardCNP && (p.Src != address(f.Dst) || p.DestQP != sourceQP+3):
				t.Errorf("a standard CNP from %v to QP %d", p.Src, p.DestQP)
			case c.format != packet.StandardCNP && p.Src != want:
				t.Errorf("%v from %v", c.format, p.Src)
			}
			got := []uint64{s.Count(port, counters.ConsumedProxyNotification), s.Count(port, counters.ProxyAccepted), s.Count(port, counters.ReceivedFirst+counters.Counter(packet.ProxyNotification)),
				s.Count(fabric, formatCounter(counters.ProxyTranslatedFirst, c.format)), s.Count(fabric, counters.TriggeredFirst+congestion.Causes-1)}
			for i, n := range got {
				if n != 1 {
					t.Errorf("%v by port %d: counter %d of consumed, accepted, received, translated and triggered is %d", c.format, port, i, n)
				}
			}
			if len(refused(s.Rig, port)) != 0 {
				t.Errorf("refused %v", refused(s.Rig, port))
			}
		}
	}
}

// TestProxyLevels: the request is that of the ladder at the level.
func TestProxyLevels(t *testing.T) {
	p := proxyFor(packet.LongHaulCNP)
	p.Ports[wan].Ladder, p.Ports[wan].RTT = congestion.DefaultLadder, 3*ms
	for level, want := range []congestion.Decision{
		{Action: congestion.Notify, Level: 0, Rung: 1}, {Action: congestion.Notify, Level: 36, Rung: 1}, {Action: congestion.Notify, Level: 73, Rung: 1},
		{Action: congestion.RateReduce, Level: 109, Rung: 2, Parameter: 15}, {Action: congestion.RateReduce, Level: 146, Rung: 2, Parameter: 15},
		{Action: congestion.RateReduce, Level: 182, Rung: 3, Parameter: 30}, {Action: congestion.RateReduce, Level: 219, Rung: 4, Parameter: 50},
		{Action: congestion.Pause, Level: 255, Rung: 5, Parameter: 3000},
	} {
		s := newScene(t, p, nil)
		f := data(true, 0)
		s.arrive(f.Frame())
		s.arriveAt(wan, asking(t, f.Frame(), own6, uint8(level)))
		s.arrive(f.Frame())
		records := s.records()
		if len(records) != 1 || records[0].Decision != want || records[0].Cause != congestion.ByProxy {
			t.Errorf("level %d: %+v, expected %+v", level, records, want)
		}
		s.finish()
	}
}

// TestProxyTags: the flow has the notification's VLAN tags; a flow in another VLAN, which may be another tenant's, is not it. A notification without tags
// is about the only such flow, in whatever VLAN.
func TestProxyTags(t *testing.T) {
	for _, c := range []struct {
		name       string
		flow, note []uint32
		accepted   bool
	}{
		{"same tags", []uint32{0x81000005}, []uint32{0x81006005}, true},
		{"tagged notification of an untagged flow", nil, []uint32{0x81000005}, false},
		{"untagged notification of a tagged flow", []uint32{0x81000005}, nil, true},
		{"another VLAN", []uint32{0x81000005}, []uint32{0x81000006}, false},
		{"another TPID", []uint32{0x88a80005}, []uint32{0x81000005}, false},
	} {
		f, asked := data(false, 0), data(false, 0)
		f.Tags, asked.Tags = c.flow, c.note
		s := newScene(t, proxyFor(packet.FastCNP), nil)
		s.arrive(f.Frame())
		s.arriveAt(wan, asking(t, asked.Frame(), own4, 5))
		if got := s.Count(wan, counters.ProxyAccepted) == 1; got != c.accepted || !got && refused(s.Rig, wan)["flow-unknown"] != 1 {
			t.Errorf("%s: accepted %v, refused %v", c.name, got, refused(s.Rig, wan))
		}
		s.Close(t)
	}
}

// TestProxyAcrossWorkers: a notification that arrives at another worker than its flow is translated by the flow's.
func TestProxyAcrossWorkers(t *testing.T) {
	s := newScene(t, proxyFor(packet.StandardCNP), func(s *testkit.Setup) { s.Workers = 3 })
	for flow := range uint32(9) {
		f, at := data(false, flow).Frame(), int(flow%3)
		s.InjectAt(t, at, fabric, f)
		s.Settle()
		s.InjectAt(t, int(flow/3), wan, asking(t, f, own4, 5))
		s.Settle()
		s.InjectAt(t, at, fabric, f)
		s.Settle()
	}
	s.Drain()
	if n := s.Count(wan, counters.ProxyAccepted); n != 9 {
		t.Errorf("%d accepted, expected 9", n)
	}
	got := map[uint32]int{}
	for worker, sent := range s.Sent {
		for _, n := range sent {
			if _, p := kindOf(n); n.Built {
				if got[p.DestQP]++; int(p.DestQP-sourceQP)%3 != worker {
					t.Errorf("worker %d has notified the sender with QP %d", worker, p.DestQP)
				}
			}
		}
	}
	for flow := range uint32(9) {
		if got[sourceQP+flow] != 1 {
			t.Errorf("flow %d: %d notifications", flow, got[sourceQP+flow])
		}
	}
	s.Close(t)
}

// TestProxyDisabledMeanwhile: a request that another worker has not read before the gateway ceased to be a proxy notifies nobody when it is one again.
func TestProxyDisabledMeanwhile(t *testing.T) {
	s := newScene(t, proxyFor(packet.StandardCNP), func(s *testkit.Setup) { s.Workers = 2 })
	f := data(false, 0).Frame()
	s.InjectAt(t, 1, fabric, f)
	s.Settle()
	s.InjectAt(t, 0, wan, asking(t, f, own4, 5))
	s.Plane.Worker(0).Step() // and the other one makes no step
	on := s.Plane.Policy()
	off := *on
	off.Proxy = nil
	for _, p := range []*dataplane.Policy{&off, on} {
		s.Advance(200 * ms)
		if err := s.Plane.SetPolicy(p); err != nil {
			t.Fatal(err)
		}
		s.Settle()
	}
	s.InjectAt(t, 1, fabric, f)
	s.Settle()
	if got := s.suppressed(fabric); !maps.Equal(got, map[string]uint64{"proxy-flow-silent": 1}) {
		t.Errorf("suppressed %v, expected the request to be given up", got)
	}
	if n := s.Count(fabric, formatCounter(counters.ProxyTranslatedFirst, packet.StandardCNP)); n != 0 {
		t.Errorf("%d senders were notified", n)
	}
	s.Drain()
	s.Close(t)
}

// TestProxyFlowSilent: a request is given up after 100 ms without a data packet of the flow, and the later one of two counts.
func TestProxyFlowSilent(t *testing.T) {
	p := proxyFor(packet.LongHaulCNP)
	p.Ports[wan].Ladder = congestion.DefaultLadder
	s := newScene(t, p, nil)
	f := data(true, 0).Frame()
	s.arrive(f)
	wait := func(ns int64) {
		s.Advance(ns)
		for range 100 {
			s.Plane.Worker(0).Step()
		}
	}
	s.arriveAt(wan, asking(t, f, own6, 5))
	wait(99 * ms)
	s.arriveAt(wan, asking(t, f, own6, 3))
	wait(99 * ms)
	s.arrive(f)
	if r := s.records(); len(r) != 1 || r[0].Decision.Level != 109 {
		t.Errorf("records %+v", r)
	}
	s.arriveAt(wan, asking(t, f, own6, 5))
	wait(101 * ms)
	s.arrive(f)
	s.wantSuppressed(map[string]uint64{"proxy-repeated": 1, "proxy-flow-silent": 1})
	s.finish()
}

// TestProxyFlowEnds: a request for a flow that has ended doesn't notify the sender of the flow that has its place.
func TestProxyFlowEnds(t *testing.T) {
	s := newScene(t, proxyFor(packet.StandardCNP), func(s *testkit.Setup) { s.Flows = 1 })
	s.arrive(data(false, 0).Frame())
	s.arriveAt(wan, asking(t, data(false, 0).Frame(), own4, 5))
	s.Advance(2 * ms)
	s.arrive(data(false, 1).Frame(), data(false, 1).Frame())
	s.Advance(2 * ms)
	s.arrive(data(false, 0).Frame())
	if n := s.Plane.Worker(0).FlowStats().Evictions; n != 2 {
		t.Errorf("%d evictions: not what was to be tested", n)
	}
	if notes := s.finish(); len(notes) != 0 {
		t.Errorf("%d notifications", len(notes))
	}
}

// TestProxyCant: why a proxy can't notify a sender is counted as for the gateway's own notifications.
func TestProxyCant(t *testing.T) {
	for _, c := range []struct {
		reason string
		flow   uint32
		change func(*dataplane.Policy)
	}{
		{"source-qp-unknown", 20, func(*dataplane.Policy) {}},
		{"no-endpoint", 0, func(p *dataplane.Policy) { p.Who.Endpoints = nil }},
		{"not-enabled", 0, func(p *dataplane.Policy) { p.Who.Enabled = [packet.SentNotifications]bool{} }},
	} {
		p := proxyFor(packet.StandardCNP)
		c.change(p)
		s := newScene(t, p, nil)
		f := data(false, c.flow).Frame()
		s.arrive(f)
		s.arriveAt(wan, asking(t, f, own4, 5))
		s.arrive(f)
		s.wantSuppressed(map[string]uint64{c.reason: 1})
		if notes := s.finish(); len(notes) != 0 {
			t.Errorf("%s: %d notifications", c.reason, len(notes))
		}
	}
}

// TestProxyObserves: in observe mode the notification is counted and recorded, and not sent.
func TestProxyObserves(t *testing.T) {
	p := proxyFor(packet.StandardCNP)
	p.Observe = true
	s := newScene(t, p, nil)
	f := data(false, 0).Frame()
	s.arrive(f)
	s.arriveAt(wan, asking(t, f, own4, 5))
	s.arrive(f)
	s.Drain()
	records := s.records()
	if s.Count(fabric, formatCounter(counters.ObservedFirst, packet.StandardCNP)) != 1 || len(records) != 1 || records[0].Outcome != counters.Observed {
		t.Errorf("%d records", len(records))
	}
	for _, f := range s.Take(fabric) {
		if f.Built {
			t.Error("a notification was sent")
		}
	}
	s.Close(t)
}

// TestProxyOfProxy: a proxy notifies the sender itself, although its own map has another proxy for it: no chain of proxies can become a loop.
func TestProxyOfProxy(t *testing.T) {
	senders, err := proxy.NewSenders(proxy.Sender{Prefix: netip.MustParsePrefix("198.18.0.0/16"), Proxy: netip.MustParseAddr(congested4), Origin: proxy.OriginStatic})
	if err != nil {
		t.Fatal(err)
	}
	p := proxyFor(packet.StandardCNP)
	p.Proxies = senders
	s := newScene(t, p, nil)
	f := data(false, 0).Frame()
	s.arrive(f)
	s.arriveAt(wan, asking(t, f, own4, 5))
	s.arrive(f)
	notes := s.finish()
	if len(notes) != 1 {
		t.Fatalf("%d notifications", len(notes))
	}
	if kind, _ := kindOf(notes[0]); kind != packet.StandardCNP {
		t.Errorf("a %v", kind)
	}
}

// TestProxyNotifiesOnlyKnownFlows: whatever congested nodes and others send, each CNP is for a flow that has sent data, that a valid notification was
// about since, and whose source QP is confirmed; and it names that QP.
func TestProxyNotifiesOnlyKnownFlows(t *testing.T) {
	static := knownQPs(t)
	rapid.Check(t, func(t *rapid.T) {
		p := proxyFor(packet.StandardCNP)
		p.Proxy = host.NewProxy(netip.MustParseAddr(own4), netip.Addr{}, netip.Addr{}, prefixes("203.0.113.0/24"), 0, 0)
		r := testkit.New(t, testkit.Setup{Policy: p, Static: static, Rate: 10e9, Workers: 2})
		var seen, asked, want [15]int // by flow: data packets, whether a request waits, CNPs
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			flow := rapid.Uint32Range(0, 14).Draw(t, "flow")
			f := data(false, flow).Frame()
			if rapid.Bool().Draw(t, "data") {
				r.InjectAt(t, int(flow%2), fabric, f)
				if asked[flow] == 1 && flow < 10 {
					want[flow]++
				}
				seen[flow], asked[flow] = seen[flow]+1, 0
			} else {
				ask := asking(t, f, own4, 7)
				damage := rapid.IntRange(0, 2).Draw(t, "damage")
				switch damage {
				case 1:
					ask[rapid.IntRange(26, len(ask)-1).Draw(t, "octet")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
				case 2:
					copy(ask[26:30], []byte{203, 0, 112, 7}) // not listed, with right checksums
					packet.PutIPv4(ask[14:], uint16(len(ask)-14), 0, 64, packet.ProtoUDP, binary.BigEndian.Uint32(ask[26:]), binary.BigEndian.Uint32(ask[30:]))
					binary.BigEndian.PutUint16(ask[40:], packet.UDPChecksum(address("203.0.112.7"), address(own4), ask[34:]))
				}
				r.InjectAt(t, rapid.IntRange(0, 1).Draw(t, "worker"), wan, ask)
				if damage == 0 && seen[flow] > 0 {
					asked[flow] = 1
				}
			}
			r.Settle()
			r.Advance(10_000)
		}
		r.Drain()
		var got [15]int
		for _, sent := range r.Sent {
			for _, n := range sent {
				if !n.Built || n.Port != fabric {
					continue
				}
				kind, q := kindOf(n)
				if kind != packet.StandardCNP || q.Dst != address(sender4) || q.Src != address(receiver4) || q.DestQP < sourceQP || q.DestQP >= sourceQP+10 {
					t.Fatalf("notification % x", n.Octets)
				}
				got[q.DestQP-sourceQP]++
			}
		}
		if got != want {
			t.Fatalf("CNPs by flow %v, expected %v", got, want)
		}
		r.Close(t)
	})
}
