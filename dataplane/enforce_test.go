package dataplane_test

import (
	"net/netip"
	"testing"

	"github.com/cnpgate/cnpgate/cnpgen"
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/host"
	"github.com/cnpgate/cnpgate/dataplane/stage"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/prefix"
	"github.com/cnpgate/cnpgate/internal/testkit"
)

// far is the gateway that congests, whose notifications pass.
var far = cnpgen.Gateway{
	IPv4: address("192.0.2.77"), IPv6: address("2001:db8::77"), HasIPv4: true, HasIPv6: true, DSCP: 48,
	Code: packet.DefaultCodePoints, ICRCExtensionHeaders: true,
}

// senders makes the table of the prefixes whose flows are paced.
func senders(prefixes ...string) *prefix.Table[struct{}] {
	var entries []prefix.Entry[struct{}]
	for _, p := range prefixes {
		entries = append(entries, prefix.Entry[struct{}]{Prefix: netip.MustParsePrefix(p)})
	}
	return prefix.New(entries)
}

// enforcing is a policy whose WAN port, of 10 Gbit/s, paces the flows of all senders as notifications ask. A CNP halves a flow's rate, which
// then stays.
func enforcing() *dataplane.Policy {
	p := testkit.DefaultPolicy(2)
	p.Ports[wan].Pacing = &congestion.Pacing{HostRate: 10e9, Floor: 10e6, Keep: 50, Interval: 50_000, Hold: 1 << 50, Recovery: 1 << 50}
	p.Ports[wan].Enforce = senders("198.18.0.0/15", "fd00:18::/32")
	p.Domain = stage.NewDomain(nil, []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::/64")}, false)
	return p
}

// enforceScene is a gateway with that policy, and two flows of a sender that obeys nothing: each sends 1250 bytes every 4 us.
type enforceScene struct {
	*scene
	v6  bool
	psn [2]uint32
}

func newEnforceScene(t *testing.T, v6 bool, p *dataplane.Policy, hold uint64) *enforceScene {
	t.Helper()
	s := &enforceScene{scene: &scene{testkit.New(t, testkit.Setup{
		Rate: 10e9, Buffers: 16384, Frames: 8192, Capacity: 100e6, Static: knownQPs(t), Policy: p,
		Change: func(c *dataplane.Config) { c.Ports[wan].Paced = hold },
	}), t}, v6: v6}
	ack := data(v6, 0)
	ack.Src, ack.Dst, ack.DestQP, ack.Opcode, ack.Size = ack.Dst, ack.Src, sourceQP, packet.RCAcknowledge, 0
	s.arriveAt(wan, ack.Frame()) // so that the receiver has a connection with the sender
	s.send(20_000)
	s.Take(wan)
	s.Take(fabric)
	return s
}

// packet is the next packet of a flow.
func (s *enforceScene) packet(flow uint32) []byte {
	f := data(s.v6, flow)
	f.PSN, f.Size = s.psn[flow], 1250
	s.psn[flow]++
	return f.Frame()
}

// send lets both flows send for a time.
func (s *enforceScene) send(ns int64) {
	for end := s.Now + ns; s.Now < end; {
		s.arrive(s.packet(0), s.packet(1))
		for range 4 {
			s.Advance(1_000)
			s.Settle()
		}
	}
}

// notification is what the far gateway sends because of a flow. build has the builders' parameters.
func (s *enforceScene) notification(flow uint32, build func(out []byte, t *cnpgen.Target, frame []byte, p *packet.Parsed) int) []byte {
	s.t.Helper()
	f := data(s.v6, flow)
	frame := f.Frame()
	var p packet.Parsed
	packet.Parse(frame, uint32(len(frame)), &p)
	target, ok := cnpgen.TargetOf(frame, &p)
	out := make([]byte, cnpgen.MaxLen)
	n := build(out, &target, frame, &p)
	if !ok || n == 0 {
		s.t.Fatal("not built")
	}
	return out[:n]
}

// builders of notifications.
type builder = func(out []byte, t *cnpgen.Target, frame []byte, p *packet.Parsed) int

func longHaul(l cnpgen.LongHaul) builder {
	l.SourceQP, l.Level = sourceQP, 200
	return func(out []byte, t *cnpgen.Target, _ []byte, _ *packet.Parsed) int {
		return cnpgen.LongHaulCNP(out, t, &far, &l, nil)
	}
}

func longHaulICMPv6(l cnpgen.LongHaul) builder {
	l.SourceQP, l.Level = sourceQP, 200
	return func(out []byte, t *cnpgen.Target, _ []byte, _ *packet.Parsed) int {
		return cnpgen.LongHaulCNPICMPv6(out, t, &far, &l, nil)
	}
}

func ppfc(n cnpgen.PPFC) builder {
	return func(out []byte, t *cnpgen.Target, _ []byte, _ *packet.Parsed) int {
		return cnpgen.PPFCNotification(out, t, &far, &n)
	}
}

func standardCNP(out []byte, t *cnpgen.Target, _ []byte, _ *packet.Parsed) int {
	return cnpgen.StandardCNP(out, t, &far, sourceQP)
}

func fastCNP(out []byte, t *cnpgen.Target, _ []byte, _ *packet.Parsed) int {
	n, _ := cnpgen.FastCNP(out, t, &far, packet.IOAMTrace{})
	return n
}

// toProxy is a notification to a proxy that is a host behind this gateway.
func toProxy(out []byte, t *cnpgen.Target, frame []byte, p *packet.Parsed) int {
	to := "198.18.250.250"
	if p.Family == 6 {
		to = "fd00:18::250"
	}
	return cnpgen.ProxyNotification(out, t, &far, frame, p, address(to), 5)
}

// left are the times at which a flow's packets left by the WAN port. It fails the test if they are not in order, or if one is missing.
func (s *enforceScene) left() (times [2][]int64) {
	s.t.Helper()
	for _, f := range s.Take(wan) {
		_, p := kindOf(f)
		if flow := p.DestQP - 100; flow < 2 {
			if n := len(times[flow]); n > 0 && f.Now < times[flow][n-1] {
				s.t.Fatal("time went back")
			}
			times[flow] = append(times[flow], f.Now)
		}
	}
	return times
}

// between counts times from one to before another.
func between(times []int64, from, to int64) (n int) {
	for _, at := range times {
		if at >= from && at < to {
			n++
		}
	}
	return n
}

// enforceCounts are a WAN port's counts of what the gateway carried out and what not, by name, without the zeros.
func (s *enforceScene) enforceCounts() map[string]uint64 {
	out := map[string]uint64{}
	for n := counters.EnforcedFirst; n < counters.Counters; n++ {
		if v := s.Count(wan, n); v > 0 {
			out[counters.Catalogue[n].Value] = v
		}
	}
	return out
}

// TestEnforce: what each kind of notification does to the flow that it names, and that the sender's other flow goes on. The rates are those
// of a millisecond; the flow sends 2.5 Gbit/s.
func TestEnforce(t *testing.T) {
	notify, reduce := cnpgen.LongHaul{Action: cnpgen.Notify}, cnpgen.LongHaul{Action: cnpgen.RateReduce, Parameter: 30}
	pause := cnpgen.LongHaul{Action: cnpgen.Pause, Parameter: 500}
	for _, c := range []struct {
		name    string
		v6      bool
		build   builder
		percent int // of the flow's rate that remains
		paused  int64
		action  string
	}{
		{"standard CNP", false, standardCNP, 50, 0, "slow-down"},
		{"standard CNP, IPv6", true, standardCNP, 50, 0, "slow-down"},
		{"Fast CNP", true, fastCNP, 50, 0, "slow-down"},
		{"Notify", false, longHaul(notify), 50, 0, "slow-down"},
		{"Rate Reduce", false, longHaul(reduce), 70, 0, "rate-reduce"},
		{"Rate Reduce, ICMPv6", true, longHaulICMPv6(reduce), 70, 0, "rate-reduce"},
		{"Pause", false, longHaul(pause), 100, 500_000, "pause"},
		{"Pause, ICMPv6", true, longHaulICMPv6(pause), 100, 500_000, "pause"},
		{"PPFC", false, ppfc(cnpgen.PPFC{Duration: 300}), 100, 300_000, "pause"},
		{"PPFC, IPv6", true, ppfc(cnpgen.PPFC{Duration: 300}), 100, 300_000, "pause"},
		{"proxy", false, toProxy, 50, 0, "slow-down"},
		{"proxy, IPv6", true, toProxy, 50, 0, "slow-down"},
	} {
		t.Run(c.name, func(t *testing.T) {
			policy := enforcing()
			if c.name[:4] == "PPFC" {
				policy.Who = &congestion.Policy{Endpoints: prefix.New([]prefix.Entry[congestion.Preference]{
					grant("198.18.0.0/15", packet.PPFC), grant("fd00:18::/32", packet.PPFC),
				})}
			}
			s := newEnforceScene(t, c.v6, policy, 50e6)
			s.arriveAt(wan, s.notification(0, c.build))
			began := s.Now
			s.send(1_100_000 + c.paused)
			if got := s.enforceCounts(); len(got) != 1 || got[c.action] != 1 {
				t.Errorf("counted %v, expected one %s", got, c.action)
			}
			if out := s.Take(fabric); len(out) != 1 {
				t.Errorf("%d frames went to the sender, expected the notification", len(out))
			}
			times := s.left()
			if n := between(times[0], began, began+c.paused); n != 0 {
				t.Errorf("%d packets left in the %d ns of the pause", n, c.paused)
			}
			const each = 4_000 // ns from packet to packet
			if end := began + c.paused; c.paused > 0 {
				if len(times[0]) == 0 || times[0][0] > end+2_000 {
					t.Error("no packet left as soon as the pause had ended")
				}
				if n, want := between(times[0], end, end+300_000), int(c.paused+300_000)/each; n < want-2 || n > want {
					t.Errorf("%d packets left in the 300 us after the pause, expected %d, with those that were held", n, want)
				}
			}
			from, long := began+100_000, int64(1_000_000)
			if c.paused > 0 {
				from, long = began, c.paused
			} else if n, want := between(times[0], from, from+long), int(long)/each*c.percent/100; n < want-2 || n > want+2 {
				t.Errorf("%d packets left in %d ns, expected %d", n, long, want)
			}
			if n, want := between(times[1], from, from+long), int(long)/each; n < want-1 || n > want+1 {
				t.Errorf("%d packets of the other flow left in %d ns, expected %d", n, long, want)
			}
			s.Drain()
			rest := s.left()
			for flow := range times {
				if n := len(times[flow]) + len(rest[flow]); n != int(s.psn[flow])-5 { // five went before
					t.Errorf("%d packets of flow %d left, expected %d", n, flow, s.psn[flow]-5)
				}
			}
			s.Close(t)
		})
	}
}

// TestEnforceResume: a Resume ends a pause, and gives back its percentage of the last reduction.
func TestEnforceResume(t *testing.T) {
	for _, c := range []struct {
		name          string
		first, resume builder
		packets       int // of the flow's 250 in a millisecond
		action        string
	}{
		{"half of the reduction", longHaul(cnpgen.LongHaul{Action: cnpgen.RateReduce, Parameter: 60}), longHaul(cnpgen.LongHaul{Action: cnpgen.Resume, Parameter: 50}), 175, "resume"},
		{"a Pause", longHaul(cnpgen.LongHaul{Action: cnpgen.Pause, Parameter: 60_000}), longHaul(cnpgen.LongHaul{Action: cnpgen.Resume, Parameter: 50}), 250, "resume"},
		{"a PPFC pause", ppfc(cnpgen.PPFC{Duration: 60_000}), ppfc(cnpgen.PPFC{Resume: true}), 250, "end-pause"},
	} {
		t.Run(c.name, func(t *testing.T) {
			policy := enforcing()
			if c.action == "end-pause" {
				policy.Who = &congestion.Policy{Endpoints: prefix.New([]prefix.Entry[congestion.Preference]{grant("198.18.0.0/15", packet.PPFC)})}
			}
			s := newEnforceScene(t, false, policy, 50e6)
			s.arriveAt(wan, s.notification(0, c.first))
			s.send(200_000)
			s.arriveAt(wan, s.notification(0, c.resume))
			s.send(400_000) // the packets that were held leave
			s.Take(wan)
			from := s.Now
			s.send(1_000_000)
			if n := between(s.left()[0], from, from+1_000_000); n < c.packets-2 || n > c.packets+2 {
				t.Errorf("%d packets left in a millisecond, expected %d", n, c.packets)
			}
			if got := s.enforceCounts(); got[c.action] != 1 {
				t.Errorf("counted %v, expected one %s", got, c.action)
			}
			s.Drain()
			s.Close(t)
		})
	}
}

// TestEnforceRepeated: a second reduction within Pacing.Interval doesn't count; a later Pause extends the first one, and a shorter one
// doesn't end it.
func TestEnforceRepeated(t *testing.T) {
	s := newEnforceScene(t, false, enforcing(), 50e6)
	cut := s.notification(0, standardCNP)
	s.arriveAt(wan, cut)
	s.send(80_000) // the rate is measured and reduced
	s.arriveAt(wan, cut)
	s.send(20_000)
	if got := s.enforceCounts(); got["slow-down"] != 1 || got["too-soon"] != 1 {
		t.Errorf("counted %v, expected one reduction and one that came too soon", got)
	}
	for _, us := range []uint16{400, 600, 10} {
		s.arriveAt(wan, s.notification(0, longHaul(cnpgen.LongHaul{Action: cnpgen.Pause, Parameter: us})))
	}
	began := s.Now
	s.left()
	s.send(700_000)
	if times := s.left()[0]; between(times, began, began+600_000) != 0 || between(times, began+600_000, began+602_000) == 0 {
		t.Errorf("packets left at %v, expected the first one after 600 us", times[:min(3, len(times))])
	}
	s.Drain()
	s.Close(t)
}

// TestEnforceWaits: a request about a flow that sends nothing now applies to its next packet, if that comes soon: within 10 ms, or before
// the end of its pause.
func TestEnforceWaits(t *testing.T) {
	for _, c := range []struct {
		pause  uint16 // us
		after  int64  // ns
		cancel bool   // a Resume comes before
		held   uint64
	}{{9_000, 8_000_000, false, 1}, {9_000, 9_500_000, false, 0}, {40_000, 30_000_000, false, 1}, {40_000, 41_000_000, false, 0}, {40_000, 1_000_000, true, 0}} {
		s := newEnforceScene(t, false, enforcing(), 50e6)
		s.arriveAt(wan, s.notification(0, longHaul(cnpgen.LongHaul{Action: cnpgen.Pause, Parameter: c.pause})))
		if c.cancel {
			s.arriveAt(wan, s.notification(0, longHaul(cnpgen.LongHaul{Action: cnpgen.Resume})))
		}
		for range 300 { // the gateway checks its slots one a step
			s.Advance(c.after / 300)
			s.Settle()
		}
		s.arrive(s.packet(1), s.packet(0))
		if got := s.Plane.Port(wan).PacedFrames; got != c.held {
			t.Errorf("a pause of %d us, %d ns ago: %d packets held, expected %d", c.pause, c.after, got, c.held)
		}
		s.Drain()
		s.Close(t)
	}
}

// setPolicy changes the policy while the gateway runs.
func (s *enforceScene) setPolicy(change func(*dataplane.Policy)) {
	s.t.Helper()
	p := enforcing()
	p.QPMap = knownQPs(s.t)
	change(p)
	if err := s.Plane.SetPolicy(p); err != nil {
		s.t.Fatal(err)
	}
}

// inOrder fails the test unless each flow's packets left in their order, and none twice.
func (s *enforceScene) inOrder() (n [2]int) {
	s.t.Helper()
	last := [2]int{-1, -1}
	for _, f := range s.Take(wan) {
		_, p := kindOf(f)
		flow := p.DestQP - 100
		if flow >= 2 {
			continue
		}
		if int(p.PSN) <= last[flow] {
			s.t.Errorf("flow %d: PSN %d after %d", flow, p.PSN, last[flow])
		}
		last[flow] = int(p.PSN)
		n[flow]++
	}
	return n
}

// TestEnforceAsProxy: the gateway carries out a notification to itself as a proxy, and still notifies the sender. One from a source that isn't
// on the proxy's list has no effect, nor one about a flow that doesn't exist.
func TestEnforceAsProxy(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		p := proxyFor(packet.StandardCNP)
		enforce := enforcing()
		p.Ports[wan].Pacing, p.Ports[wan].Enforce, p.QPMap = enforce.Ports[wan].Pacing, enforce.Ports[wan].Enforce, knownQPs(t)
		p.Proxy = host.NewProxy(netip.MustParseAddr(own4), netip.MustParseAddr(own6), netip.Addr{}, prefixes(congested4+"/32", congested6+"/128"), 0, 0)
		s := newEnforceScene(t, v6, p, 50e6)
		own := ownOf(v6)
		s.arriveAt(wan, asking(t, data(v6, 7).Frame(), own, 5), s.notification(0, func(out []byte, target *cnpgen.Target, frame []byte, q *packet.Parsed) int {
			return cnpgen.ProxyNotification(out, target, &far, frame, q, address(own), 5)
		}))
		s.send(100_000)
		if got := s.enforceCounts(); len(got) != 0 {
			t.Errorf("counted %v before the notification", got)
		}
		if got := refused(s.Rig, wan); got["flow-unknown"] != 1 || got["untrusted-source"] != 1 {
			t.Errorf("refused %v", got)
		}
		s.arriveAt(wan, asking(t, data(v6, 0).Frame(), own, 5))
		s.send(100_000)
		s.Take(wan)
		from := s.Now
		s.send(1_000_000)
		if got := s.enforceCounts(); got["slow-down"] != 1 {
			t.Errorf("counted %v, expected one", got)
		}
		if n := between(s.left()[0], from, from+1_000_000); n < 123 || n > 127 {
			t.Errorf("%d packets left in a millisecond, expected half of 250", n)
		}
		notes := s.Take(fabric)
		if len(notes) != 1 {
			t.Fatalf("%d notifications to the sender", len(notes))
		}
		if kind, _ := kindOf(notes[0]); kind != packet.StandardCNP {
			t.Errorf("the sender got %v", kind)
		}
		s.Drain()
		s.Close(t)
	}
}
