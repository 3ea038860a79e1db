package dataplane_test

import (
	"slices"
	"testing"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
)

// TestDrain: from the moment of a drain on no sender is asked to slow down, each one that was gets its Resume although the queue is still full, and the gateway says how
// many have had none. Without the drain they would wait.
func TestDrain(t *testing.T) {
	for _, law := range []bool{false, true} {
		for _, drains := range []bool{true, false} {
			p := notifying(grant("198.18.0.0/16", packet.LongHaulCNP))
			p.Ports[wan].Resumes, p.Ports[wan].ResumePercent = true, 50
			if law {
				p.Ports[wan].Law = congestion.Law{Line: 0.125, Reference: 2000}
			}
			s := newScene(t, p, func(s *testkit.Setup) { s.Rate, s.Capacity = 1_000_000_000, 8_000_000 })
			send := func(packets int) {
				for range packets {
					for flow := range uint32(3) {
						s.fill(1, data(false, flow))
					}
					s.Advance(2_000)
				}
			}
			send(100)
			s.Advance(1_000_000) // what is queued for the senders leaves
			s.Settle()
			asked := s.Take(fabric)
			if len(asked) == 0 {
				t.Fatalf("law %v: nobody was notified: %v", law, s.suppressed(fabric))
			}
			for _, n := range asked {
				if d := decoded(t, n); d.LongHaul.Action != packet.Action(congestion.RateReduce) {
					t.Errorf("law %v: %+v", law, d.LongHaul)
				}
			}
			next := *s.Plane.Policy()
			next.Ports, next.Drain = slices.Clone(next.Ports), drains
			if _, known := s.Plane.Slowed(); known {
				t.Error("the senders are counted without a drain")
			}
			if err := s.Plane.SetPolicy(&next); err != nil {
				t.Fatal(err)
			}
			send(200)
			resumed, reduced := map[uint32]bool{}, 0
			for _, n := range s.Take(fabric) {
				if d := decoded(t, n); d.LongHaul.Action == packet.Action(congestion.Resume) {
					resumed[d.LongHaul.SourceQP] = true
				} else {
					reduced++
				}
			}
			senders, known := s.Plane.Slowed()
			switch {
			case drains && (len(resumed) == 0 || reduced > 0 || senders != 0 || !known || s.suppressed(fabric)[counters.Stopping.String()] == 0):
				t.Errorf("law %v: %d senders were resumed and %d reductions sent, %d senders (%v) wait for a Resume; suppressed %v", law, len(resumed), reduced, senders, known, s.suppressed(fabric))
			case !drains && (len(resumed) > 0 || known):
				t.Errorf("law %v: without a drain %d senders were resumed", law, len(resumed))
			}
			if next := *s.Plane.Policy(); drains {
				next.Drain = false
				if err := s.Plane.SetPolicy(&next); err != nil {
					t.Fatal(err)
				}
				if send(300); len(s.Take(fabric)) == 0 {
					t.Errorf("law %v: nobody is notified after the drain", law)
				}
				if _, known := s.Plane.Slowed(); known {
					t.Error("the senders are counted after the drain")
				}
			}
			s.Drain()
			s.Close(t)
		}
	}
}
