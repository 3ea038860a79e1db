package egress

import (
	"fmt"
	"math/rand"
	"testing"

	"github.com/cnpgate/cnpgate/dataplane/account"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit/effort"
)

// queueSeeds is how many runs TestSharesOfLiveFlows makes.
const queueSeeds = 20*effort.Short + 12*effort.Race + 2000*effort.Long

// TestSharesOfLiveFlows: whatever comes, leaves, changes its class, ages, is renewed or evicted, what a queue tracks of flows is what a walk over it
// finds of those that live. A worker's loop in small, with two ports and two classes.
func TestSharesOfLiveFlows(t *testing.T) {
	var all happened
	for seed := range int64(queueSeeds) {
		one, err := queuedFlows(seed)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		all.evicted += one.evicted
		all.renewed += one.renewed
		all.spread += one.spread
	}
	if all.evicted == 0 || all.renewed == 0 || all.spread == 0 {
		t.Errorf("%+v: not what was to be tested", all)
	}
}

type modelFrame struct {
	tag  flowtable.Ref
	size uint32
}

// happened counts what a run is to have in it: checks that found frames in the queue whose flow had ended, and flows that were renewed with frames
// queued whose shares were tracked, and flows with frames in two classes.
type happened struct{ evicted, renewed, spread int }

func queuedFlows(seed int64) (did happened, err error) {
	r := rand.New(rand.NewSource(seed))
	const ports, classes = 2, 2
	capacity := 16 + r.Intn(200)
	unit := int64(1) // of time, ns
	if seed%2 == 1 {
		unit = 1e6
	}
	aging := unit * int64(20+r.Intn(200))
	w := &testFlows{}
	table, err := flowtable.New(make([]byte, flowtable.Size(capacity)), flowtable.Config{Capacity: capacity, Aging: aging, Observer: w})
	if err != nil {
		return did, err
	}
	w.Accounts = account.New(make([]byte, account.Size(capacity)), table)
	w.ports = make([]Port, ports)
	model := [ports][classes][]modelFrame{}
	for i := range w.ports {
		q := &w.ports[i]
		q.Classes = make([]Class, classes)
		for c := range classes {
			q.Classes[c] = Class{Ring: newRing(make([]byte, 1024*entrySize)), Shares: newShares(make([]byte, 8*1025), &w.Accounts, c)}
		}
	}
	now := int64(1)
	nkeys := 4 + r.Intn(300)
	slow := r.Intn(7)
	for step := range 400 {
		now += unit * int64(r.Intn(8))
		if r.Intn(30) == 0 {
			now += aging
		}
		for p := range w.ports { // what the device has sent leaves
			q := &w.ports[p]
			for c := range classes {
				n := q.Classes[c].Len()
				n = min(n, r.Intn(1+64>>slow))
				if r.Intn(40) == 0 {
					n = q.Classes[c].Len()
				}
				if n == 0 {
					continue
				}
				want := uint64(0)
				for _, f := range model[p][c][:n] {
					want += uint64(f.size)
				}
				if got := q.Classes[c].leaveAll(n); got != want {
					return did, fmt.Errorf("step %d: %d bytes left, want %d", step, got, want)
				}
				model[p][c] = model[p][c][n:]
			}
		}
		for p := range w.ports {
			n := r.Intn(65)
			var keys [64]flowtable.Key
			var found [64]flowtable.Ref
			hot := r.Intn(nkeys)
			for i := range n {
				k := hot
				if r.Intn(2) == 0 {
					k = r.Intn(nkeys)
				}
				keys[i] = flowtable.Key{Src: packet.Addr{Lo: uint64(k)}, DestQP: uint32(2 + k), Port: uint16(p)}
			}
			w.Flows.Lookup(records(keys[:n]...), now, found[:n])
			for i := range n {
				if x := found[i].Index; x != flowtable.None && r.Intn(20) == 0 { // its QPs serve another connection
					if w.Get(x).Queued > 0 {
						did.renewed++
					}
					w.Flows.Renew(x, now)
					nameAnew(found[:n], found[i], w.Flows.Ref(x))
				}
			}
			q := &w.ports[p]
			if r.Intn(2) == 0 { // a burst at once
				c := r.Intn(classes)
				if q.Classes[c].Len()+n <= 1024 {
					rx := make([]burst.Frame, n)
					bytes := uint64(0)
					for i := range rx {
						rx[i] = burst.Frame{Buf: 1, Len: uint32(60 + r.Intn(1000))}
						bytes += uint64(rx[i].Len)
						model[p][c] = append(model[p][c], modelFrame{found[i], rx[i].Len})
					}
					q.Classes[c].Enter(rx, found[:n], bytes)
				}
			} else {
				for i := range n {
					c := r.Intn(classes)
					if q.Classes[c].Full() {
						continue
					}
					f := burst.Frame{Buf: 1, Len: uint32(60 + r.Intn(1000))}
					model[p][c] = append(model[p][c], modelFrame{found[i], f.Len})
					q.enter(c, f, found[i].Index)
				}
			}
			if r.Intn(4) == 0 {
				c := r.Intn(classes)
				q.Classes[c].Track()
				q.Classes[c].largest()
			}
		}
		w.Flows.Sweep(now)
		if err := checkQueuedFlows(w, &model, &did); err != nil {
			return did, fmt.Errorf("step %d: %w", step, err)
		}
	}
	return did, nil
}

