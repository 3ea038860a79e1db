package dataplane_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/respond"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/prefix"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/ratelimit"
)

// between asks worker 0 for the flows between the hosts of a packet, and their standings.
func (s *scene) between(f *testkit.RoCE) *dataplane.Snapshot {
	s.t.Helper()
	const most = 64
	b := &dataplane.Between{A: address(f.Src), B: address(f.Dst), Standings: make([]respond.Standing, 0, most)}
	snapshot := &dataplane.Snapshot{Flows: make([]dataplane.FlowRecord, 0, most), Between: b}
	w := s.Plane.Worker(0)
	if !w.Ask(snapshot) {
		s.t.Fatal("the worker has another request")
	}
	for w.Asked(snapshot) {
		w.Step()
	}
	return snapshot
}

// standing is the standing of the flow of a packet.
func (s *scene) standing(f *testkit.RoCE) respond.Standing {
	s.t.Helper()
	snapshot := s.between(f)
	for i := range snapshot.Flows {
		if k := &snapshot.Flows[i].Key; k.Src == address(f.Src) && k.DestQP == f.DestQP {
			return snapshot.Between.Standings[i]
		}
	}
	s.t.Fatalf("no flow to QP %d: %+v", f.DestQP, snapshot.Flows)
	return respond.Standing{}
}

// counted lets a packet come until its sender is notified, "", or a reason not to is counted.
func (s *scene) counted(frame []byte) string {
	s.t.Helper()
	before, sent := s.suppressed(fabric), s.Plane.Worker(0).Notifications().Recorded()
	for range 500 { // the law notifies at random
		s.arrive(frame)
		for reason, n := range s.suppressed(fabric) {
			if n > before[reason] {
				return reason
			}
		}
		if s.Plane.Worker(0).Notifications().Recorded() > sent {
			return ""
		}
		s.Advance(1000)
	}
	return "nothing"
}

// law gives the WAN port the control law, with a queue in which five packets are congestion.
func law(p *dataplane.Policy) {
	p.Ports[wan].Law = congestion.Law{Line: 0.001, Reference: 8000}
}

func inTunnel(f []byte) []byte { return inVXLAN(f, 77) }

