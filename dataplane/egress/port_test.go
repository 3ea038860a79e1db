package egress

import (
	"testing"

	"github.com/cnpgate/cnpgate/dataplane/account"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// newPort is a worker's part of a port.
func newPort(t interface{ Fatal(args ...any) }, l *Line, a *account.Accounts, classes, frames int) *Port {
	p, err := New(l, &Queue{Frames: frames}, classes, a, nil, func(bytes int) ([]byte, error) { return make([]byte, bytes), nil })
	if err != nil {
		t.Fatal(err)
	}
	return &p
}

// newAccounts are the accounts of a table of flows.
func newAccounts(t interface{ Fatal(args ...any) }, c flowtable.Config) *account.Accounts {
	table, err := flowtable.New(make([]byte, flowtable.Size(c.Capacity)), c)
	if err != nil {
		t.Fatal(err)
	}
	a := account.New(make([]byte, account.Size(c.Capacity)), table)
	return &a
}

func testEgress(t *testing.T, rate uint64, classes int) *Port {
	t.Helper()
	return newPort(t, NewLine(rate), newAccounts(t, flowtable.Config{Capacity: 1}), classes, 128)
}

// records has a packet of each flow.
func records(keys ...flowtable.Key) []packet.Record {
	packets := make([]packet.Record, len(keys))
	for i := range keys {
		packets[i].Flow = keys[i].Words()
	}
	return packets
}

// enter puts one frame of a flow at the end of a class.
func (p *Port) enter(class int, f burst.Frame, x flowtable.Index) {
	c := &p.Classes[class]
	c.Enter([]burst.Frame{f}, []flowtable.Ref{c.Shares.accounts.Flows.Ref(x)}, uint64(f.Len))
}

// largest is the bytes of the flow that has most, while flows are ranked.
func (s *Shares) largest() uint64 {
	var top [1]uint64
	s.top(top[:])
	return top[0]
}

// largest is the bytes of the flow that has most in a class.
func (c *Class) largest() uint64 {
	var top [1]uint64
	c.Top(top[:])
	return top[0]
}

// sent takes out of the queue what was offered, as completeTransmits does when the device took it all.
func (p *Port) sent() (n int) {
	for range p.Offered.Notifications {
		p.Notifications.Pop()
		n++
	}
	for class := range p.Classes {
		for range p.Offered.Classes[class] {
			p.Classes[class].Leave()
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
	q.Offer(now, 0, tx)
	if q.sent() != 1 {
		t.Fatal("the first frame didn't start")
	}
	q.Offer(now+1_000, 0, tx) // nothing waits
	q.enter(0, frame, flowtable.None)
	if len(q.Offer(now+2_000, 0, tx)) != 0 {
		t.Fatal("a frame started while another was on the line")
	}
	if len(q.Offer(now+1_000_000+late, 0, tx)) != 1 {
		t.Fatal("a frame didn't start on a free line")
	}
	if got, want := q.Line.free.Load(), now+2_000_000; got != want {
		t.Errorf("the line is free %d ns after it could be", got-want)
	}
}

// TestOfferInPriority: notifications go first, then the classes in order, each first in first out.
func TestOfferInPriority(t *testing.T) {
	q := testEgress(t, 400_000_000_000, 3)
	for n := range uint64(4) {
		for class := range q.Classes {
			q.enter(class, burst.Frame{Buf: uint64(class+1)*10 + n, Len: 60}, flowtable.None)
		}
		q.Notifications.pushAll([]burst.Frame{{Buf: 100 + n, Len: 60}}, []flowtable.Ref{{}})
	}
	want := []uint64{100, 101, 102, 103, 10, 11, 12, 13, 20, 21, 22, 23, 30, 31, 32, 33}
	var got []uint64
	for now := int64(1); q.Queued() > 0; now++ {
		for _, f := range q.Offer(now, 0, make([]burst.Frame, 0, 5)) {
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
		paused ClassSet
		want   int
	}{{0, 5}, {1 << 1, 1}} {
		q := testEgress(t, 10_000_000, 2)
		q.Classes[1].OthersFrames = 7
		for range 8 {
			q.enter(0, burst.Frame{Buf: 1, Len: 1226}, flowtable.None) // 1 ms on the line
		}
		if n := len(q.Offer(1e9, c.paused, make([]burst.Frame, 0, 16))); n < c.want || n > c.want+1 {
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
			if n := len(q.Offer(now+i*1_000_000, 0, tx)); n != 1 {
				t.Fatalf("after %d ns without a frame %d start in millisecond %d", idle, n, i)
			}
			q.sent()
		}
		q.Offer(now+7_000_001, 0, tx)
		now += 8_000_000 + idle
	}
}

// TestLightLoadSavesNothing: a queue that gets a frame a step and sends it at once leaves its line idle most of the time. It saves that time no
// longer than a step: when many frames come at once, those start that the line carries in a step.
func TestLightLoadSavesNothing(t *testing.T) {
	const steps, each = 1000, 20_000 // ns
	q := testEgress(t, 10_000_000_000, 1)
	frame := burst.Frame{Buf: 1, Len: 1226} // 1 us on the line
	now := int64(1e9)
	for range steps {
		q.enter(0, frame, flowtable.None)
		if n := len(q.Offer(now, 0, make([]burst.Frame, 0, 128))); n != 1 {
			t.Fatalf("%d frames of one start", n)
		}
		q.sent()
		now += each
	}
	for range 100 {
		q.enter(0, frame, flowtable.None)
	}
	if n := len(q.Offer(now, 0, make([]burst.Frame, 0, 128))); n < each/1000 || n > each/1000+1 {
		t.Errorf("%d frames start at once after %d ns of light load, expected those of %d ns", n, steps*each, each)
	}
}

// TestBurstsPassAtOnce: a worker that gets a burst a step, on a line that is faster, sends each burst in the step in which it comes. Only the first
// burst waits for a step, as it finds the line idle. The frames are offered where they lie in the ring.
func TestBurstsPassAtOnce(t *testing.T) {
	q := testEgress(t, 400_000_000_000, 1)
	tx := make([]burst.Frame, 0, 8)
	frames, flows := make([]burst.Frame, 4), make([]flowtable.Ref, 4)
	for i := range frames {
		frames[i] = burst.Frame{Buf: uint64(i + 1), Len: 60}
	}
	copies := 0
	for step := range int64(40) {
		q.Classes[0].Enter(frames, flows, 240)
		list := q.Offer(1e9+step*1000, 0, tx)
		want := map[int64]int{0: 1, 1: 7}[step]
		if step > 1 {
			want = 4
		}
		if len(list) != want {
			t.Fatalf("step %d: %d frames start, expected %d", step, len(list), want)
		}
		if &list[0] == &tx[:1][0] {
			copies++
		}
		q.sent()
	}
	if copies > 2 {
		t.Errorf("%d of 40 lists were copied, expected those at the ring's end only", copies)
	}
}

// TestLongListLosesNoTime: more frames wait than one list has, and a whole list starts at once since its worker is late. The others lose no time.
func TestLongListLosesNoTime(t *testing.T) {
	q := testEgress(t, 10_000_000_000, 1)
	for range 100 {
		q.enter(0, burst.Frame{Buf: 1, Len: 1226}, flowtable.None) // 1 us on the line
	}
	now := int64(1e9)
	for step, late := range []int64{0, 90_000, 1_000, 1_000, 1_000, 1_000, 1_000, 10_000} {
		now += late
		want := 16
		if step == 0 {
			want = 1
		}
		if n := len(q.Offer(now, 0, make([]burst.Frame, 0, 16))); step < 6 && n != want {
			t.Fatalf("step %d: %d frames start, expected %d", step, n, want)
		}
		q.sent()
	}
	if got, want := q.Line.free.Load(), int64(1e9)+100_000; got > want || got < want-1 { // a frame may count a fraction of a nanosecond less
		t.Errorf("the line is free %d ns after it could be", got-want)
	}
}
