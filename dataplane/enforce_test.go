package dataplane_test

import (
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/cnpgen"
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane"
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
	p.Border = dataplane.NewBorder(nil, []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::/64")})
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
		return cnpgen.LongHaulCNP(out, t, &far, &l)
	}
}

func longHaulICMPv6(l cnpgen.LongHaul) builder {
	l.SourceQP, l.Level = sourceQP, 200
	return func(out []byte, t *cnpgen.Target, _ []byte, _ *packet.Parsed) int {
		return cnpgen.LongHaulCNPICMPv6(out, t, &far, &l)
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
	for n := dataplane.EnforcedFirst; n < dataplane.Counters; n++ {
		if v := s.Count(wan, n); v > 0 {
			out[dataplane.Catalogue[n].Value] = v
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
					grant("198.18.0.0/15", congestion.PPFC), grant("fd00:18::/32", congestion.PPFC),
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
				policy.Who = &congestion.Policy{Endpoints: prefix.New([]prefix.Entry[congestion.Preference]{grant("198.18.0.0/15", congestion.PPFC)})}
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

// TestEnforceRefuses: what the gateway doesn't carry out, and why. Each case is a Pause of flow 0 that holds nothing.
func TestEnforceRefuses(t *testing.T) {
	pause := longHaul(cnpgen.LongHaul{Action: cnpgen.Pause, Parameter: 500})
	forged := func(out []byte, t *cnpgen.Target, _ []byte, _ *packet.Parsed) int {
		other := far
		other.IPv4 = address("203.0.113.1")
		l := cnpgen.LongHaul{Action: cnpgen.Pause, Parameter: 500, SourceQP: sourceQP, Level: 200}
		return cnpgen.LongHaulCNP(out, t, &other, &l)
	}
	damaged := func(out []byte, t *cnpgen.Target, frame []byte, p *packet.Parsed) int {
		n := pause(out, t, frame, p)
		out[n-1] ^= 1 // of the ICRC
		return n
	}
	stranger := func(out []byte, t *cnpgen.Target, _ []byte, _ *packet.Parsed) int {
		return cnpgen.StandardCNP(out, t, &far, sourceQP+7)
	}
	unknown := func(out []byte, t *cnpgen.Target, _ []byte, _ *packet.Parsed) int {
		l := cnpgen.LongHaul{Action: cnpgen.Pause, Parameter: 500, SourceQP: sourceQP + 9, Level: 200}
		return cnpgen.LongHaulCNP(out, t, &far, &l)
	}
	aboutTCP := func(out []byte, t *cnpgen.Target, _ []byte, _ *packet.Parsed) int {
		frame := other(sender4, receiver4, packet.ProtoTCP, 200)
		var p packet.Parsed
		packet.Parse(frame, uint32(len(frame)), &p)
		return toProxy(out, t, frame, &p)
	}
	for _, c := range []struct {
		name   string
		build  builder
		change func(*dataplane.Policy)
		hold   uint64
		why    string // "": not counted
		passes bool
	}{
		{"a source that isn't of the domain", forged, nil, 50e6, "", false}, // the domain filter drops it
		{"no domain", pause, func(p *dataplane.Policy) { p.Border = nil }, 50e6, "untrusted-source", true},
		{"a wrong ICRC", damaged, nil, 50e6, "malformed", true},
		{"a Pause of 0 us", longHaul(cnpgen.LongHaul{Action: cnpgen.Pause}), nil, 50e6, "malformed", true},
		{"a notification to a proxy about TCP", aboutTCP, nil, 50e6, "malformed", true},
		{"a standard CNP to a QP without a connection", stranger, nil, 50e6, "", true},
		{"a flow that sends nothing", unknown, nil, 50e6, "", true},
		{"a Resume of a flow that isn't slowed down", longHaul(cnpgen.LongHaul{Action: cnpgen.Resume}), nil, 50e6, "nothing-to-resume", true},
		{"a sender of another prefix", pause, func(p *dataplane.Policy) { p.Ports[wan].Enforce = senders("198.19.0.0/16") }, 50e6, "", true},
		{"no senders", pause, func(p *dataplane.Policy) { p.Ports[wan].Enforce = nil }, 50e6, "", true},
		{"no pacing", pause, func(p *dataplane.Policy) { p.Ports[wan].Pacing = nil }, 50e6, "", true},
		{"no memory for pacing", pause, nil, 0, "", true},
		{"observe mode", pause, func(p *dataplane.Policy) { p.Observe = true }, 50e6, "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			policy := enforcing()
			if c.change != nil {
				c.change(policy)
			}
			s := newEnforceScene(t, false, policy, c.hold)
			s.arriveAt(wan, s.notification(0, c.build))
			s.send(100_000)
			if n := s.Plane.Port(wan).PacedFrames + s.Count(wan, dataplane.PacedPackets); n != 0 {
				t.Errorf("%d packets were held", n)
			}
			if got := s.enforceCounts(); c.why == "" && len(got) != 0 || c.why != "" && (len(got) != 1 || got[c.why] != 1) {
				t.Errorf("counted %v, expected %q", got, c.why)
			}
			if passed := len(s.Take(fabric)) == 1; passed != c.passes {
				t.Errorf("the notification was forwarded: %v", passed)
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

// TestEnforceFull: a sender whose held packets take half of the space has its oldest ones sent; another sender's flow still finds space.
// Requests that find no slot are counted.
func TestEnforceFull(t *testing.T) {
	s := newEnforceScene(t, false, enforcing(), 128*1250)
	s.arriveAt(wan, s.notification(0, longHaul(cnpgen.LongHaul{Action: cnpgen.Pause, Parameter: 60_000})))
	s.send(600_000) // 150 packets
	if n := s.Plane.Port(wan).PacedFrames; n != 64 {
		t.Errorf("%d packets are held, expected half of 128", n)
	}
	if n := s.Count(wan, dataplane.PacedTooMany); n != 150-64 {
		t.Errorf("%d packets left early, expected %d", n, 150-64)
	}
	another := data(false, 0)
	another.Src, another.DestQP, another.Size = "198.18.7.7", 300, 1250
	var p packet.Parsed
	frame := another.Frame()
	packet.Parse(frame, uint32(len(frame)), &p)
	target, _ := cnpgen.TargetOf(frame, &p)
	note := make([]byte, cnpgen.MaxLen)
	note = note[:cnpgen.ProxyNotification(note, &target, &far, frame, &p, address("198.18.250.250"), 1)]
	s.arriveAt(wan, note)
	for range 40 { // to measure the rate
		s.arrive(frame)
		s.Advance(2_000)
		s.Settle()
	}
	if n := s.Plane.Port(wan).PacedFrames; n <= 64 {
		t.Errorf("%d packets are held, none of the other sender", n)
	}
	for qp := range uint32(300) { // of flows that send nothing
		l := cnpgen.LongHaul{Action: cnpgen.Pause, Parameter: 500, SourceQP: 5000 + qp, Level: 1}
		s.arriveAt(wan, s.notification(0, func(out []byte, t *cnpgen.Target, _ []byte, _ *packet.Parsed) int {
			return cnpgen.LongHaulCNP(out, t, &far, &l)
		}))
	}
	if n := s.enforceCounts()["no-space"]; n == 0 || n > 300-200 {
		t.Errorf("%d requests found no slot, expected those beyond some 256", n)
	}
	s.Drain()
	s.Close(t)
}

// TestEnforceFlood: forged CNPs take half of the slots, and leave the others to gateways.
func TestEnforceFlood(t *testing.T) {
	s := newEnforceScene(t, false, enforcing(), 50e6)
	for qp := range uint32(300) {
		s.arriveAt(wan, s.notification(0, func(out []byte, t *cnpgen.Target, _ []byte, _ *packet.Parsed) int {
			return cnpgen.StandardCNP(out, t, &far, 5000+qp)
		}))
	}
	if n := s.enforceCounts()["no-space"]; n != 300-128 {
		t.Errorf("%d CNPs found no slot, expected all but 128", n)
	}
	s.arriveAt(wan, s.notification(0, longHaul(cnpgen.LongHaul{Action: cnpgen.Pause, Parameter: 500})))
	s.send(20_000)
	if n := s.Plane.Port(wan).PacedFrames; n != 5 {
		t.Errorf("%d packets held, expected 5", n)
	}
	s.Drain()
	s.Close(t)
}

// TestEnforceReload: a new policy's senders count from the next notification on; when pacing is switched off, the packets that are held
// leave in order.
func TestEnforceReload(t *testing.T) {
	s := newEnforceScene(t, false, enforcing(), 50e6)
	pause := s.notification(0, longHaul(cnpgen.LongHaul{Action: cnpgen.Pause, Parameter: 500}))
	s.setPolicy(func(p *dataplane.Policy) { p.Ports[wan].Enforce = senders("198.19.0.0/16") })
	s.arriveAt(wan, pause)
	s.send(50_000)
	if n := s.Count(wan, dataplane.PacedPackets); n != 0 {
		t.Errorf("%d packets of another prefix held", n)
	}
	s.setPolicy(func(p *dataplane.Policy) { p.Ports[wan].Enforce = senders("198.18.0.0/16") })
	s.arriveAt(wan, pause)
	s.send(50_000)
	if n := s.Plane.Port(wan).PacedFrames; n == 0 {
		t.Error("no packet held")
	}
	s.setPolicy(func(p *dataplane.Policy) { p.Ports[wan].Pacing, p.Ports[wan].Enforce = nil, nil })
	s.send(600_000)
	s.arriveAt(wan, pause)
	held := s.Count(wan, dataplane.PacedPackets)
	s.send(100_000)
	if n := s.Count(wan, dataplane.PacedPackets); n != held || s.Plane.Port(wan).PacedFrames != 0 {
		t.Errorf("%d packets held since pacing is off", n-held)
	}
	s.setPolicy(func(*dataplane.Policy) {})
	other := cnpgen.LongHaul{Action: cnpgen.RateReduce, Parameter: 50, SourceQP: sourceQP + 1, Level: 9}
	s.arriveAt(wan, s.notification(1, func(out []byte, t *cnpgen.Target, _ []byte, _ *packet.Parsed) int {
		return cnpgen.LongHaulCNP(out, t, &far, &other)
	}))
	s.setPolicy(func(p *dataplane.Policy) { p.Ports[wan].Pacing = nil })
	s.send(20_000)
	if n := s.Plane.Port(wan).PacedFrames; n != 0 {
		t.Errorf("%d packets held because of a notification from before pacing was switched off", n)
	}
	s.Drain()
	s.inOrder()
	s.Close(t)
}

// TestEnforceDamaged: notifications of every kind with any bytes changed do no harm: no packet is lost or out of order.
func TestEnforceDamaged(t *testing.T) {
	builders := []builder{standardCNP, toProxy, longHaul(cnpgen.LongHaul{Action: cnpgen.Pause, Parameter: 50}), ppfc(cnpgen.PPFC{Duration: 40})}
	rapid.Check(t, func(rt *rapid.T) {
		s := newEnforceScene(t, false, enforcing(), 20e6)
		for range rapid.IntRange(1, 20).Draw(rt, "notifications") {
			n := s.notification(0, rapid.SampledFrom(builders).Draw(rt, "kind"))
			for range rapid.IntRange(0, 3).Draw(rt, "changes") {
				n[rapid.IntRange(34, len(n)-1).Draw(rt, "place")] = rapid.Byte().Draw(rt, "byte")
			}
			var p packet.Parsed
			packet.Parse(n, uint32(len(n)), &p)
			if p.BTH != 0 && rapid.Bool().Draw(rt, "a right ICRC") {
				packet.PutICRC(n, int(p.L3), int(p.BTH), int(p.ICRC), true)
			}
			s.arriveAt(wan, n)
			s.send(rapid.Int64Range(0, 50_000).Draw(rt, "ns"))
		}
		s.Drain()
		if n := s.inOrder(); n != [2]int{int(s.psn[0]) - 5, int(s.psn[1]) - 5} {
			rt.Fatalf("%d packets left of %d that came after five", n, s.psn)
		}
		s.Close(t)
	})
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

// TestEnforceFlowEnds: a flow that ages while its packets are held, and begins again, keeps its order.
func TestEnforceFlowEnds(t *testing.T) {
	p := enforcing()
	s := &enforceScene{scene: &scene{testkit.New(t, testkit.Setup{Rate: 10e9, Static: knownQPs(t), Policy: p, Change: func(c *dataplane.Config) {
		c.Ports[wan].Paced, c.Aging = 1e6, 20*ms
	}}), t}}
	s.send(20_000)
	s.arriveAt(wan, s.notification(0, longHaul(cnpgen.LongHaul{Action: cnpgen.Pause, Parameter: 60_000})))
	s.send(40_000)
	for range 400 {
		s.Advance(ms / 10)
		s.Settle()
	}
	if n := s.Plane.Worker(0).FlowStats().Aged; n == 0 {
		t.Error("no flow has ended: not what was to be tested")
	}
	s.send(40_000)
	if n := s.Plane.Port(wan).PacedFrames; n != 20 {
		t.Errorf("%d packets held, expected those from before and after", n)
	}
	s.Drain()
	if n := s.inOrder(); n != [2]int{25, 25} {
		t.Errorf("%d packets left, expected 25 of each flow", n)
	}
	s.Close(t)
}

// TestEnforceByTwoWorkers: a notification that comes to one worker slows down the packets that come to the other one.
func TestEnforceByTwoWorkers(t *testing.T) {
	r := testkit.New(t, testkit.Setup{Workers: 2, Rate: 10e9, Static: knownQPs(t), Policy: enforcing(),
		Change: func(c *dataplane.Config) { c.Ports[wan].Paced = 2e6 }})
	s := &enforceScene{scene: &scene{r, t}}
	r.InjectAt(t, 1, fabric, s.packet(0))
	r.Settle()
	r.InjectAt(t, 0, wan, s.notification(0, longHaul(cnpgen.LongHaul{Action: cnpgen.Pause, Parameter: 500})))
	r.Settle()
	for range 5 {
		r.InjectAt(t, 1, fabric, s.packet(0))
		r.Settle()
	}
	if n := r.Plane.Port(wan).PacedFrames; n != 5 {
		t.Errorf("%d packets held, expected 5", n)
	}
	r.Advance(500_000)
	r.Settle()
	r.Drain()
	if n := r.Plane.Port(wan).PacedFrames; n != 0 {
		t.Errorf("%d packets still held", n)
	}
	r.Close(t)
}

// TestEnforceProperties: whatever notifications come, no packet is lost, those of a flow leave in order, and none of a paused flow leaves
// before the end of its pause.
func TestEnforceProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := enforcing()
		p.Ports[wan].Pacing.HostRate = 4e9 // both flows together less than the line: nothing waits behind the pacer
		p.Ports[wan].Pacing.Hold, p.Ports[wan].Pacing.Recovery = rapid.Int64Range(0, 1e6).Draw(rt, "hold"), rapid.Int64Range(1, 1e7).Draw(rt, "recovery")
		s := newEnforceScene(t, false, p, 20e6)
		pausedTo := [2]int64{}
		steps := rapid.IntRange(5, 40).Draw(rt, "steps")
		for range steps {
			flow := rapid.Uint32Range(0, 1).Draw(rt, "flow")
			l := cnpgen.LongHaul{Action: cnpgen.Action(rapid.IntRange(0, 3).Draw(rt, "action")), SourceQP: sourceQP + flow, Level: 9}
			if l.Action != cnpgen.Notify {
				l.Parameter = rapid.Uint16Range(0, 100).Draw(rt, "parameter")
			}
			before, queued := len(s.Sent[0]), s.Now+3_000 // until when packets leave that the pacer has released
			s.arriveAt(wan, s.notification(flow, func(out []byte, t *cnpgen.Target, _ []byte, _ *packet.Parsed) int {
				return cnpgen.LongHaulCNP(out, t, &far, &l)
			}))
			switch l.Action {
			case cnpgen.Pause:
				pausedTo[flow] = max(pausedTo[flow], s.Now+1000*int64(l.Parameter))
			case cnpgen.Resume:
				pausedTo[flow] = 0
			}
			s.send(rapid.Int64Range(0, 100_000).Draw(rt, "ns"))
			for _, f := range s.Sent[0][before:] {
				if _, q := kindOf(f); f.Port == wan && q.DestQP-100 < 2 && f.Now > queued && f.Now < pausedTo[q.DestQP-100] {
					rt.Fatalf("a packet of flow %d left at %d, in a pause until %d", q.DestQP-100, f.Now, pausedTo[q.DestQP-100])
				}
			}
		}
		s.Drain()
		if n := s.inOrder(); n != [2]int{int(s.psn[0]) - 5, int(s.psn[1]) - 5} {
			rt.Fatalf("%d packets left of %d that came after five", n, s.psn)
		}
		s.Close(t)
	})
}

// TestEnforceAllocatesNothing: notifications are carried out without allocation.
func TestEnforceAllocatesNothing(t *testing.T) {
	r := testkit.New(t, testkit.Setup{Rate: 10e9, Static: knownQPs(t), Policy: enforcing(), Forget: true, Capacity: 50e6, Frames: 4096, Buffers: 16384,
		Change: func(c *dataplane.Config) { c.Ports[wan].Paced = 5e6 }})
	s := &enforceScene{scene: &scene{r, t}}
	var notes [][]byte
	for _, a := range []cnpgen.LongHaul{{Action: cnpgen.Notify}, {Action: cnpgen.Pause, Parameter: 20}, {Action: cnpgen.RateReduce, Parameter: 10}, {Action: cnpgen.Resume}} {
		notes = append(notes, s.notification(0, longHaul(a)))
	}
	notes = append(notes, s.notification(0, toProxy), s.notification(1, toProxy))
	frames := [][]byte{s.packet(0), s.packet(1)}
	place := 0
	round := func() {
		r.Inject(t, fabric, frames[place%2])
		r.Inject(t, wan, notes[place%len(notes)])
		place++
		r.Advance(5_000)
		r.Plane.Worker(0).Step()
	}
	for range 200 {
		round()
	}
	if n := testing.AllocsPerRun(1000, round); n != 0 {
		t.Errorf("%v allocations a step", n)
	}
	for _, action := range []string{"slow-down", "pause", "rate-reduce", "resume"} {
		if s.enforceCounts()[action] == 0 {
			t.Errorf("no %s was carried out: not what was to be tested", action)
		}
	}
	r.Drain()
	r.Close(t)
}

// TestEnforceAsProxy: the gateway carries out a notification to itself as a proxy, and still notifies the sender. One from a source that isn't
// on the proxy's list has no effect, nor one about a flow that doesn't exist.
func TestEnforceAsProxy(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		p := proxyFor(congestion.StandardCNP)
		enforce := enforcing()
		p.Ports[wan].Pacing, p.Ports[wan].Enforce, p.QPMap = enforce.Ports[wan].Pacing, enforce.Ports[wan].Enforce, knownQPs(t)
		p.Proxy = dataplane.NewProxyNode(netip.MustParseAddr(own4), netip.MustParseAddr(own6), netip.Addr{}, prefixes(congested4+"/32", congested6+"/128"), 0, 0)
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
