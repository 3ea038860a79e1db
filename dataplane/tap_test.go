package dataplane_test

import (
	"testing"

	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/internal/testkit"
)

// TestTap: a gateway behind mirror ports sends nothing, whatever it receives. Its queue is the one that the mirrored port would have: it fills, drops
// and drains at the configured rate, each frame is counted, and each buffer is returned. More frames wait than one exchange can free.
func TestTap(t *testing.T) {
	const frames, size = 1500, 1000
	r := testkit.New(t, testkit.Setup{Rate: 8e6 * (size + 24) / 1e3, Frames: 1024, Capacity: 1 << 20, Change: func(c *dataplane.Config) {
		for i := range c.Ports {
			c.Ports[i].Tap = true
		}
	}})
	for range frames {
		r.Inject(t, 0, testkit.RoCE{Src: "10.1.0.1", Dst: "10.9.0.9", DestQP: 5, Size: size}.Frame())
	}
	r.Settle()
	if depth := r.Plane.Port(1).Depth[0]; depth < 1000*size {
		t.Errorf("%d bytes wait in the simulated queue, expected most of %d frames", depth, frames)
	}
	r.Balance(t)
	r.Advance(100e6)
	r.Settle()
	if n := r.Count(1, dataplane.ConsumedTapped); n < 5 || n > 110 { // catching up is bounded
		t.Errorf("%d frames left the queue in 100 ms, expected at most 1 a ms and some", n)
	}
	begin := r.Now
	r.Drain()
	queued, dropped := r.Count(1, dataplane.ConsumedTapped), r.Count(1, dataplane.DroppedQueueFrames)
	if queued+dropped != frames || dropped == 0 {
		t.Errorf("%d frames tapped and %d dropped, expected %d together, and some dropped", queued, dropped, frames)
	}
	if took := r.Now - begin; took < 800e6 {
		t.Errorf("the queue drained in %d ns, expected about a millisecond a frame", took)
	}
	if len(r.Sent[0]) != 0 || r.Count(1, dataplane.TxPackets) != 0 {
		t.Errorf("%d frames were sent, %d counted as forwarded; expected none", len(r.Sent[0]), r.Count(1, dataplane.TxPackets))
	}
	r.Close(t)
}

// TestTapAtFullRate: frames of both directions pass as fast as they arrive, and what one exchange can't free waits for the next one.
func TestTapAtFullRate(t *testing.T) {
	const frames = 1000
	r := testkit.New(t, testkit.Setup{Rate: 400e9, Burst: 64, Change: func(c *dataplane.Config) {
		for i := range c.Ports {
			c.Ports[i].Tap = true
		}
	}})
	for range frames {
		r.Inject(t, 0, testkit.RoCE{Src: "10.1.0.1", Dst: "10.9.0.9", DestQP: 5, Size: 1000}.Frame())
		r.Inject(t, 1, testkit.RoCE{Src: "10.9.0.9", Dst: "10.1.0.1", DestQP: 6, Size: 1000}.Frame())
	}
	r.Drain()
	for port := range 2 {
		if n := r.Count(port, dataplane.ConsumedTapped); n != frames {
			t.Errorf("port %d: %d frames tapped, expected %d", port, n, frames)
		}
	}
	if len(r.Sent[0]) != 0 {
		t.Errorf("%d frames were sent", len(r.Sent[0]))
	}
	r.Close(t)
}
