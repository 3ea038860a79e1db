package dataplane_test

import (
	"slices"
	"testing"

	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/flowtable"
)

// TestQueueFlows: a worker that is asked for the flows of a queue gives those that have frames in it, with their bytes, and those that it is asked for by
// name if they live; it never gives more than there is space for.
func TestQueueFlows(t *testing.T) {
	s := newScene(t, notifying(), nil)
	s.Plane.SetWallClock(1e18)
	w := s.Plane.Worker(0)
	s.arriveAt(wan, data(true, 9).Frame()) // waits elsewhere
	s.fill(300, data(false, 1))
	s.fill(20, data(false, 2))
	ask := func(space int, of ...flowtable.Ref) []dataplane.FlowRecord {
		t.Helper()
		q := &dataplane.Snapshot{Flows: make([]dataplane.FlowRecord, 0, space), Queue: &dataplane.QueueFlows{Port: wan, Of: of}}
		if !w.Ask(q) {
			t.Fatal("busy though nothing was asked")
		}
		w.Step()
		if w.Asked(q) || !q.End || q.Queue.Time != 1e18+s.Now {
			t.Fatalf("asked %v, end %v, at %d", w.Asked(q), q.End, q.Queue.Time)
		}
		return q.Flows
	}
	bytes := func(flows []dataplane.FlowRecord) map[uint32]uint64 {
		all := map[uint32]uint64{}
		for i := range flows {
			all[flows[i].Key.DestQP] = flows[i].Queued
		}
		return all
	}
	flows := ask(100)
	if got := bytes(flows); len(got) != 2 || got[101] != 300_000 || got[102] != 20_000 {
		t.Errorf("bytes by QP: %v", got)
	}
	elsewhere := flowtable.Ref{Index: 1, Generation: 1}
	if got := bytes(ask(100, elsewhere, flowtable.Ref{Index: 1, Generation: 9})); len(got) != 3 {
		t.Errorf("with one that waits elsewhere, and one that has ended: %v", got)
	}
	if got := ask(1, elsewhere); len(got) != 1 || got[0].Flow != elsewhere {
		t.Errorf("with space for one: %+v", got)
	}
	if !slices.ContainsFunc(flows, func(f dataplane.FlowRecord) bool { return f.Traffic.Bytes == 300_000 }) {
		t.Error("no flow has all its bytes")
	}
	s.finish()
}

// TestTakePeak: no peak is missed between two calls, and none is given twice.
func TestTakePeak(t *testing.T) {
	s := newScene(t, notifying(), nil)
	s.fill(5, data(false, 1))
	s.Drain()
	if first, second := s.Plane.TakePeak(wan, 0), s.Plane.TakePeak(wan, 0); first != 5000 || second != 0 {
		t.Errorf("the peak is %d, then %d", first, second)
	}
	s.fill(2, data(false, 1))
	if peak, most := s.Plane.TakePeak(wan, 0), s.Plane.Port(wan).Watermark[0]; peak >= 5000 || peak < 2000 || most != 5000 {
		t.Errorf("the peak is %d, the watermark %d", peak, most)
	}
	if m := s.Plane.Port(wan).Marked[0]; m != s.Count(wan, counters.ECNMarked) || m == 0 {
		t.Errorf("%d packets marked in the class, %d at the port", m, s.Count(wan, counters.ECNMarked))
	}
	s.finish()
}
