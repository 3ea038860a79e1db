package dataplane_test

import (
	"testing"

	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/internal/testkit"
)

// TestStepTellsWork: a step that received, offered or sent something returns more than 0, one that had nothing to do 0.
func TestStepTellsWork(t *testing.T) {
	r := testkit.New(t, testkit.Setup{Rate: 1_000_000})
	w := r.Plane.Worker(0)
	frame := testkit.RoCE{Src: sender4, Dst: receiver4, DestQP: 7, Size: 1000}.Frame()
	r.Inject(t, fabric, frame, frame)
	for i, want := range []int{3, 1, 0, 0} { // two received and one offered; that one sent; the other has to wait
		if got := w.Step(); got != want {
			t.Errorf("step %d moved %d frames, expected %d", i, got, want)
		}
	}
	r.Advance(1024 * 8_000)
	for i, want := range []int{1, 1, 0} {
		if got := w.Step(); got != want {
			t.Errorf("step %d after the wait moved %d frames, expected %d", i, got, want)
		}
	}
	r.Close(t)
}

// TestNextDue: the next frame is due when the first of the lines with frames waiting is free, whichever port that is of.
func TestNextDue(t *testing.T) {
	for slow := range 2 {
		r := testkit.New(t, testkit.Setup{Change: func(c *dataplane.Config) {
			c.Ports[0].Rate, c.Ports[1].Rate = 2_000_000, 2_000_000
			c.Ports[slow].Rate = 1_000_000
		}})
		w := r.Plane.Worker(0)
		frame := testkit.RoCE{Src: sender4, Dst: receiver4, DestQP: 7, Size: 976}.Frame() // 8 ms on the slow line
		if _, waits := w.NextDue(); waits {
			t.Error("something is due in an empty gateway")
		}
		r.Inject(t, fabric, frame, frame)
		r.Inject(t, wan, frame, frame)
		r.Settle()
		if due, waits := w.NextDue(); !waits || due != r.Now+4*ms {
			t.Errorf("due in %d ns, expected 4 ms", due-r.Now)
		}
		r.Advance(4 * ms)
		r.Settle()
		if due, waits := w.NextDue(); !waits || due != r.Now+4*ms {
			t.Errorf("then due in %d ns, expected 4 ms", due-r.Now)
		}
		r.Drain()
		r.Close(t)
	}
}
