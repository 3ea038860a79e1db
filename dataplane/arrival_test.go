package dataplane_test

import (
	"bytes"
	"maps"
	"testing"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/ratelimit"
)

// TestCEOnArrival: three packets of a flow come in with CE within 3 us, and one 50 us after the first. Where the gateway answers for a flow, its
// sender is notified twice, and where it also clears CE, no packet goes on with it.
func TestCEOnArrival(t *testing.T) {
	longHaul := grant("198.18.0.0/16", packet.LongHaulCNP)
	for _, c := range []struct {
		name       string
		change     func(*dataplane.Policy)
		flow       testkit.RoCE
		port       int
		notified   uint64
		observed   uint64
		cleared    uint64
		suppressed map[string]uint64
	}{
		{"off by default", func(p *dataplane.Policy) { p.Ports[wan].OnArrival, p.Ports[wan].ClearCE = false, false }, data(false, 0), fabric, 0, 0, 0, nil},
		{"answered and cleared", nil, data(false, 0), fabric, 2, 0, 4, nil},
		{"answered only", func(p *dataplane.Policy) { p.Ports[wan].ClearCE = false }, data(false, 0), fabric, 2, 0, 0, nil},
		{"not granted", nil, with(data(false, 0), "203.0.113.9"), fabric, 0, 0, 0, map[string]uint64{"no-endpoint": 2}},
		{"not confirmed", nil, data(false, 99), fabric, 0, 0, 0, map[string]uint64{"source-qp-unknown": 2}},
		{"not enabled", func(p *dataplane.Policy) { p.Who.Enabled = [packet.SentNotifications]bool{} }, data(false, 0), fabric, 0, 0, 0, map[string]uint64{"not-enabled": 2}},
		{"beyond a limit", func(p *dataplane.Policy) { p.PerPort = ratelimit.PerSecond(1) }, data(false, 0), fabric, 1, 0, 3, map[string]uint64{"port-limit": 1}},
		{"observed", func(p *dataplane.Policy) { p.Observe = true }, data(false, 0), fabric, 0, 2, 0, nil},
		{"one kind observed", func(p *dataplane.Policy) { p.ObserveKind[packet.LongHaulCNP] = true }, data(false, 0), fabric, 0, 2, 0, nil},
		{"from the WAN", nil, data(false, 0), wan, 0, 0, 0, nil},
		{"management QP", nil, toQP(data(false, 0), 1), fabric, 0, 0, 0, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := notifying(longHaul)
			for port := range p.Ports {
				p.Ports[port].Thresholds = congestion.Thresholds{KMin: 1 << 30, KMax: 1 << 31}
				p.Ports[port].OnArrival, p.Ports[port].ClearCE = true, true
			}
			if c.change != nil {
				c.change(p)
			}
			s := newScene(t, p, nil)
			c.flow.ECN = packet.CE
			for range 3 {
				s.arriveAt(c.port, c.flow.Frame())
				s.Advance(1_000)
			}
			s.Advance(47_000)
			s.arriveAt(c.port, c.flow.Frame())
			s.Drain()
			out := s.Take(1 - c.port)
			sent, observed := counters.SentFirst+counters.Counter(packet.LongHaulCNP), counters.ObservedFirst+counters.Counter(packet.LongHaulCNP)
			if got := s.Count(c.port, sent); got != c.notified {
				t.Errorf("%d notifications, expected %d", got, c.notified)
			}
			if got := s.Count(c.port, observed); got != c.observed {
				t.Errorf("%d notifications observed, expected %d", got, c.observed)
			}
			if got := s.Count(c.port, counters.TriggeredFirst+3); got != c.notified+c.observed {
				t.Errorf("%d notifications triggered by CE on arrival", got)
			}
			if got := s.suppressed(c.port); !maps.Equal(got, c.suppressed) {
				t.Errorf("suppressed %v, expected %v", got, c.suppressed)
			}
			checkCleared(t, s, c.port, out, c.flow, c.cleared)
			for _, n := range s.Take(c.port) {
				if n.Built && longHaulOf(t, n) != [6]uint32{42, 0, 0, sourceQP, 0, 0} {
					t.Errorf("notification %v", longHaulOf(t, n))
				}
			}
			s.Close(t)
		})
	}
}

// TestCEOfUnconfirmedFlow: a Fast CNP needs no source QP, so the sender of a flow whose QP isn't confirmed gets one. CE of such a flow is never
// cleared.
func TestCEOfUnconfirmedFlow(t *testing.T) {
	p := notifying(byAnything...)
	p.Ports[wan].Thresholds = congestion.Thresholds{KMin: 1 << 30, KMax: 1 << 31}
	p.Ports[wan].OnArrival, p.Ports[wan].ClearCE = true, true
	s := newScene(t, p, nil)
	for _, c := range []struct {
		flow    uint32
		cleared uint64
	}{{99, 0}, {0, 3}} {
		f := data(true, c.flow)
		f.ECN = packet.CE
		sent := s.Count(fabric, counters.SentFirst+counters.Counter(packet.FastCNP))
		s.fill(3, f)
		s.Drain()
		if got := s.Count(fabric, counters.SentFirst+counters.Counter(packet.FastCNP)) - sent; got != 1 {
			t.Errorf("flow %d: %d Fast CNPs", c.flow, got)
		}
		if got := s.Count(fabric, counters.CECleared); got != c.cleared {
			t.Errorf("flow %d: %d packets cleared", c.flow, got)
		}
	}
	s.Close(t)
}

func with(f testkit.RoCE, src string) testkit.RoCE { f.Src = src; return f }

func toQP(f testkit.RoCE, qp uint32) testkit.RoCE { f.DestQP = qp; return f }

// checkCleared compares what went on with what came in: as many frames as were cleared have ECT(0) instead of CE, with right checksums, and nothing
// else of any frame has changed.
func checkCleared(t *testing.T, s *scene, port int, out []testkit.Sent, flow testkit.RoCE, cleared uint64) {
	t.Helper()
	if got := s.Count(port, counters.CECleared); got != cleared {
		t.Errorf("%d packets counted as cleared, expected %d", got, cleared)
	}
	as := func(ecn uint8) []byte { flow.ECN = ecn; return flow.Frame() }
	marked, capable := as(packet.CE), as(packet.ECT0)
	found := uint64(0)
	for _, f := range out {
		switch {
		case bytes.Equal(f.Octets, capable):
			found++
		case !f.Built && !bytes.Equal(f.Octets, marked):
			t.Fatalf("a frame was changed: % x", f.Octets[:64])
		}
	}
	if found != cleared {
		t.Errorf("%d packets went on without CE, expected %d", found, cleared)
	}
}
