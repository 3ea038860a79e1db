package dataplane_test

import (
	"testing"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
)

// TestAdaptAdjusts: while the queue is full, thresholds, rates and the interval between notifications shrink to the lower bound, with which
// senders are notified earlier; the policy that the operator gave isn't changed.
func TestAdaptAdjusts(t *testing.T) {
	p := notifying(byAnything...)
	w := &p.Ports[wan]
	w.Adjust = congestion.AdjustPolicy{MinPercent: 50, MaxPercent: 200}
	w.Rate, w.PerFlow, w.Marking, w.Growth = 1_000_000, 8_000_000, 900_000, 1000
	w.Sizing = congestion.Sizing{KBase: 80_000, Alpha: 1, KMinPercent: 50, Capacity: 100_000}
	w.Thresholds = congestion.Thresholds{KMin: 40_000, KMax: 80_000}
	s := newScene(t, p, func(s *testkit.Setup) { s.Capacity = 100_000 })
	for range 200 {
		s.fill(10, data(false, 0))
		s.Plane.Adapt(s.Now)
		s.Advance(50 * ms)
	}
	if s.Count(wan, counters.DroppedQueueOctets) == 0 {
		t.Error("nothing was dropped: not what was to be tested")
	}
	got := s.Plane.Policy().Ports[wan]
	if got.Percent != 50 || got.Thresholds != (congestion.Thresholds{KMin: 20_000, KMax: 40_000}) || got.PerFlow != 4_000_000 || got.Marking != 450_000 || got.Growth != 500 {
		t.Errorf("%d percent: %+v, interval %d, rates %d and %d", got.Percent, got.Thresholds, got.PerFlow, got.Marking, got.Growth)
	}
	if p.Ports[wan].KMax != 80_000 {
		t.Error("the operator's policy was changed")
	}
	s.Drain()
	s.Close(t)
}

// TestAdaptIgnoresArrivals: notifications because of packets that came in with CE say nothing of the queue.
func TestAdaptIgnoresArrivals(t *testing.T) {
	p := notifying(byAnything...)
	w := &p.Ports[wan]
	w.Adjust, w.OnArrival, w.Rate = congestion.AdjustPolicy{MinPercent: 50, MaxPercent: 200}, true, 10e9
	s := newScene(t, p, func(s *testkit.Setup) { s.Rate = 10e9 })
	marked := data(false, 0)
	marked.ECN = packet.CE
	for range 100 {
		s.arrive(marked.Frame())
		s.Drain()
		s.Plane.Adapt(s.Now)
		s.Advance(50 * ms)
	}
	if s.Count(fabric, counters.TriggeredFirst+3) == 0 {
		t.Error("no sender was notified: not what was to be tested")
	}
	if got := s.Plane.Policy().Ports[wan].Percent; got != 100 {
		t.Errorf("%d percent", got)
	}
	s.Close(t)
}

// TestAdaptIgnoresRelayed: notifications that another gateway asked for say nothing of the queue.
func TestAdaptIgnoresRelayed(t *testing.T) {
	p := proxyFor(packet.StandardCNP)
	p.Ports[wan].Adjust, p.Ports[wan].Rate = congestion.AdjustPolicy{MinPercent: 50, MaxPercent: 200}, 10e9
	s := newScene(t, p, func(s *testkit.Setup) { s.Rate = 10e9 })
	f := data(false, 0)
	for range 100 {
		s.arrive(f.Frame())
		s.arriveAt(wan, asking(t, f.Frame(), own4, 5))
		s.arrive(f.Frame())
		s.Drain()
		s.Plane.Adapt(s.Now)
		s.Advance(50 * ms)
	}
	if s.Count(fabric, counters.TriggeredFirst+congestion.Causes-1) == 0 {
		t.Error("no sender was notified: not what was to be tested")
	}
	if got := s.Plane.Policy().Ports[wan].Percent; got != 100 {
		t.Errorf("%d percent", got)
	}
	s.Close(t)
}

// TestSetPolicyKeepsRTT: a new policy goes by the RTT_est that was measured, and by the configured one where it says so.
func TestSetPolicyKeepsRTT(t *testing.T) {
	e := newEndToEnd(t, [2]*dataplane.Policy{probing(east4, west4, 100*ms), probing(west4, east4, 100*ms)}, 6*ms, 6*ms, 10e9)
	e.gateways[0].Inject(t, fabric, data(false, 0).Frame())
	e.goOn(26_000)
	plane := e.gateways[0].Plane
	wantRTT(t, plane, congestion.RTTSTAMP, 12*ms, 1000)
	if got, want := plane.Policy().Ports[wan].PerFlow, probing(east4, west4, 100*ms).Ports[wan].PerFlow; got != want || int64(got) == 12*ms {
		t.Errorf("an interval of %d ns, expected the operator's, %d", got, want)
	}
	next := probing(east4, west4, 100*ms)
	next.Ports[wan].Sizing.Alpha, next.Ports[wan].PerFlowIsRTT = 2, true
	if err := plane.SetPolicy(next); err != nil {
		t.Fatal(err)
	}
	wantRTT(t, plane, congestion.RTTSTAMP, 12*ms, 1000)
	if got := plane.Policy().Ports[wan].PerFlow; int64(got) != plane.Policy().Ports[wan].RTT {
		t.Errorf("an interval of %d ns", got)
	}
	configured := *next
	configured.Ports = append([]dataplane.PortPolicy(nil), next.Ports...)
	configured.Ports[wan].RTTFrom = congestion.RTTPolicy{}
	if err := plane.SetPolicy(&configured); err != nil {
		t.Fatal(err)
	}
	e.goOn(26_000)
	if got := plane.Policy().Ports[wan]; got.RTT != 40*ms || got.RTTSource != congestion.RTTConfigured {
		t.Errorf("RTT_est is %d by %v", got.RTT, got.RTTSource)
	}
	e.close()
}
