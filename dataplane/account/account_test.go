package account

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// A cache line: the account of each packet of a congested queue is written. A seventh kind that is sent
// doesn't fit: then Notified needs smaller counts.
var _ [64]byte = [unsafe.Sizeof(Flow{})]byte{}

// testTable has the accounts of a table of flows. As a worker, it begins an account anew when its flow ends.
type testTable struct{ Accounts }

// Begin implements flowtable.Observer.
func (*testTable) Begin(flowtable.Index) {}

// End implements flowtable.Observer.
func (w *testTable) End(x flowtable.Index, _ flowtable.Ending) {
	if a := w.Find(x); a != nil {
		a.Begin(a.Generation.Load() + 1)
	}
}

func newTable(t *testing.T, flows int) *testTable {
	t.Helper()
	w := &testTable{}
	table, err := flowtable.New(make([]byte, flowtable.Size(flows)), flowtable.Config{Capacity: flows, Observer: w})
	if err != nil {
		t.Fatal(err)
	}
	w.Accounts = New(make([]byte, Size(flows)), table)
	return w
}

func testKey(n uint32) flowtable.Key { return flowtable.Key{DestQP: 2 + n} }

// see has the table see a packet of a flow.
func (w *testTable) see(k flowtable.Key, now int64) flowtable.Index {
	var x [1]flowtable.Ref
	w.Flows.Lookup([]packet.Record{{Flow: k.Words()}}, now, x[:])
	return x[0].Index
}

// An account is the flow's that has its generation, and empty until it is used.
func TestAccountIsOfOneFlow(t *testing.T) {
	w := newTable(t, 4)
	x := w.see(testKey(0), 1)
	first := w.Flows.State(x).Generation()
	if w.Find(x) != nil {
		t.Error("a flow has an account before it needs one")
	}
	a := w.Get(x)
	a.Marked = 3
	a.SetNotified(50)
	if w.Get(x) != a || w.Find(x) != a || w.Known(x) != a || a.Marked != 3 {
		t.Error("a flow has two accounts")
	}
	if at := w.LastNotifiedOf(x, first); at != 50 {
		t.Errorf("others find it notified at %d", at)
	}
	w.Flows.Renew(x, 60)
	second := w.Flows.State(x).Generation()
	if a := w.Get(x); a.Marked != 0 || a.Notified != [packet.SentNotifications]uint32{} || a.LastNotified.Load() != 0 {
		t.Errorf("a renewed flow has been notified before: %+v", a.Notified)
	}
	if at := w.LastNotifiedOf(x, first); at != 0 {
		t.Errorf("others find the flow before notified at %d", at)
	}
	w.Flows.Renew(x, 70)
	if a := w.Get(x); a.Marked != 0 || w.LastNotifiedOf(x, second) != 0 {
		t.Errorf("a flow begins with %d packets marked", a.Marked)
	}
}

// Marked packets count for the flows that the burst's Refs name: of a flow that has begun anew, only those since then.
func TestAccountsMark(t *testing.T) {
	w := newTable(t, 4)
	first, second := w.Flows.Ref(w.see(testKey(0), 1)), w.Flows.Ref(w.see(testKey(1), 1))
	flows := []flowtable.Ref{first, {}, second, first, second, first}
	w.Mark(flows, 0b011111)
	w.Get(second.Index).SetNotified(2)
	w.Mark(flows, 0b110101)
	want := func(r flowtable.Ref, marked uint64) {
		t.Helper()
		if a := w.Find(r.Index); a == nil || a.Marked != marked {
			t.Errorf("flow %v: %+v, expected %d packets marked", r, a, marked)
		}
	}
	want(first, 4)
	want(second, 4)
	if at := w.LastNotifiedOf(second.Index, second.Generation); at != 2 {
		t.Errorf("after another mark it was notified at %d", at)
	}
	w.Flows.Renew(second.Index, 3)
	second = w.Flows.Ref(second.Index)
	w.Mark([]flowtable.Ref{first, second, second}, 0b110)
	want(first, 4)
	want(second, 2)
	if at := w.LastNotifiedOf(second.Index, second.Generation); at != 0 {
		t.Errorf("the flow that follows was notified at %d", at)
	}
}

// What is noted is never 0, which means never.
func TestNotifyTime(t *testing.T) {
	for _, c := range []struct{ now, noted int64 }{{5, 5}, {0, 1}, {-3, -3}} {
		var a Flow
		a.SetNotified(c.now)
		if at := a.LastNotified.Load(); at != c.noted {
			t.Errorf("notified at %d: noted %d, expected %d", c.now, at, c.noted)
		}
	}
}

// Another worker that looks for the last notification about a flow never finds one about the flow that has its place now.
func TestOthersNeverMixAccounts(t *testing.T) {
	w := newTable(t, 1)
	keys := [2]flowtable.Key{testKey(0), testKey(1)}
	about := func(which int, generation uint32) int64 { return int64(generation)<<1 | int64(which) }
	var done atomic.Bool
	var found [2]atomic.Int64
	var reading sync.WaitGroup
	for range 2 {
		reading.Go(func() {
			for !done.Load() && !t.Failed() {
				for which := range keys {
					x, s, ok := w.Flows.Find(&keys[which])
					if !ok {
						continue
					}
					at := w.LastNotifiedOf(x, s.Generation())
					if at != 0 && at != about(which, s.Generation()) {
						t.Errorf("flow %d of generation %d was notified at %d", which, s.Generation(), at)
					}
					if at != 0 {
						found[which].Add(1)
					}
				}
				runtime.Gosched()
			}
		})
	}
	for n := int64(1); (n < 10_000 || min(found[0].Load(), found[1].Load()) < 100) && !t.Failed(); n++ {
		which := int(n % 2)
		x := w.see(keys[which], n) // evicts the other
		w.Get(x).SetNotified(about(which, w.Flows.State(x).Generation()))
		if n%8 == 0 {
			w.Flows.Renew(x, n)
		}
		if n%16 == 0 {
			runtime.Gosched()
		}
	}
	done.Store(true)
	reading.Wait()
}
