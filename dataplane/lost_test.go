package dataplane_test

import (
	"testing"

	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"pgregory.net/rapid"
)

// TestLostFramesAreDrops: what a backend drops instead of sending it counts as dropped, never as forwarded, whatever else is in the burst.
func TestLostFramesAreDrops(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := testkit.New(t, testkit.Setup{})
		var lost [burst.Causes]uint64
		r.Backends[0].Lose(wan, func(f burst.Frame) (burst.Cause, bool) {
			if f.Len <= 500 {
				return 0, false
			}
			cause := burst.Cause(f.Len % uint32(burst.Causes))
			lost[cause]++
			return cause, true
		})
		for range rapid.IntRange(1, 20).Draw(t, "bursts") {
			for range rapid.IntRange(1, 40).Draw(t, "frames") {
				size := rapid.IntRange(62, 1000).Draw(t, "size")
				r.Inject(t, fabric, testkit.RoCE{Src: sender4, Dst: receiver4, DestQP: 7, Size: size}.Frame())
			}
			r.Settle()
			r.Advance(1_000_000)
		}
		r.Drain()
		var frames, bytes uint64
		for _, s := range r.Take(wan) {
			frames++
			bytes += uint64(s.Length)
		}
		if n, b := r.Count(wan, counters.TxPackets), r.Count(wan, counters.TxBytes); n != frames || b != bytes {
			t.Errorf("%d frames of %d bytes arrived, %d of %d count as forwarded", frames, bytes, n, b)
		}
		for cause, reason := range []counters.Counter{counters.DroppedTooLong, counters.DroppedLinkDown, counters.DroppedRefused} {
			if n := r.Count(wan, reason); n != lost[cause] {
				t.Errorf("%s: %d, expected %d", counters.Catalogue[reason].Value, n, lost[cause])
			}
		}
		r.Close(t)
	})
}

// TestLostNotificationsAreNotSent: a notification that the backend dropped counts as suppressed.
func TestLostNotificationsAreNotSent(t *testing.T) {
	s := newScene(t, notifying(byAnything...), nil)
	n := 0
	s.Backends[0].Lose(fabric, func(burst.Frame) (burst.Cause, bool) {
		n++
		return burst.LinkDown, n%2 == 0
	})
	for range 40 {
		s.Inject(s.t, fabric, testkit.RoCE{Src: sender4, Dst: receiver4, DestQP: 100, Size: 1000}.Frame())
	}
	s.Drain()
	arrived := uint64(0)
	for _, sent := range s.Take(fabric) {
		if sent.Built {
			arrived++
		}
	}
	counted := uint64(0)
	for f := range counters.Counter(packet.SentNotifications) {
		counted += s.Count(fabric, counters.SentFirst+f)
	}
	unsent := s.Count(fabric, counters.SuppressedFirst+counters.Counter(counters.NotSent-1))
	if arrived == 0 || counted != arrived || unsent == 0 {
		t.Errorf("%d notifications arrived, %d count as sent, %d as not sent", arrived, counted, unsent)
	}
	s.Close(t)
}

// TestUnusableFramesAreDrops: a frame that came in but could not be handed over is received and dropped.
func TestUnusableFramesAreDrops(t *testing.T) {
	r := testkit.New(t, testkit.Setup{})
	r.Inject(t, fabric, testkit.RoCE{Src: sender4, Dst: receiver4, DestQP: 7}.Frame())
	r.Backends[0].Unusable(fabric, burst.Volume{Frames: 3, Bytes: 30_000})
	r.Backends[0].Unfinished(fabric, burst.Volume{Frames: 2, Bytes: 90_000})
	r.Settle()
	p := r.Plane.Port(fabric)
	if p.Count[counters.RxPackets] != 6 || p.Count[counters.DroppedUnusable] != 3 || p.Count[counters.DroppedUnfinished] != 2 || p.Count[counters.RxBytes] < 120_000 {
		t.Errorf("received %d, dropped %d and %d", p.Count[counters.RxPackets], p.Count[counters.DroppedUnusable], p.Count[counters.DroppedUnfinished])
	}
}