// testFlows has the flows of queues, whose frames stay at their port. As a worker, it ends their shares with them.
type testFlows struct {
	account.Accounts
	ports []Port
}

// Begin implements flowtable.Observer.
func (*testFlows) Begin(flowtable.Index) {}

// End implements flowtable.Observer.
func (w *testFlows) End(x flowtable.Index, _ flowtable.Ending) {
	if a := w.Find(x); a != nil {
		w.ports[w.Flows.Key(x).Port].End(x, a)
		a.Begin(a.Generation.Load() + 1)
	}
}

// nameAnew gives packets the Ref of the flow that has replaced theirs.
func nameAnew(flows []flowtable.Ref, was, is flowtable.Ref) {
	for i := range flows {
		if flows[i] == was {
			flows[i] = is
		}
	}
}

func checkQueuedFlows(w *testFlows, model *[2][2][]modelFrame, did *happened) error {
	queued := map[flowtable.Index]map[int]uint64{} // by class
	for p := range w.ports {
		q := &w.ports[p]
		for c := range q.Classes {
			ring, s := &q.Classes[c], &q.Classes[c].Shares
			if ring.n != len(model[p][c]) {
				return fmt.Errorf("port %d class %d: %d frames, want %d", p, c, ring.n, len(model[p][c]))
			}
			other, ended, most := uint64(0), uint64(0), uint64(0)
			mine := map[flowtable.Index]uint64{}
			depth := uint64(0)
			for i, m := range model[p][c] {
				at := ring.place(i)
				depth += uint64(m.size)
				if ring.tags[at] != m.tag {
					return fmt.Errorf("tag %v, want %v", ring.tags[at], m.tag)
				}
				x := m.tag.Index
				if x == flowtable.None {
					other += uint64(m.size)
					continue
				}
				if !w.Flows.State(x).Live() || w.Flows.Ref(x) != m.tag {
					ended += uint64(m.size)
					did.evicted++
					continue
				}
				if s.Tracked {
					mine[x] += uint64(m.size)
					if queued[x] == nil {
						queued[x] = map[int]uint64{}
					}
					queued[x][c] += uint64(m.size)
				}
			}
			if depth != q.Classes[c].Depth {
				return fmt.Errorf("depth")
			}
			if !s.Tracked {
				continue
			}
			for x, n := range mine {
				a := w.Known(x)
				part := w.Share(x, a, uint8(c))
				if a != w.Get(x) || uint64(part.Queued) != n {
					return fmt.Errorf("port %d class %d flow %d: %d queued, want %d", p, c, x, part.Queued, n)
				}
				if (part.Rank != 0) != s.Ranked {
					return fmt.Errorf("rank %d, ranked %v", part.Rank, s.Ranked)
				}
				if len(queued[x]) == 2 {
					did.spread++
				}
				most = max(most, n)
			}
			if s.Other != other || s.Ended != ended {
				return fmt.Errorf("port %d class %d: other %d and ended %d, want %d and %d", p, c, s.Other, s.Ended, other, ended)
			}
			if s.Ranked && (s.n != len(mine) || s.largest() != most) {
				return fmt.Errorf("heap of %d, want %d", s.n, len(mine))
			}
		}
	}
	for x := flowtable.Index(1); x <= w.Flows.High(); x++ {
		if !w.Flows.State(x).Live() {
			continue
		}
		a, sum := w.Get(x), uint64(0)
		for c := range account.MaxClasses {
			sum += queued[x][c]
			if part := w.Share(x, a, uint8(c)); uint64(part.Queued) != queued[x][c] || part.Queued == 0 && part.Rank != 0 {
				return fmt.Errorf("flow %d class %d: %d queued, rank %d, want %d", x, c, part.Queued, part.Rank, queued[x][c])
			}
		}
		if got := w.QueuedBytes(x, a); got != sum {
			return fmt.Errorf("flow %d: %d queued in all classes, want %d", x, got, sum)
		}
	}
	return nil
}
