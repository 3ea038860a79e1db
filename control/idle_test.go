package control

import (
	"testing"
	"time"

	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"pgregory.net/rapid"
)

// TestIdlerPolls: a worker that is to poll never sleeps.
func TestIdlerPolls(t *testing.T) {
	r := testkit.New(t, testkit.Setup{})
	idle := idler{}
	for range 100_000 {
		if pause := idle.pause(r.Plane.Worker(0), 0); pause > 0 {
			t.Fatalf("sleeps for %v", pause)
		}
	}
	r.Close(t)
}

// TestIdlerBacksOff: the pauses of a worker with nothing to do, and that a frame ends them.
func TestIdlerBacksOff(t *testing.T) {
	r := testkit.New(t, testkit.Setup{})
	idle := idler{backoff: true, polls: pollsBeforeSleep, longest: longSleep}
	for range 2 {
		counts := map[time.Duration]int{}
		last := time.Duration(0)
		for range 2000 {
			pause := idle.pause(r.Plane.Worker(0), 0)
			if pause < last {
				t.Fatalf("a pause of %v after one of %v", pause, last)
			}
			last = pause
			counts[pause]++
		}
		if len(counts) != 3 || counts[0] != pollsBeforeSleep-1 || counts[shortSleep] != longSilence+1 || counts[longSleep] == 0 {
			t.Errorf("pauses %v", counts)
		}
		if pause := idle.pause(r.Plane.Worker(0), 1); pause > 0 {
			t.Errorf("sleeps for %v although a frame came", pause)
		}
	}
	r.Close(t)
}

// TestIdlerAnswers: a worker doesn't sleep between the steps in which it copies flows for a client. With a sleep of a millisecond after each, a table in
// which a million places have been used takes longer than the client's request may.
func TestIdlerAnswers(t *testing.T) {
	r := testkit.New(t, testkit.Setup{Flows: 1024, Forget: true})
	for i := range uint32(1000) {
		r.Inject(t, 0, testkit.RoCE{Src: "198.18.0.1", Dst: "198.19.0.1", DestQP: 2 + i, Size: 100}.Frame())
		r.Drain()
	}
	idle, w := idler{backoff: true, polls: pollsBeforeWait, longest: wakenSleep}, r.Plane.Worker(0)
	for idle.pause(w, w.Step()) < wakenSleep {
	}
	s, steps := &dataplane.Snapshot{Flows: make([]dataplane.FlowRecord, 0, 1024)}, 0
	for w.Ask(s); w.Asked(s); steps++ {
		if pause := idle.pause(w, 0); pause > 0 {
			t.Fatalf("sleeps for %v after %d steps of the answer", pause, steps)
		}
		w.Step()
	}
	if pause := idle.pause(w, 0); len(s.Flows) != 1000 || steps < 2 || pause != wakenSleep {
		t.Errorf("%d flows in %d steps, then a pause of %v", len(s.Flows), steps, pause)
	}
	r.Close(t)
}

// TestIdlerWakesInTime: no pause is longer than until the next frame may start, whatever waits and however long nothing moved.
func TestIdlerWakesInTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := testkit.New(t, testkit.Setup{Pairs: 2, Rate: rapid.Uint64Range(100_000, 1_000_000_000).Draw(t, "rate"), Forget: true, Buffers: 128})
		idle, w := idler{backoff: true, polls: pollsBeforeSleep, longest: longSleep}, r.Plane.Worker(0)
		frame := testkit.RoCE{Src: "198.18.0.1", Dst: "198.19.0.1", DestQP: 7, Size: rapid.IntRange(62, 1514).Draw(t, "size")}.Frame()
		for range rapid.IntRange(1, 3).Draw(t, "rounds") {
			for range rapid.IntRange(0, 10).Draw(t, "frames") {
				r.Inject(t, rapid.IntRange(0, 3).Draw(t, "port"), frame)
			}
			r.Settle()
			for range rapid.IntRange(1, 1500).Draw(t, "steps") {
				due, waits := w.NextDue()
				moved := w.Step()
				pause := idle.pause(w, moved)
				if waits && moved == 0 && r.Now+int64(pause) > due {
					t.Fatalf("sleeps for %v although a frame may start in %d ns", pause, due-r.Now)
				}
				r.Advance(max(int64(pause), 1))
			}
		}
		r.Drain()
		r.Close(t)
	})
}