// TestStandingNamesTheCause: what a standing says before a packet is what the worker then counts.
func TestStandingNamesTheCause(t *testing.T) {
	const fast, rocev2, icmpv6, standard = packet.FastCNP, packet.LongHaulCNP, packet.LongHaulCNPICMPv6, packet.StandardCNP
	accept := func(formats ...packet.Notification) func(*dataplane.Policy) {
		return func(p *dataplane.Policy) {
			p.Who.Endpoints = prefix.New([]prefix.Entry[congestion.Preference]{grant("fd00:18::/32", formats...), grant("198.18.0.0/16", formats...)})
		}
	}
	quickWAN := func(s *testkit.Setup) { s.Change = func(c *dataplane.Config) { c.Ports[wan].Rate = 400e9 } }
	all := func(*dataplane.Policy) {}
	others := func(n int) (all [][]byte) { // senders that are notified before
		for i := range n {
			f := data(true, 0)
			f.Src = fmt.Sprintf("fd00:18::%x", 100+i)
			f.Size = 1100 + i
			all = append(all, f.Frame())
		}
		return all
	}
	small := data(true, 0)
	small.Size = 0
	for _, c := range []struct {
		reason string // "": the sender is notified
		law    bool   // it holds under the law, too
		change func(*dataplane.Policy)
		setup  func(*testkit.Setup)
		before [][]byte
		packet testkit.RoCE
		in     func([]byte) []byte
		times  int // packets before the one that is compared
	}{
		{"", true, all, nil, nil, data(true, 0), nil, 6},
		{"no-endpoint", true, func(p *dataplane.Policy) { p.Who.Endpoints = nil }, nil, nil, data(true, 0), nil, 6},
		{"nothing-accepted", true, accept(), nil, nil, data(true, 0), nil, 6},
		{"not-enabled", true, func(p *dataplane.Policy) { p.Who.Enabled = [packet.SentNotifications]bool{} }, nil, nil, data(true, 0), nil, 6},
		{"wrong-family", true, accept(fast), nil, nil, data(false, 0), nil, 6},
		{"no-gateway-address", true, func(p *dataplane.Policy) { p.Who.HasIPv6 = false }, nil, nil, data(true, 0), nil, 6},
		{"action-not-expressible", false, func(p *dataplane.Policy) {
			accept(packet.PPFC)(p)
			p.Who.Enabled[packet.PPFC] = true
			p.Ports[wan].Ladder = []congestion.Rung{{Action: congestion.Notify}}
		}, nil, nil, data(true, 0), nil, 6},
		{"source-qp-unknown", true, accept(rocev2, icmpv6), nil, nil, data(true, 10), nil, 6},
		{"source-qp-unknown", true, func(p *dataplane.Policy) { accept(standard)(p); p.Who.Enabled[standard] = true }, nil, nil, data(false, 10), nil, 6},
		{"not-unicast", true, all, nil, nil, testkit.RoCE{Src: sender6, Dst: "ff02::1", ECN: packet.ECT0, DestQP: 100, Size: 1000}, nil, 6},
		{"management-qp", false, all, nil, nil, testkit.RoCE{Src: sender6, Dst: receiver6, Opcode: packet.UDSendOnly, DestQP: 1, SourceQP: 1, Size: 1000}, nil, 6},
		{"encapsulated", true, all, nil, nil, inner(true), inTunnel, 8},
		{"not-enabled", true, func(p *dataplane.Policy) {
			p.Proxies = behind(t, "fd00:18::/32", proxy6)
		}, nil, nil, data(true, 0), nil, 6},
		{"stopping", true, func(p *dataplane.Policy) { p.Drain = true }, nil, nil, data(true, 0), nil, 6},
		{"largest-not-roce", false, all, nil, [][]byte{other(sender6, receiver6, packet.ProtoTCP, 1900), other(sender6, receiver6, packet.ProtoTCP, 1900),
			other(sender6, receiver6, packet.ProtoTCP, 1900)}, data(true, 0), nil, 3},
		{"flow-limit", false, func(p *dataplane.Policy) { p.Ports[wan].PerFlow = ratelimit.Interval(10 * ms) }, nil, nil, data(true, 0), nil, 6},
		{"destination-limit", true, func(p *dataplane.Policy) { p.PerDestination = perSecond(1) }, nil, nil, data(true, 0), nil, 12},
		{"port-limit", true, func(p *dataplane.Policy) { p.PerPort = perSecond(1) }, nil, nil, data(true, 0), nil, 12},
		{"notification-queue-full", false, above, quickWAN, others(257), small, nil, 1},
		{"no-buffer", false, above, func(s *testkit.Setup) { quickWAN(s); s.Buffers = 24 }, others(20), small, nil, 1},
	} {
		for _, byLaw := range []bool{false, true} {
			if byLaw && !c.law {
				continue
			}
			t.Run(fmt.Sprintf("%s, law %v", c.reason, byLaw), func(t *testing.T) {
				p := notifying(byAnything...)
				c.change(p)
				if byLaw {
					law(p)
				}
				s := newScene(t, p, c.setup)
				frame := c.packet.Frame()
				if c.in != nil {
					frame = c.in(frame)
				}
				for _, b := range c.before {
					s.arrive(b)
					s.Advance(1000)
				}
				times := c.times
				if byLaw {
					times += 20 // until a rate is known
				}
				for range times {
					s.arrive(frame)
					s.Advance(1000)
				}
				standing := s.standing(&c.packet)
				if counted := s.counted(frame); counted != c.reason || standing.Held().String() != cmp.Or(counted, "ok") {
					t.Errorf("counted %q, want %q; the standing names %v: %+v", counted, c.reason, standing.Held(), standing)
				}
				if standing.Law != byLaw || c.setup == nil && (!standing.Congested || !standing.Fills) {
					t.Errorf("the standing is %+v", standing)
				}
				s.Drain()
				s.Close(t)
			})
		}
	}
}

// TestStandingOfCalm: without congestion nothing holds a notification back but the queue, and the queue's threshold is named.
func TestStandingOfCalm(t *testing.T) {
	for _, byLaw := range []bool{false, true} {
		p := notifying(byAnything...)
		if byLaw {
			law(p)
		}
		s := newScene(t, p, nil)
		f := data(true, 0)
		s.fill(1, f)
		want := respond.Standing{Out: wan, ClassKnown: true, To: address(f.Src), Action: congestion.RateReduce, Law: byLaw, Depth: 1000, Threshold: kMax, Now: s.Now}
		got := s.standing(&f)
		if got.Fair = 0; got != want {
			t.Errorf("law %v:\n%+v, want\n%+v", byLaw, got, want)
		}
		s.Drain()
		s.Close(t)
	}
}

