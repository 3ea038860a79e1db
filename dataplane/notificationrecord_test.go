package dataplane_test

import (
	"testing"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/notify"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing"
)

// TestRecord: the record of a notification says what the queue held, which threshold that was beyond, and which flow was asked for what.
func TestRecord(t *testing.T) {
	for _, observe := range []bool{false, true} {
		p := notifying(grant("198.18.0.0/16", packet.LongHaulCNP))
		p.Observe, p.Ports[wan].PerFlow = observe, 10*millisecond
		s := newScene(t, p, nil)
		s.Plane.SetWallClock(1e18)
		s.fill(2, data(false, 3))
		s.fill(4, data(false, 1)) // the fifth and sixth packet are above K_max, and the sixth within the flow's interval
		records := s.records()
		if len(records) != 1 {
			t.Fatalf("observe %v: %d records", observe, len(records))
		}
		r := records[0]
		wantOutcome := map[bool]counters.Outcome{false: counters.Emitted, true: counters.Observed}[observe]
		if r.Outcome != wantOutcome || r.Format != packet.LongHaulCNP || r.Decision.Action != congestion.RateReduce || r.Decision.Parameter != 30 {
			t.Errorf("observe %v: %v %v %v %d", observe, r.Outcome, r.Format, r.Decision.Action, r.Decision.Parameter)
		}
		if r.Cause != congestion.ByDepth || r.Threshold != kMax || r.Metrics.Depth != 5000 || r.Queued != 3000 || r.FlowBytes != 3000 || r.Class != 0 {
			t.Errorf("observe %v: cause %b, threshold %d, depth %d, %d bytes of the flow queued, %d arrived", observe, r.Cause, r.Threshold, r.Metrics.Depth,
				r.Queued, r.FlowBytes)
		}
		if r.Key.Src != address(sender4) || r.Key.Dst != address(receiver4) || r.Key.DestQP != 101 || r.QP.SourceQP() != sourceQP+1 ||
			r.QP.Evidence() != pairing.EvidenceStatic || r.Time != 1e18+s.Now {
			t.Errorf("observe %v: flow %+v from QP %v, at %d", observe, r.Key, r.QP, r.Time)
		}
		suppressed := make([]notify.NotificationRecord, 10)
		n, _ := s.Plane.Worker(0).SuppressedNotifications().Read(0, suppressed)
		if n != 1 || suppressed[0].Reason != counters.FlowLimit || suppressed[0].Outcome != counters.Suppressed || suppressed[0].Metrics.Depth != 6000 ||
			suppressed[0].Key.DestQP != 101 || len(suppressed[0].Captured()) != 0 {
			t.Errorf("observe %v: %d suppressed, %+v", observe, n, suppressed[0])
		}
		if !observe {
			s.finish()
		}
	}
}

// TestSuppressedOften: of one reason there is a record in 10 ms, whatever happens meanwhile; each is counted.
func TestSuppressedOften(t *testing.T) {
	p := notifying()
	s := newScene(t, p, nil)
	s.fill(100, data(false, 1))
	s.Advance(10 * millisecond)
	s.fill(100, data(false, 1))
	n, _ := s.Plane.Worker(0).SuppressedNotifications().Read(0, make([]notify.NotificationRecord, 100))
	if counted := s.suppressed(fabric)["no-endpoint"]; n != 2 || counted < 150 {
		t.Errorf("%d records of %d", n, counted)
	}
	s.finish()
}

// TestRecordOfArrival: a packet that came in with CE is the cause, and no queue of the gateway's has a threshold.
func TestRecordOfArrival(t *testing.T) {
	p := notifying(byAnything...)
	p.Ports[wan].OnArrival = true
	s := newScene(t, p, nil)
	f := data(false, 1)
	f.ECN = packet.CE
	s.arrive(f.Frame())
	records := s.records()
	if len(records) != 1 || records[0].Cause != congestion.ByArrival || records[0].Threshold != 0 || records[0].Decision.Action != congestion.Notify {
		t.Errorf("%+v", records)
	}
	if notes := s.finish(); len(notes) != 1 {
		t.Errorf("%d notifications", len(notes))
	}
}
