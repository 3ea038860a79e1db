package dataplane

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing"
)

// A cache line: the account of each packet of a congested queue is written.
var _ [64]byte = [unsafe.Sizeof(account{})]byte{}

// testWorker is a worker with flows and accounts, and no device.
func testWorker(t testing.TB, c Config) *Worker {
	t.Helper()
	shared, err := pairing.New(make([]byte, pairing.Size(16)), pairing.Config{Flows: 16, Egress: []int{1, 0}})
	if err != nil {
		t.Fatal(err)
	}
	c.Allocate = func(bytes int) ([]byte, error) {
		words := make([]uint64, (bytes+7)/8)
		return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), bytes), nil
	}
	w := &Worker{plane: &Dataplane{pairing: shared}}
	if err := w.initFlows(&c); err != nil {
		t.Fatal(err)
	}
	return w
}

func testKey(n uint32) flowtable.Key { return flowtable.Key{DestQP: 2 + n} }

// records has a packet of each flow.
func records(keys ...flowtable.Key) []packet.Record {
	packets := make([]packet.Record, len(keys))
	for i := range keys {
		packets[i].Flow = keys[i].Words()
	}
	return packets
}

// see has a worker see a packet of a flow.
func (w *Worker) see(k flowtable.Key, now int64) flowtable.Index {
	var x [1]flowtable.Ref
	w.flows.Lookup(records(k), now, x[:])
	return x[0].Index
}

// An account is the flow's that has its generation, and empty until it is used.
func TestAccountIsOfOneFlow(t *testing.T) {
	w := testWorker(t, Config{Flows: 4})
	x := w.see(testKey(0), 1)
	first := w.flows.State(x).Generation()
	if w.accounts.find(x) != nil {
		t.Error("a flow has an account before it needs one")
	}
	a := w.accounts.get(x)
	a.marked = 3
	a.notify(50)
	if w.accounts.get(x) != a || w.accounts.find(x) != a || w.accounts.known(x) != a || a.marked != 3 {
		t.Error("a flow has two accounts")
	}
	if at := w.accounts.lastNotifiedOf(x, first); at != 50 {
		t.Errorf("others find it notified at %d", at)
	}
	w.flows.Renew(x, 60)
	second := w.flows.State(x).Generation()
	if a := w.accounts.get(x); a.marked != 0 || a.notified != [packet.SentNotifications]uint32{} || a.lastNotified.Load() != 0 {
		t.Errorf("a renewed flow has been notified before: %+v", a.notified)
	}
	if at := w.accounts.lastNotifiedOf(x, first); at != 0 {
		t.Errorf("others find the flow before notified at %d", at)
	}
	w.flows.Renew(x, 70)
	if a := w.accounts.get(x); a.marked != 0 || w.accounts.lastNotifiedOf(x, second) != 0 {
		t.Errorf("a flow begins with %d packets marked", a.marked)
	}
}

// Marked packets count for the flows that the burst's Refs name: of a flow that has begun anew, only those since then.
func TestAccountsMark(t *testing.T) {
	w := testWorker(t, Config{Flows: 4})
	first, second := w.flows.Ref(w.see(testKey(0), 1)), w.flows.Ref(w.see(testKey(1), 1))
	flows := []flowtable.Ref{first, {}, second, first, second, first}
	w.accounts.mark(flows, 0b011111)
	w.accounts.get(second.Index).notify(2)
	w.accounts.mark(flows, 0b110101)
	want := func(r flowtable.Ref, marked uint64) {
		t.Helper()
		if a := w.accounts.find(r.Index); a == nil || a.marked != marked {
			t.Errorf("flow %v: %+v, expected %d packets marked", r, a, marked)
		}
	}
	want(first, 4)
	want(second, 4)
	if at := w.accounts.lastNotifiedOf(second.Index, second.Generation); at != 2 {
		t.Errorf("after another mark it was notified at %d", at)
	}
	w.flows.Renew(second.Index, 3)
	second = w.flows.Ref(second.Index)
	w.accounts.mark([]flowtable.Ref{first, second, second}, 0b110)
	want(first, 4)
	want(second, 2)
	if at := w.accounts.lastNotifiedOf(second.Index, second.Generation); at != 0 {
		t.Errorf("the flow that follows was notified at %d", at)
	}
}

// What is noted is never 0, which means never.
func TestNotifyTime(t *testing.T) {
	for _, c := range []struct{ now, noted int64 }{{5, 5}, {0, 1}, {-3, -3}} {
		var a account
		a.notify(c.now)
		if at := a.lastNotified.Load(); at != c.noted {
			t.Errorf("notified at %d: noted %d, expected %d", c.now, at, c.noted)
		}
	}
}

// Another worker that looks for the last notification about a flow never finds one about the flow that has its place now.
func TestOthersNeverMixAccounts(t *testing.T) {
	w := testWorker(t, Config{Flows: 1})
	keys := [2]flowtable.Key{testKey(0), testKey(1)}
	about := func(which int, generation uint32) int64 { return int64(generation)<<1 | int64(which) }
	var done atomic.Bool
	var found [2]atomic.Int64
	var reading sync.WaitGroup
	for range 2 {
		reading.Go(func() {
			for !done.Load() && !t.Failed() {
				for which := range keys {
					x, s, ok := w.flows.Find(&keys[which])
					if !ok {
						continue
					}
					at := w.accounts.lastNotifiedOf(x, s.Generation())
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
		w.accounts.get(x).notify(about(which, w.flows.State(x).Generation()))
		if n%8 == 0 {
			w.flows.Renew(x, n)
		}
		if n%16 == 0 {
			runtime.Gosched()
		}
	}
	done.Store(true)
	reading.Wait()
}

// FuzzStore64: it stores one word, and nothing beside it.
func FuzzStore64(f *testing.F) {
	f.Add(int64(1))
	f.Add(int64(-1))
	f.Add(int64(1) << 62)
	f.Fuzz(func(t *testing.T, v int64) {
		var got, want [3]atomic.Int64
		want[1].Store(v)
		if store64(&got[1], v); got[0].Load() != 0 || got[1].Load() != want[1].Load() || got[2].Load() != 0 {
			t.Errorf("stored %d: %d, %d, %d", v, got[0].Load(), got[1].Load(), got[2].Load())
		}
	})
}
