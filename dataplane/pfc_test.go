package dataplane_test

import (
	"bytes"
	"testing"

	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/link"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/lossless"
)

const (
	pfcSpeed = 1e9
	// refresh is a round number below half of the longest pause at pfcSpeed, 33.6 ms.
	refresh = 15 * ms
)

// losslessRig has a lossless class on a WAN port of 8 Mbps, so a byte a microsecond: XOff at 10 frames of 1000 bytes, XOn at 4.
func losslessRig(t testkit.T, workers int, change func(*testkit.Setup)) *testkit.Rig {
	f := flowControl(pfcSpeed)
	f.Lossless[losslessClass] = link.Lossless{On: true, Priority: losslessPriority, Thresholds: lossless.Thresholds{
		XOff: 10_000, XOn: 4000, XOffFrames: 500, XOnFrames: 400, Refresh: refresh, Limit: 100 * ms,
	}}
	s := testkit.Setup{Workers: workers, Rate: 8e6, Capacity: 1_000_000, Change: func(c *dataplane.Config) {
		classes(c)
		c.Ports[fabric].FlowControl = f
	}}
	if change != nil {
		change(&s)
	}
	return testkit.New(t, s)
}

// roce is a data packet of 1000 octets, of the lossless class or not.
func roce(dscp uint8) []byte {
	return testkit.RoCE{Src: sender4, Dst: receiver4, DestQP: 7, Size: 1000, DSCP: dscp}.Frame()
}

// pfcSays is a PFC frame that says of the lossless priority how long it has to stop.
func pfcSays(quanta uint16) []byte {
	b := make([]byte, 60)
	copy(b, []byte{0x01, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 0xa, 0x88, 0x08, 1, 1, 0, 1 << losslessPriority})
	b[18+2*losslessPriority], b[19+2*losslessPriority] = byte(quanta>>8), byte(quanta)
	return b
}

// takeAll returns what any worker has sent by a port since the last call.
func takeAll(r *testkit.Rig, port int) (out [][]byte) {
	for worker := range r.Sent {
		var rest []testkit.Sent
		for _, s := range r.Sent[worker] {
			if s.Port == port {
				out = append(out, s.Octets)
			} else {
				rest = append(rest, s)
			}
		}
		r.Sent[worker] = rest
	}
	return out
}

// TestPFCSent: one frame an event, whatever the number of workers: at XOff, at each refresh, at XOn.
func TestPFCSent(t *testing.T) {
	for workers := 1; workers <= 2; workers++ {
		r := losslessRig(t, workers, nil)
		expect := func(when string, want ...[]byte) {
			t.Helper()
			r.Settle()
			got := takeAll(r, fabric)
			if len(got) != len(want) {
				t.Fatalf("%d workers: %s: %d frames, expected %d", workers, when, len(got), len(want))
			}
			for i := range want {
				if !bytes.Equal(got[i], want[i]) {
					t.Errorf("%d workers: %s: %x, expected %x", workers, when, got[i], want[i])
				}
			}
		}
		stop, goOn := pfcSays(0xffff), pfcSays(0)
		for i := range 11 { // the first is on the line at once
			r.InjectAt(t, i%workers, fabric, roce(losslessDSCP))
			r.Settle()
		}
		for range 20 {
			r.InjectAt(t, 0, fabric, roce(0))
		}
		expect("10 frames wait")
		r.InjectAt(t, workers-1, fabric, roce(losslessDSCP))
		expect("11 frames wait", stop)
		r.InjectAt(t, 0, fabric, roce(losslessDSCP))
		expect("12 frames wait")
		r.Advance(refresh - 1)
		expect("before the refresh")
		r.Advance(1)
		expect("the refresh", stop)
		r.Drain() // the other class goes first: it takes longer than another refresh
		expect("the end", stop, goOn)
		if s := r.Plane.Port(fabric).FlowControl; s.PFCSent[losslessPriority] != 4 || s.PFCSent[otherPriority] != 0 {
			t.Errorf("%d workers: %v PFC frames counted, expected 4", workers, s.PFCSent)
		}
		r.Close(t)
	}
}

// TestPFCSentAheadOfAll: the frame leaves before notifications and data, though the line is busy.
func TestPFCSentAheadOfAll(t *testing.T) {
	r := losslessRig(t, 1, nil)
	for range 3 {
		r.Inject(t, wan, roce(0)) // the fabric port's line is busy for 3 ms
	}
	r.Settle()
	r.Take(fabric)
	for range 12 {
		r.Inject(t, fabric, roce(losslessDSCP))
	}
	r.Settle()
	if out := r.Take(fabric); len(out) != 1 || !bytes.Equal(out[0].Octets, pfcSays(0xffff)) {
		t.Errorf("%d frames left by the fabric port, expected a PFC frame", len(out))
	}
	r.Advance(1100 * 1000)
	r.Settle()
	if out := r.Take(fabric); len(out) != 1 || len(out[0].Octets) != 1000 {
		t.Errorf("%d frames left by the fabric port after a millisecond, expected one of data", len(out))
	}
	r.Drain()
	r.Close(t)
}

