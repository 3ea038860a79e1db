package dataplane_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/testkit"
)

// TestSnapshot: whatever its capacity, every flow is in it once with its counters, and a step copies a bounded number.
func TestSnapshot(t *testing.T) {
	const flows = 700
	for _, c := range []struct {
		capacity int
		busy     bool // frames come while it is taken
		least    int  // steps
	}{{flows, false, flows / 128}, {1000, false, flows / 128}, {7, false, flows / 7}, {1, false, flows}, {flows, true, flows / 32}} {
		r := testkit.New(t, testkit.Setup{Forget: true})
		w := r.Plane.Worker(0)
		for flow := range uint32(flows) {
			for range 1 + flow%3 {
				r.Inject(t, fabric, data(true, flow).Frame())
			}
			r.Settle()
			r.Drain()
		}
		s, steps := &dataplane.Snapshot{Flows: make([]dataplane.FlowRecord, 0, c.capacity)}, 0
		seen := map[flowtable.Key]bool{}
		for !s.End {
			s.Flows = s.Flows[:0]
			if !w.Ask(s) {
				t.Fatal("busy though nothing was asked")
			}
			if w.Ask(&dataplane.Snapshot{}) {
				t.Fatal("two may ask at once")
			}
			for w.Asked(s) {
				if c.busy {
					r.Inject(t, wan, data(true, 0).Frame())
				}
				w.Step()
				steps++
			}
			for i := range s.Flows {
				f := &s.Flows[i]
				if seen[f.Key] {
					t.Errorf("flow to QP %d comes twice", f.Key.DestQP)
				}
				seen[f.Key] = true
				if n := 1 + uint64(f.Key.DestQP-data(true, 0).DestQP)%3; f.Key.Port == fabric && (f.Traffic.Packets != n || f.Traffic.Bytes == 0) {
					t.Errorf("flow to QP %d: %d packets, %d octets, want %d", f.Key.DestQP, f.Traffic.Packets, f.Traffic.Bytes, n)
				}
			}
		}
		if len(seen) < flows || steps < c.least {
			t.Errorf("capacity %d: %d flows in %d steps, want %d in at least %d", c.capacity, len(seen), steps, flows, c.least)
		}
		r.Drain()
		r.Close(t)
	}
}

// TestSnapshotOfEndedFlows: the places of flows that have ended are passed over.
func TestSnapshotOfEndedFlows(t *testing.T) {
	r := testkit.New(t, testkit.Setup{Forget: true})
	for flow := range uint32(100) {
		r.Inject(t, fabric, data(true, flow).Frame())
		r.Settle()
		r.Drain()
	}
	w := r.Plane.Worker(0)
	for range 100 {
		r.Advance(2e9)
		r.Inject(t, fabric, data(false, 1000).Frame())
		r.Drain()
	}
	s := &dataplane.Snapshot{Flows: make([]dataplane.FlowRecord, 0, 200)}
	for w.Ask(s); w.Asked(s); {
		w.Step()
	}
	if len(s.Flows) != 1 || s.Flows[0].Key.DestQP != data(false, 1000).DestQP || s.Flows[0].Traffic.Packets != 100 {
		t.Errorf("%d flows: %+v", len(s.Flows), s.Flows[:min(len(s.Flows), 2)])
	}
	r.Close(t)
}

// TestSnapshotForgotten: one that nobody waits for any more is replaced by another.
func TestSnapshotForgotten(t *testing.T) {
	r := testkit.New(t, testkit.Setup{})
	w, s := r.Plane.Worker(0), &dataplane.Snapshot{Flows: make([]dataplane.FlowRecord, 0, 1)}
	if !w.Ask(s) || !w.Asked(s) {
		t.Error("not asked")
	}
	w.Forget(s)
	if w.Asked(s) || !w.Ask(&dataplane.Snapshot{}) {
		t.Error("not forgotten")
	}
	w.Forget(s) // another one is asked for now
	if w.Ask(s) {
		t.Error("forgot what is not its own")
	}
	w.Step()
	if !w.Ask(s) {
		t.Error("a snapshot of no capacity is never done")
	}
	w.Step()
	r.Close(t)
}

// TestSnapshotConcurrently: others take snapshots, and give some up, while the worker runs.
func TestSnapshotConcurrently(t *testing.T) {
	r := testkit.New(t, testkit.Setup{Forget: true, Flows: 64})
	w := r.Plane.Worker(0)
	var done atomic.Bool
	var reading sync.WaitGroup
	var rounds [2]atomic.Int64
	for reader := range rounds {
		reading.Go(func() {
			for n := 0; !done.Load(); n++ {
				s := &dataplane.Snapshot{Flows: make([]dataplane.FlowRecord, 0, 10)}
				if !w.Ask(s) {
					runtime.Gosched()
					continue
				}
				if n%3 == 0 {
					w.Forget(s)
					continue
				}
				for w.Asked(s) && !done.Load() {
					runtime.Gosched()
				}
				if w.Asked(s) {
					return
				}
				for i := range s.Flows {
					if f := &s.Flows[i]; f.Traffic.Packets == 0 || f.Traffic.Bytes == 0 {
						t.Errorf("flow %+v of which nothing was seen", f)
					}
				}
				rounds[reader].Add(1)
			}
		})
	}
	for n := uint32(0); (rounds[0].Load() < 50 || rounds[1].Load() < 50) && !t.Failed(); n++ {
		r.Inject(t, fabric, data(true, n%200).Frame())
		r.Settle()
		r.Drain()
		runtime.Gosched()
	}
	done.Store(true)
	reading.Wait()
	r.Close(t)
}
