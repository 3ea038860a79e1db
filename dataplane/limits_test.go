package dataplane_test

import (
	"fmt"
	"testing"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/ratelimit"
)

const ms = 1_000_000

// notified is how many Fast CNPs the workers have built: sent, or queued.
func (s *scene) notified() int {
	n := int(s.Count(fabric, counters.SentFirst))
	for i := range s.Backends {
		n += s.Plane.Worker(i).Queued()
	}
	return n - int(s.Plane.Port(wan).Frames[0]) - int(s.Plane.Port(fabric).Frames[0])
}

// stepped lets a data packet of a flow come in n times, with time going on by step after each; it returns when its sender was notified.
func (s *scene) stepped(n int, step int64) (at []int64) {
	s.t.Helper()
	begin := s.Now
	for range n {
		before := s.notified()
		s.arrive(data(true, 0).Frame())
		if s.notified() > before {
			at = append(at, s.Now-begin)
		}
		s.Advance(step)
	}
	return at
}

// above lets every packet be one above K_max.
func above(p *dataplane.Policy) { p.Ports[wan].Thresholds = congestion.Thresholds{} }

func TestLimitPerFlow(t *testing.T) {
	for _, c := range []struct {
		interval int64
		notified int
	}{{0, 101}, {1, 101}, {100_000, 101}, {100_001, 51}, {ms, 11}, {10 * ms, 2}, {3600e9, 1}} {
		p := notifying(byAnything...)
		above(p)
		p.Ports[fabric].PerFlow = 1 // of another queue
		p.Ports[wan].PerFlow = ratelimit.Interval(c.interval)
		s := newScene(t, p, nil)
		at := s.stepped(101, 100_000)
		for i := 1; i < len(at); i++ {
			if at[i]-at[i-1] < c.interval {
				t.Errorf("interval %d ns: notified at %d and %d", c.interval, at[i-1], at[i])
			}
		}
		want := map[string]uint64{}
		if c.notified < 101 {
			want["flow-limit"] = uint64(101 - c.notified)
		}
		s.wantSuppressed(want)
		if notes := s.finish(); len(notes) != c.notified || len(at) != c.notified {
			t.Errorf("interval %d ns: notified %d times, expected %d", c.interval, len(notes), c.notified)
		}
	}
}

// TestLimitPerFlowIsEachFlows: flows don't share an interval.
func TestLimitPerFlowIsEachFlows(t *testing.T) {
	p := notifying(byAnything...)
	above(p)
	p.Ports[wan].PerFlow = 10 * ms
	s := newScene(t, p, nil)
	for flow := range uint32(4) {
		f := data(true, flow)
		f.Size = []int{100, 300, 700, 1500}[flow] // each is the largest when it comes
		s.arrive(f.Frame(), f.Frame())
	}
	s.wantSuppressed(map[string]uint64{"flow-limit": 4})
	if notes := s.finish(); len(notes) != 4 {
		t.Errorf("%d notifications, expected 4", len(notes))
	}
}

// TestLimitPerDestination: 100 a second are one each 10 ms to one sender, and others have their own.
func TestLimitPerDestination(t *testing.T) {
	p := notifying(byAnything...)
	above(p)
	p.PerDestination = perSecond(100)
	s := newScene(t, p, nil)
	s.stepped(50, ms)
	s.wantSuppressed(map[string]uint64{"destination-limit": 45})
	s.finish()

	s = newScene(t, p, nil)
	for n := range 20 {
		f := data(true, 0)
		f.Src, f.Size = fmt.Sprintf("fd00:18::%x", n+1), 1000+n
		s.arrive(f.Frame())
	}
	s.wantSuppressed(nil)
	if notes := s.finish(); len(notes) != 20 {
		t.Errorf("%d notifications to 20 senders", len(notes))
	}
}

// TestLimitPerPort: a notification that the port's limit stops costs the destination's limit nothing.
func TestLimitPerPort(t *testing.T) {
	p := notifying(byAnything...)
	above(p)
	p.PerDestination, p.PerPort = perSecond(100), perSecond(50)
	s := newScene(t, p, nil)
	at := s.stepped(50, ms)
	s.wantSuppressed(map[string]uint64{"destination-limit": 27, "port-limit": 20})
	if notes := s.finish(); len(notes) != 3 || at[1] != 20*ms {
		t.Errorf("%d notifications, at %v", len(notes), at)
	}
}