// TestStandingChangesNothing: what is asked for has no effect on what the worker does.
func TestStandingChangesNothing(t *testing.T) {
	var runs [2][]testkit.Sent
	var counts [2]map[string]uint64
	for asks := range runs {
		p := notifying(byAnything...)
		p.Ports[wan].RTT, p.Ports[wan].Interval, p.Ports[wan].PerFlow = ms, 1000, 100_000
		p.PerDestination, p.PerPort = perSecond(5000), perSecond(7000)
		s := newScene(t, p, func(s *testkit.Setup) { s.Rate = 50_000_000 })
		for n := range 400 {
			f := data(n%3 == 0, uint32(n%5))
			if f.Size = 200 + 13*(n%60); asks == 1 {
				s.between(&f)
			}
			s.arrive(f.Frame())
			s.Advance(60_000)
			s.Settle()
		}
		s.Drain()
		runs[asks], counts[asks] = s.Take(fabric), s.suppressed(fabric)
		s.Close(t)
	}
	same := func(a, b testkit.Sent) bool { return a.Now == b.Now && slices.Equal(a.Octets, b.Octets) }
	if !slices.EqualFunc(runs[0], runs[1], same) || !maps.Equal(counts[0], counts[1]) || len(runs[0]) < 10 || len(counts[0]) < 2 {
		t.Errorf("%d notifications and suppressed %v without questions, %d and %v with them", len(runs[0]), counts[0], len(runs[1]), counts[1])
	}
}

// TestStandingFromWAN: the queue of a fabric port notifies nobody.
func TestStandingFromWAN(t *testing.T) {
	s := newScene(t, notifying(byAnything...), nil)
	f := data(true, 0)
	f.Src, f.Dst = f.Dst, f.Src
	s.arriveAt(wan, f.Frame())
	if got := s.standing(&f); got != (respond.Standing{Out: fabric, FromWAN: true, Now: s.Now}) {
		t.Errorf("%+v", got)
	}
	s.Drain()
	s.Close(t)
}

// TestStandingSlowingDown: a reason that has just been counted for a sender that slows down is the standing's.
func TestStandingSlowingDown(t *testing.T) {
	p := notifying(grant("198.18.0.0/16", packet.LongHaulCNP))
	r := &p.Ports[wan].Response
	r.RTT, r.Interval = 10*ms, 1000
	s := newScene(t, p, func(s *testkit.Setup) { s.Rate = 5_730_000 })
	f, seen := data(false, 0), map[string]int{}
	for n := range 200 {
		before := s.suppressed(fabric)
		s.arrive(f.Frame())
		for reason, count := range s.suppressed(fabric) {
			if count == before[reason] {
				continue
			}
			seen[reason]++
			if got := s.standing(&f); got.Held().String() != reason || !got.Congested || !got.Fills {
				t.Errorf("packet %d: counted %s, the standing names %v: %+v", n, reason, got.Held(), got)
			}
		}
		s.Advance([]int64{ms, 3 * ms}[n/60%2])
		s.Settle()
	}
	if seen["slowing-down"] == 0 || seen["draining"] == 0 {
		t.Errorf("seen %v", seen)
	}
	s.Drain()
	s.Close(t)
}

// TestRaisedIsRecorded: a record says whether the level is above that for the queue's state alone.
func TestRaisedIsRecorded(t *testing.T) {
	p := notifying(grant("198.18.0.0/16", packet.LongHaulCNP))
	r := &p.Ports[wan].Response
	r.Ladder, r.RTT, r.Interval = congestion.DefaultLadder, ms, 1000
	s := newScene(t, p, nil)
	for range 40 {
		s.fill(1, data(false, 0))
		s.Advance(100_000)
	}
	seen := map[bool]int{}
	for _, n := range s.records() {
		seen[n.Raised]++
		if raised := n.Decision.Level > r.Decide(n.Metrics, n.Cause).Level; raised != n.Raised {
			t.Errorf("level %d at %d bytes, raised: %v", n.Decision.Level, n.Metrics.Depth, n.Raised)
		}
	}
	if seen[false] == 0 || seen[true] == 0 {
		t.Errorf("seen %v", seen)
	}
	s.Drain()
	s.Close(t)
}

// TestStandingClass: the class of a flow is known once its packets were counted in a queue; before, the longest queue is named.
func TestStandingClass(t *testing.T) {
	const busy, own = 8, 26 // DSCPs of classes 1 and 2
	s := newScene(t, notifying(byAnything...), func(s *testkit.Setup) {
		s.Change = func(c *dataplane.Config) {
			for i := range c.Ports {
				c.Ports[i].Classes, c.Ports[i].ClassOf[busy], c.Ports[i].ClassOf[own] = 3, 1, 2
			}
		}
	})
	f := data(true, 0)
	f.DSCP = own
	s.fill(1, f)
	long := data(true, 1)
	long.DSCP = busy
	s.fill(3, long)
	if got := s.standing(&f); got.ClassKnown || got.Class != 1 || got.Depth != 3000 {
		t.Errorf("before: %+v", got)
	}
	s.fill(5, f)
	if got := s.standing(&f); !got.ClassKnown || got.Class != 2 || got.Depth != 6000 || !got.Congested {
		t.Errorf("in a long queue: %+v", got)
	}
	s.Drain()
	s.Close(t)
}
