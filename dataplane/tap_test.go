package dataplane_test

import (
	"net/netip"
	"testing"

	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/internal/prefix"
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
	if n := r.Count(1, counters.ConsumedTapped); n < 5 || n > 110 { // catching up is bounded
		t.Errorf("%d frames left the queue in 100 ms, expected at most 1 a ms and some", n)
	}
	begin := r.Now
	r.Drain()
	queued, dropped := r.Count(1, counters.ConsumedTapped), r.Count(1, counters.DroppedQueueFrames)
	if queued+dropped != frames || dropped == 0 {
		t.Errorf("%d frames tapped and %d dropped, expected %d together, and some dropped", queued, dropped, frames)
	}
	if took := r.Now - begin; took < 800e6 {
		t.Errorf("the queue drained in %d ns, expected about a millisecond a frame", took)
	}
	if len(r.Sent[0]) != 0 || r.Count(1, counters.TxPackets) != 0 {
		t.Errorf("%d frames were sent, %d counted as forwarded; expected none", len(r.Sent[0]), r.Count(1, counters.TxPackets))
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
		if n := r.Count(port, counters.ConsumedTapped); n != frames {
			t.Errorf("port %d: %d frames tapped, expected %d", port, n, frames)
		}
	}
	if len(r.Sent[0]) != 0 {
		t.Errorf("%d frames were sent", len(r.Sent[0]))
	}
	r.Close(t)
}

// TestTapOfBothDirections: of the frames that come by one mirror port, those of the fabric's hosts count as received from the fabric, and all others
// as received from the WAN. The WAN's port counts a frame of the fabric as its queue's, and the other way round.
func TestTapOfBothDirections(t *testing.T) {
	const frames = 300
	p := testkit.DefaultPolicy(2)
	p.Ports[0].FabricHosts = prefix.New([]prefix.Entry[struct{}]{{Prefix: netip.MustParsePrefix("10.1.0.0/16")}})
	r := testkit.New(t, testkit.Setup{Policy: p, Rate: 400e9, Burst: 64, Change: func(c *dataplane.Config) {
		for i := range c.Ports {
			c.Ports[i].Tap = true
		}
	}})
	arp := make([]byte, 60)
	arp[12], arp[13] = 8, 6
	for range frames {
		r.Inject(t, 0, testkit.RoCE{Src: "10.1.0.1", Dst: "10.9.0.9", DestQP: 5, Size: 1000}.Frame())
		r.Inject(t, 0, testkit.RoCE{Src: "10.9.0.9", Dst: "10.1.0.1", DestQP: 6, Size: 1000}.Frame())
		r.Inject(t, 0, arp)
	}
	r.Drain()
	for port, want := range []uint64{frames, 2 * frames} {
		received, tapped := r.Count(port, counters.RxPackets), r.Count(1-port, counters.ConsumedTapped)
		if received != want || tapped != want {
			t.Errorf("port %d received %d frames, and %d left the other port's queue; expected %d", port, received, tapped, want)
		}
	}
	flows := flowsOf(r)
	for k := range flows {
		if want := map[uint32]uint16{5: 0, 6: 1}[k.DestQP]; k.Port != want {
			t.Errorf("the flow to QP %d arrives at port %d, expected %d", k.DestQP, k.Port, want)
		}
	}
	if len(flows) != 2 {
		t.Errorf("%d flows, expected 2", len(flows))
	}
	r.Close(t)
}
