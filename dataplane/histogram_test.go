package dataplane_test

import (
	"testing"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/telemetry"
)

// counts is a histogram's buckets that aren't empty, and its sum.
func counts(h telemetry.Histogram) (buckets map[int]uint64, sum uint64) {
	buckets = map[int]uint64{}
	for i, n := range h.Count {
		if n > 0 {
			buckets[i] = n
		}
	}
	return buckets, h.Sum
}

func wantHistogram(t *testing.T, what string, m *telemetry.Metric, h telemetry.Histogram, values ...uint64) {
	t.Helper()
	var want telemetry.Histogram
	for _, v := range values {
		want.Count[telemetry.Bucket(m.Exponent(), v)]++
		want.Sum += v
	}
	if h != want {
		buckets, sum := counts(h)
		t.Errorf("%s: %v, sum %d; expected the values %d", what, buckets, sum, values)
	}
}

// TestReactionTime: it is from the step that received the packet to the one before which the device took the notification, also where that has to
// wait. What the gateway only observes has none.
func TestReactionTime(t *testing.T) {
	for _, c := range []struct {
		name    string
		observe bool
		refuse  bool    // the device takes nothing in the first exchange
		steps   []int64 // ns after the reception
		want    []uint64
	}{
		{"at once", false, false, []int64{3_000}, []uint64{2_992}}, // in units of 16 ns
		{"refused once", false, true, []int64{3_000, 50_000}, []uint64{50_000}},
		{"observed", true, false, []int64{3_000}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := notifying(grant("198.18.0.0/16", packet.LongHaulCNP))
			p.Ports[wan].Thresholds = congestion.Thresholds{KMin: 1 << 30, KMax: 1 << 31}
			p.Ports[wan].OnArrival, p.Observe = true, c.observe
			r := testkit.New(t, testkit.Setup{Policy: p, Static: knownQPs(t)})
			w, f := r.Plane.Worker(0), data(false, 0)
			f.ECN = packet.CE
			r.Inject(t, fabric, f.Frame())
			w.Step()
			if c.refuse {
				r.Backends[0].Limit(fabric, 0)
			}
			now := int64(0)
			for _, at := range c.steps {
				r.Advance(at - now)
				now = at
				w.Step()
				r.Backends[0].Limit(fabric, 32)
			}
			r.Drain()
			r.Advance(2 * ms)
			r.Settle()
			h := r.Plane.Histograms()
			wantHistogram(t, "reaction time at the fabric port", telemetry.ReactionTime, h.Reaction[fabric], c.want...)
			wantHistogram(t, "reaction time at the WAN port", telemetry.ReactionTime, h.Reaction[wan])
			r.Close(t)
		})
	}
}

// TestLoopGap: the time between steps, for each worker; the first step has none.
func TestLoopGap(t *testing.T) {
	r := testkit.New(t, testkit.Setup{Workers: 2})
	for i, gaps := range [][]uint64{{100, 2_000_000, 300}, {7, 1_500_000_000}} {
		w := r.Plane.Worker(i)
		w.Step()
		for _, gap := range gaps {
			r.Advance(int64(gap))
			w.Step()
		}
		if n := w.Steps(); n != uint64(len(gaps))+1 {
			t.Errorf("worker %d has made %d steps, expected %d", i, n, len(gaps)+1)
		}
	}
	h := r.Plane.Histograms()
	wantHistogram(t, "not yet published", telemetry.LoopGap, h.LoopGap[0], 100, 2_000_000)
	wantHistogram(t, "worker 1", telemetry.LoopGap, h.LoopGap[1], 7, 1_500_000_000)
	r.Close(t)
	h = r.Plane.Histograms()
	wantHistogram(t, "after the end", telemetry.LoopGap, h.LoopGap[0], 100, 2_000_000, 300)
}

// TestQueueOccupancy: the first worker samples once a millisecond what waits at all workers together.
func TestQueueOccupancy(t *testing.T) {
	r := testkit.New(t, testkit.Setup{Workers: 2, Rate: 1_000_000})
	r.Settle() // the first sample
	frame := testkit.RoCE{Src: sender4, Dst: receiver4, DestQP: 7, Size: 1000}.Frame()
	for i := range 2 {
		for range 4 {
			r.InjectAt(t, i, fabric, frame)
		}
	}
	r.Settle() // one leaves at once; 7 wait, within the millisecond
	r.Advance(ms)
	r.Plane.Worker(1).Step()
	r.Plane.Worker(0).Step()
	waiting := r.Plane.Port(wan).Depth[0]
	if waiting < 7*1000 {
		t.Fatalf("%d bytes wait", waiting)
	}
	h := r.Plane.Histograms()
	wantHistogram(t, "the WAN port", telemetry.QueueOccupancy, h.Occupancy[wan][0], 0, waiting)
	wantHistogram(t, "the fabric port", telemetry.QueueOccupancy, h.Occupancy[fabric][0], 0, 0)
	r.Drain()
	r.Close(t)
}