// TestLimitPerPortIsEachPorts: two pairs don't share a limit.
func TestLimitPerPortIsEachPorts(t *testing.T) {
	p := notifying(byAnything...)
	above(p)
	p.Ports = append(p.Ports, p.Ports...)
	p.PerPort = perSecond(1)
	s := newScene(t, p, func(s *testkit.Setup) { s.Pairs = 2 })
	for _, port := range []int{0, 2} {
		s.arriveAt(port, data(true, 0).Frame(), data(true, 0).Frame())
		if got := s.suppressed(port); got["port-limit"] != 1 || len(got) != 1 {
			t.Errorf("port %d: suppressed %v", port, got)
		}
	}
	s.Drain()
	if a, b := s.Count(0, counters.SentFirst), s.Count(2, counters.SentFirst); a != 1 || b != 1 {
		t.Errorf("%d and %d notifications, expected one each", a, b)
	}
	s.Close(t)
}

// TestNoRoom: what hinders a notification besides limits, each with its own reason.
func TestNoRoom(t *testing.T) {
	anyRate := func(s *testkit.Setup) {
		s.Change = func(c *dataplane.Config) { c.Ports[wan].Rate = 400e9 }
	}
	for _, c := range []struct {
		reason   string
		setup    func(*testkit.Setup)
		frames   int
		notified int
	}{
		{"notification-queue-full", anyRate, 300, 256},
		{"no-buffer", func(s *testkit.Setup) { anyRate(s); s.Buffers = 24 }, 30, 18},
		{"not-built", func(s *testkit.Setup) { s.BufferSize = 100 }, 3, 0},
		{"flow-unknown", func(s *testkit.Setup) { s.Flows = 1 }, 3, 1},
	} {
		t.Run(c.reason, func(t *testing.T) {
			p := notifying(byAnything...)
			above(p)
			s := newScene(t, p, c.setup)
			for i := range c.frames {
				f := data(true, uint32(i)) // a sender that is notified the first time
				f.Size = 0
				s.arrive(f.Frame())
				if c.setup != nil && c.reason != "flow-unknown" && c.reason != "not-built" {
					s.Advance(1_000) // the WAN port's line is free again, the fabric port's is not
				}
			}
			s.wantSuppressed(map[string]uint64{c.reason: uint64(c.frames - c.notified)})
			if notes := s.finish(); len(notes) != c.notified {
				t.Errorf("%d notifications, expected %d", len(notes), c.notified)
			}
		})
	}
}

// TestDestinationsFull: more senders within a limit's time than can be kept apart.
func TestDestinationsFull(t *testing.T) {
	p := notifying(grant("fd00::/16", packet.FastCNP))
	above(p)
	p.PerDestination = perSecond(1)
	s := newScene(t, p, func(s *testkit.Setup) { s.Rate, s.Flows = 400e9, 1<<17 })
	full := counters.DestinationsFull.String()
	for n := 0; s.suppressed(fabric)[full] == 0; n++ {
		if n == 200_000 {
			t.Fatalf("never: suppressed %v", s.suppressed(fabric))
		}
		f := testkit.RoCE{Src: fmt.Sprintf("fd00::%x:%x", n>>16, n&0xffff), Dst: receiver6, DestQP: 7}
		s.Inject(t, fabric, f.Frame())
		if n%16 == 0 {
			s.Advance(1_000)
			s.Settle()
			s.Sent[0] = s.Sent[0][:0]
		}
	}
	s.Drain()
	s.Close(t)
}

// TestShutdownLosesNotifications: a notification that is still queued when the worker closes counts as not sent.
func TestShutdownLosesNotifications(t *testing.T) {
	p := notifying(byAnything...)
	above(p)
	s := newScene(t, p, nil)
	s.fill(7, data(true, 0))
	s.Close(t)
	s.wantSuppressed(map[string]uint64{"shutdown": 7})
	if n := s.Count(wan, counters.DroppedShutdown); n != 7 {
		t.Errorf("%d frames dropped, expected 7", n)
	}
}

// TestNames: every reason and counter has a name of its own, but kinds that Classify does not distinguish share one.
func TestNames(t *testing.T) {
	names := map[string]bool{}
	for c := range counters.Counters {
		i := counters.Catalogue[c]
		name := i.Name + " " + i.Label + " " + i.Value
		if i.Name == "" || i.Help == "" || (i.Label == "") != (i.Value == "") || names[name] && !(c > counters.ReceivedFirst && i.Value == packet.ExtendedCNP.String()) {
			t.Errorf("counter %d: %+v", c, i)
		}
		names[name] = true
	}
	for s := counters.Suppression(1); s <= counters.Suppressions; s++ {
		if i := counters.Catalogue[counters.SuppressedFirst+counters.Counter(s-1)]; i.Value != s.String() || i.Value == "ok" {
			t.Errorf("reason %d is %q, its counter's %q", s, s.String(), i.Value)
		}
	}
	for n := range packet.Notification(packet.ReceivedNotifications) {
		if i := counters.Catalogue[counters.ReceivedFirst+counters.Counter(n)]; i.Value != n.Received().String() {
			t.Errorf("notification %d is %q, its counter's %q", n, n.String(), i.Value)
		}
	}
}
