package dataplane

import (
	"fmt"
	"math/rand"
	"testing"

	"github.com/cnpgate/cnpgate/dataplane/account"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing"
)

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
	shared, err := pairing.New(make([]byte, pairing.Size(1024)), pairing.Config{Flows: 1024, Egress: []int{1, 0}})
	if err != nil {
		return did, err
	}
	w := &Worker{plane: &Dataplane{pairing: shared}, egress: make([]egress, ports), ports: []PortConfig{{Peer: 0}, {Peer: 1}}} // frames stay at their port
	err = w.initFlows(&Config{Flows: capacity, Aging: aging, Allocate: func(bytes int) ([]byte, error) { return make([]byte, bytes+8), nil }})
	if err != nil {
		return did, err
	}
	model := [ports][classes][]modelFrame{}
	for i := range w.egress {
		q := &w.egress[i]
		q.classes, q.depth, q.shares = make([]ring, classes), make([]uint64, classes), make([]flowShares, classes)
		q.states, q.flows = make([]classState, classes), w.flows
		for c := range classes {
			q.classes[c] = newRing(make([]byte, 1024*entrySize))
			q.shares[c] = newFlowShares(make([]byte, 8*1025), &w.accounts, c)
		}
	}
	nkeys := 4 + r.Intn(300)
	w.now = 1
	slow := r.Intn(7)
	for step := range 400 {
		w.now += unit * int64(r.Intn(8))
		if r.Intn(30) == 0 {
			w.now += aging
		}
		for p := range w.egress { // what the device has sent leaves
			q := &w.egress[p]
			for c := range classes {
				n := q.classes[c].n
				n = min(n, r.Intn(1+64>>slow))
				if r.Intn(40) == 0 {
					n = q.classes[c].n
				}
				if n == 0 {
					continue
				}
				want := uint64(0)
				for _, f := range model[p][c][:n] {
					want += uint64(f.size)
				}
				if got := q.leaveAll(c, n); got != want {
					return did, fmt.Errorf("step %d: %d bytes left, want %d", step, got, want)
				}
				model[p][c] = model[p][c][n:]
			}
		}
		for p := range w.egress {
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
			w.flows.Lookup(records(keys[:n]...), w.now, found[:n])
			for i := range n {
				if x := found[i].Index; x != flowtable.None && r.Intn(20) == 0 { // its QPs serve another connection
					if w.accounts.Get(x).Queued > 0 {
						did.renewed++
					}
					w.flows.Renew(x, w.now)
					replace(found[:n], found[i], w.flows.Ref(x))
				}
			}
			q := &w.egress[p]
			if r.Intn(2) == 0 { // a burst at once
				c := r.Intn(classes)
				if q.classes[c].n+n <= 1024 {
					rx := make([]burst.Frame, n)
					bytes := uint64(0)
					for i := range rx {
						rx[i] = burst.Frame{Buf: 1, Len: uint32(60 + r.Intn(1000))}
						bytes += uint64(rx[i].Len)
						model[p][c] = append(model[p][c], modelFrame{found[i], rx[i].Len})
					}
					q.enterAll(c, rx, found[:n], bytes)
				}
			} else {
				for i := range n {
					c := r.Intn(classes)
					if q.classes[c].full() {
						continue
					}
					f := burst.Frame{Buf: 1, Len: uint32(60 + r.Intn(1000))}
					model[p][c] = append(model[p][c], modelFrame{found[i], f.Len})
					q.enter(c, f, found[i].Index)
				}
			}
			if r.Intn(4) == 0 {
				c := r.Intn(classes)
				q.track(c)
				q.largest(c)
			}
		}
		w.flows.Sweep(w.now)
		if err := checkQueuedFlows(w, &model, &did); err != nil {
			return did, fmt.Errorf("step %d: %w", step, err)
		}
	}
	return did, nil
}

func checkQueuedFlows(w *Worker, model *[2][2][]modelFrame, did *happened) error {
	queued := map[flowtable.Index]map[int]uint64{} // by class
	for p := range w.egress {
		q := &w.egress[p]
		for c := range q.classes {
			ring, s := &q.classes[c], &q.shares[c]
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
				if !w.flows.State(x).Live() || w.flows.Ref(x) != m.tag {
					ended += uint64(m.size)
					did.evicted++
					continue
				}
				if s.tracked {
					mine[x] += uint64(m.size)
					if queued[x] == nil {
						queued[x] = map[int]uint64{}
					}
					queued[x][c] += uint64(m.size)
				}
			}
			if depth != q.depth[c] {
				return fmt.Errorf("depth")
			}
			if !s.tracked {
				continue
			}
			for x, n := range mine {
				a := w.accounts.Known(x)
				part := w.accounts.Share(x, a, uint8(c))
				if a != w.accounts.Get(x) || uint64(part.Queued) != n {
					return fmt.Errorf("port %d class %d flow %d: %d queued, want %d", p, c, x, part.Queued, n)
				}
				if (part.Rank != 0) != s.ranked {
					return fmt.Errorf("rank %d, ranked %v", part.Rank, s.ranked)
				}
				if len(queued[x]) == 2 {
					did.spread++
				}
				most = max(most, n)
			}
			if s.other != other || s.ended != ended {
				return fmt.Errorf("port %d class %d: other %d and ended %d, want %d and %d", p, c, s.other, s.ended, other, ended)
			}
			if s.ranked && (s.n != len(mine) || s.largest() != most) {
				return fmt.Errorf("heap of %d, want %d", s.n, len(mine))
			}
		}
	}
	for x := flowtable.Index(1); x <= w.flows.High(); x++ {
		if !w.flows.State(x).Live() {
			continue
		}
		a, sum := w.accounts.Get(x), uint64(0)
		for c := range account.MaxClasses {
			sum += queued[x][c]
			if part := w.accounts.Share(x, a, uint8(c)); uint64(part.Queued) != queued[x][c] || part.Queued == 0 && part.Rank != 0 {
				return fmt.Errorf("flow %d class %d: %d queued, rank %d, want %d", x, c, part.Queued, part.Rank, queued[x][c])
			}
		}
		if got := w.accounts.QueuedBytes(x, a); got != sum {
			return fmt.Errorf("flow %d: %d queued in all classes, want %d", x, got, sum)
		}
	}
	return nil
}