// TestPFCCostsNoTime: the shaper doesn't count the frame, whatever part of what goes with it the device takes.
func TestPFCCostsNoTime(t *testing.T) {
	for limit := range 4 {
		r := losslessRig(t, 1, func(s *testkit.Setup) { s.Rate = 1e12 }) // 3 frames start at once
		r.Backends[0].Limit(wan, 0)
		r.Plane.Worker(0).Step()
		r.Backends[0].Limit(fabric, limit)
		for range 12 {
			r.Inject(t, fabric, roce(losslessDSCP))
		}
		r.Plane.Worker(0).Step()
		for range 3 {
			r.Inject(t, wan, roce(0))
		}
		r.Advance(ms)
		for range 3 {
			r.Plane.Worker(0).Step()
			r.Advance(refresh)
		}
		sent := r.Take(fabric)
		s := r.Plane.Port(fabric)
		if got := s.Count[counters.TxPackets] + s.FlowControl.PFCSent[losslessPriority]; got != uint64(len(sent)) {
			t.Errorf("the device takes %d frames: %d of %d that left are counted", limit, got, len(sent))
		}
		r.Backends[0].Limit(wan, 32)
		r.Backends[0].Limit(fabric, 32)
		r.Drain()
		if n := r.Count(fabric, counters.TxPackets); n != 3 {
			t.Errorf("the device takes %d frames: %d counted in the end, expected 3", limit, n)
		}
		r.Close(t)
	}
	// A frame of 1000 bytes and its 24 take 1.024 ms; so the second is due then, though a PFC frame left with the first.
	r := losslessRig(t, 1, nil)
	for range 12 {
		r.Inject(t, fabric, roce(losslessDSCP))
	}
	r.Inject(t, wan, roce(0), roce(0))
	r.Plane.Worker(0).Step()
	r.Plane.Worker(0).Step()
	if out := r.Take(fabric); len(out) != 2 {
		t.Fatalf("%d frames left, expected PFC and data", len(out))
	}
	r.Advance(1_023_999)
	r.Settle()
	if out := r.Take(fabric); len(out) != 0 {
		t.Errorf("%d frames left before the time of one is over, expected none", len(out))
	}
	r.Advance(1)
	r.Settle()
	if out := r.Take(fabric); len(out) != 1 {
		t.Errorf("%d frames left after the time of one, expected one", len(out))
	}
	r.Drain()
	r.Close(t)
	// A PFC frame that the device refuses gives no time back.
	r = losslessRig(t, 1, nil)
	r.Inject(t, wan, roce(0), roce(0))
	r.Settle()
	r.Take(fabric)
	r.Backends[0].Limit(fabric, 0)
	for range 12 {
		r.Inject(t, fabric, roce(losslessDSCP))
	}
	for range 20 {
		r.Plane.Worker(0).Step()
	}
	r.Backends[0].Limit(fabric, 32)
	r.Settle()
	if out := r.Take(fabric); len(out) != 1 {
		t.Errorf("%d frames left, expected the PFC frame", len(out))
	}
	r.Drain()
	r.Close(t)
}

// TestPFCRetried: a frame that can't leave is counted, and leaves when it can, with what is true then.
func TestPFCRetried(t *testing.T) {
	full := func(r *testkit.Rig) {
		for range 12 {
			r.Inject(t, fabric, roce(losslessDSCP))
		}
	}
	t.Run("the device takes nothing", func(t *testing.T) {
		r := losslessRig(t, 1, nil)
		r.Backends[0].Limit(fabric, 0)
		full(r)
		for range 5 {
			r.Plane.Worker(0).Step()
		}
		if n := r.Plane.Port(fabric).FlowControl.Unsent; n[1] != 4 || n[0]+n[2] != 0 {
			t.Errorf("%v not sent, expected 4 as the device is full", n)
		}
		r.Backends[0].Limit(fabric, 32)
		r.Settle()
		if out := r.Take(fabric); len(out) != 1 || !bytes.Equal(out[0].Octets, pfcSays(0xffff)) {
			t.Errorf("%d frames left, expected the one of XOff", len(out))
		}
		r.Drain()
		r.Close(t)
	})
	t.Run("the device takes nothing until XOn", func(t *testing.T) {
		r := losslessRig(t, 1, nil)
		full(r)
		r.Settle()
		r.Take(fabric)
		r.Backends[0].Limit(fabric, 0)
		for range 40 {
			r.Advance(ms)
			r.Plane.Worker(0).Step()
		}
		r.Backends[0].Limit(fabric, 32)
		r.Settle()
		if out := r.Take(fabric); len(out) != 1 || !bytes.Equal(out[0].Octets, pfcSays(0)) {
			t.Errorf("%d frames left, expected one, of XOn", len(out))
		}
		r.Close(t)
	})
	t.Run("no buffer", func(t *testing.T) {
		// Frames take all buffers but those that the backend holds back for reception, before the worker has a spare.
		r := losslessRig(t, 1, func(s *testkit.Setup) { s.Buffers = 16 })
		for range 16 {
			r.Inject(t, fabric, roce(losslessDSCP))
		}
		for range 3 {
			r.Plane.Worker(0).Step()
		}
		if n := r.Plane.Port(fabric).FlowControl.Unsent; n[0] == 0 || n[1]+n[2] != 0 {
			t.Errorf("%v not sent, expected some for want of a buffer", n)
		}
		r.Advance(6 * ms) // frames leave, and XOn isn't reached
		r.Settle()
		if out := r.Take(fabric); len(out) != 1 || !bytes.Equal(out[0].Octets, pfcSays(0xffff)) {
			t.Errorf("%d frames left, expected the one of XOff", len(out))
		}
		r.Drain()
		r.Close(t)
	})
	t.Run("lost", func(t *testing.T) {
		r := losslessRig(t, 1, nil)
		r.Backends[0].Lose(fabric, func(burst.Frame) (burst.Cause, bool) { return burst.LinkDown, true })
		full(r)
		r.Settle()
		r.Backends[0].Lose(fabric, nil)
		if s := r.Plane.Port(fabric).FlowControl; s.Unsent[2] != 1 || s.PFCSent[losslessPriority] != 0 {
			t.Errorf("%+v, expected one lost", s)
		}
		r.Drain()
		if out := r.Take(fabric); len(out) != 1 || !bytes.Equal(out[0].Octets, pfcSays(0)) {
			t.Errorf("%d frames left, expected the one of XOn", len(out))
		}
		if n := r.Count(fabric, counters.DroppedLinkDown); n != 0 {
			t.Errorf("%d received frames count as dropped, expected none", n)
		}
		r.Close(t)
	})
}

