package dataplane

import (
	"testing"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
)

func testEgress(t *testing.T, rate uint64, classes int) *egress {
	t.Helper()
	q := &egress{}
	c := Config{Allocate: func(bytes int) ([]byte, error) { return make([]byte, bytes), nil }}
	if err := q.init(newLine(rate), &PortConfig{Classes: classes, Queue: Queue{Frames: 16}}, &testWorker(t, Config{Flows: 1}).accounts, &c); err != nil {
		t.Fatal(err)
	}
	return q
}

// sent takes out of the queue what was offered, as completeTransmits does when the device took it all.
func (q *egress) sent() (n int) {
	for range q.offered[offeredNotifications] {
		q.notifications.pop()
		n++
	}
	for class := range q.classes {
		for range q.offered[offeredClasses+class] {
			q.leave(class)
			n++
		}
	}
	return n
}

// TestWaitingFrameLosesNoTime: a frame that waits for the line starts when the line is free, even if its worker comes later, and
// whatever the worker had in its queue before.
func TestWaitingFrameLosesNoTime(t *testing.T) {
	const late = 200_000
	q := testEgress(t, 10_000_000, 1)
	tx := make([]burst.Frame, 0, 4)
	frame := burst.Frame{Buf: 1, Len: 1226} // 1 ms on the line
	now := int64(1e9)
	q.enter(0, frame, flowtable.None)
	q.offer(now, tx)
	if q.sent() != 1 {
		t.Fatal("the first frame didn't start")
	}
	q.offer(now+1_000, tx) // nothing waits
	q.enter(0, frame, flowtable.None)
	if len(q.offer(now+2_000, tx)) != 0 {
		t.Fatal("a frame started while another was on the line")
	}
	if len(q.offer(now+1_000_000+late, tx)) != 1 {
		t.Fatal("a frame didn't start on a free line")
	}
	if got, want := q.line.free.Load(), now+2_000_000; got != want {
		t.Errorf("the line is free %d ns after it could be", got-want)
	}
}

// TestOfferInPriority: notifications go first, then the classes in order, each first in first out.
func TestOfferInPriority(t *testing.T) {
	q := testEgress(t, 400_000_000_000, 3)
	for n := range uint64(4) {
		for class := range q.classes {
			q.enter(class, burst.Frame{Buf: uint64(class+1)*10 + n, Len: 60}, flowtable.None)
		}
		q.notifications.pushAll([]burst.Frame{{Buf: 100 + n, Len: 60}}, []flowtable.Ref{{}})
	}
	want := []uint64{100, 101, 102, 103, 10, 11, 12, 13, 20, 21, 22, 23, 30, 31, 32, 33}
	var got []uint64
	for now := int64(1); !q.empty(); now++ {
		for _, f := range q.offer(now, make([]burst.Frame, 0, 5)) {
			got = append(got, f.Buf)
		}
		q.sent()
	}
	if len(got) != len(want) {
		t.Fatalf("left: %v, expected %v", got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("left: %v, expected %v", got, want)
		}
	}
}

// TestPausedFramesElsewhereSaveNothing: frames of another worker that wait because their class is paused don't use the line. So a frame that is new here
// does not make up for the time that it was idle.
func TestPausedFramesElsewhereSaveNothing(t *testing.T) {
	for _, c := range []struct {
		paused classSet
		want   int
	}{{0, 5}, {1 << 1, 1}} {
		q := testEgress(t, 10_000_000, 2)
		q.othersFrames[1], q.paused = 7, c.paused
		for range 8 {
			q.enter(0, burst.Frame{Buf: 1, Len: 1226}, flowtable.None) // 1 ms on the line
		}
		if n := len(q.offer(1e9, make([]burst.Frame, 0, 16))); n < c.want || n > c.want+1 {
			t.Errorf("paused %b: %d frames start, expected %d", c.paused, n, c.want)
		}
	}
}

// TestIdleQueueSavesNothing: after a time with nothing to send one frame starts, and the others one after another, however long that
// time was.
func TestIdleQueueSavesNothing(t *testing.T) {
	q := testEgress(t, 10_000_000, 1)
	tx := make([]burst.Frame, 0, 16)
	now := int64(1e9)
	for _, idle := range []int64{1_000, 2_000_000, maxLateness, 1e9} {
		for range 8 {
			q.enter(0, burst.Frame{Buf: 1, Len: 1226}, flowtable.None) // 1 ms on the line
		}
		for i := range int64(8) {
			if n := len(q.offer(now+i*1_000_000, tx)); n != 1 {
				t.Fatalf("after %d ns without a frame %d start in millisecond %d", idle, n, i)
			}
			q.sent()
		}
		q.offer(now+7_000_001, tx)
		now += 8_000_000 + idle
	}
}