// TestXoffExpires: the fabric is stopped for the limit at most, and again only after XOn.
func TestXoffExpires(t *testing.T) {
	r := losslessRig(t, 1, func(s *testkit.Setup) { s.Rate = 100_000 }) // a frame in 82 ms
	for range 14 {
		r.Inject(t, fabric, roce(losslessDSCP))
	}
	r.Settle()
	for range 10 {
		r.Advance(10 * ms)
		r.Settle()
	}
	out := r.Take(fabric)
	if n := len(out); n != 6 || !bytes.Equal(out[n-1].Octets, pfcSays(0)) {
		t.Fatalf("%d frames left, expected 5 of XOff and one of XOn", n)
	}
	r.Advance(200 * ms)
	r.Inject(t, fabric, roce(losslessDSCP), roce(losslessDSCP), roce(losslessDSCP))
	r.Settle()
	if out := r.Take(fabric); len(out) != 0 {
		t.Errorf("%d PFC frames before XOn, expected none", len(out))
	}
	if n := r.Plane.Port(fabric).FlowControl.Expired[losslessPriority]; n != 1 {
		t.Errorf("%d times expired, expected once", n)
	}
	r.Drain()
	for range 14 {
		r.Inject(t, fabric, roce(losslessDSCP))
	}
	r.Settle()
	if out := r.Take(fabric); len(out) != 1 || !bytes.Equal(out[0].Octets, pfcSays(0xffff)) {
		t.Errorf("%d frames left after XOn, expected the one of XOff", len(out))
	}
	r.Close(t)
}

// TestDrainLetsGo: a gateway that stops does not leave the fabric stopped.
func TestDrainLetsGo(t *testing.T) {
	r := losslessRig(t, 1, nil)
	for range 14 {
		r.Inject(t, fabric, roce(losslessDSCP))
	}
	r.Settle()
	r.Take(fabric)
	r.Plane.Worker(0).Drain()
	r.Settle()
	if out := r.Take(fabric); len(out) != 1 || !bytes.Equal(out[0].Octets, pfcSays(0)) {
		t.Errorf("%d frames left, expected the one of XOn", len(out))
	}
	r.Close(t)
}

// TestPFCPriorities: a frame is about the classes whose state changed, and no other.
func TestPFCPriorities(t *testing.T) {
	r := losslessRig(t, 1, func(s *testkit.Setup) {
		change := s.Change
		s.Change = func(c *dataplane.Config) {
			change(c)
			f := c.Ports[fabric].FlowControl
			f.Lossless[otherClass] = f.Lossless[losslessClass]
			f.Lossless[otherClass].Priority = packet.PFCClasses - 1
		}
	})
	for _, dscp := range []uint8{0, losslessDSCP} {
		for range 12 {
			r.Inject(t, fabric, roce(dscp))
		}
		r.Settle()
	}
	out := r.Take(fabric)
	if len(out) != 2 {
		t.Fatalf("%d frames left, expected 2", len(out))
	}
	for i, want := range []packet.PFC{
		{Enabled: 1 << 7, Time: [8]uint16{7: 0xffff}},
		{Enabled: 1 << losslessPriority, Time: [8]uint16{losslessPriority: 0xffff}},
	} {
		if got := packet.DecodePFC(out[i].Octets[packet.EthernetLen:]); got != want {
			t.Errorf("frame %d: %+v, expected %+v", i, got, want)
		}
	}
	r.Close(t)
}
