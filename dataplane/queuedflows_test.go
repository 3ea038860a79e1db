package dataplane

import (
	"fmt"
	"math/rand"
	"testing"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing"
)

// TestQueuedFlowsStay: whatever comes, leaves, changes its class, ages, is renewed or evicted, the flow of a frame that waits is the one that
// it came with, and what a queue tracks of flows is what a walk over it finds. A worker's loop in small, with two ports and two classes.
func TestQueuedFlowsStay(t *testing.T) {
	var all happened
	for seed := range int64(queueSeeds) {
		one, err := queuedFlows(seed)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		all.long += one.long
		all.renewed += one.renewed
	}
	if all.long == 0 || all.renewed == 0 {
		t.Errorf("%+v: not what was to be tested", all)
	}
}

type modelFrame struct {
	key  flowtable.Key
	x    flowtable.Index
	size uint32
}

// happened counts what a run is to have in it: steps that found frames which had waited for long, and flows that were renewed with frames
// queued whose shares were tracked.
type happened struct{ long, renewed int }

func queuedFlows(seed int64) (did happened, err error) {
	r := rand.New(rand.NewSource(seed))
	const ports, classes = 2, 2
	capacity := 16 + r.Intn(200)
	unit := int64(1) // of time, ns
	if seed%2 == 1 {
		unit = 1e6
	}
	aging := unit * int64(20+r.Intn(200))
	shared, err := pairing.New(make([]byte, pairing.Size(1024)), pairing.Config{Flows: 1024, Peers: []int{1, 0}})
	if err != nil {
		return did, err
	}
	w := &Worker{plane: &Dataplane{pairing: shared}, egress: make([]egress, ports)}
	err = w.initFlows(&Config{Flows: capacity, Aging: aging, Allocate: func(bytes int) ([]byte, error) { return make([]byte, bytes+8), nil }})
	if err != nil {
		return did, err
	}
	model := [ports][classes][]modelFrame{}
	for i := range w.egress {
		q := &w.egress[i]
		q.classes, q.depth, q.shares, q.waits = make([]ring, classes), make([]uint64, classes), make([]flowShares, classes), make([]wait, classes)
		for c := range classes {
			q.classes[c] = newRing(make([]byte, 1024*entrySize))
			q.shares[c] = newFlowShares(make([]byte, 8*1025), &w.accounts)
			q.shares[c].eager = seed%3 == 0
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
				q.waits[c].leave(w.now, n, q.classes[c].n)
			}
		}
		for p := range w.egress {
			for c, t := range w.egress[p].waits {
				if w.egress[p].classes[c].n > 0 && w.now-t.since > longWait {
					did.long++
				}
			}
		}
		w.hold()
		for p := range w.egress {
			n := r.Intn(65)
			var keys [64]flowtable.Key
			var x [64]flowtable.Index
			hot := r.Intn(nkeys)
			for i := range n {
				k := hot
				if r.Intn(2) == 0 {
					k = r.Intn(nkeys)
				}
				keys[i] = flowtable.Key{Src: packet.Addr{Lo: uint64(k)}, DestQP: uint32(2 + k), Port: uint16(p)}
			}
			w.flows.Lookup(keys[:n], w.now, x[:n])
			for i := range n {
				if x[i] != flowtable.None && r.Intn(20) == 0 { // its QPs serve another connection
					if w.accounts.get(x[i]).queued > 0 {
						did.renewed++
					}
					w.flows.Renew(x[i], w.now)
				}
			}
			q := &w.egress[p]
			if r.Intn(2) == 0 { // a burst at once
				c := r.Intn(classes)
				if q.classes[c].n+n <= 1024 {
					rx := make([]burst.Frame, n)
					b := summary{class: c}
					for i := range rx {
						rx[i] = burst.Frame{Buf: 1, Len: uint32(60 + r.Intn(1000))}
						b.bytes += uint64(rx[i].Len)
						model[p][c] = append(model[p][c], modelFrame{keys[i], x[i], rx[i].Len})
					}
					copy(w.flow[:], x[:n])
					w.enterAll(q, &b, rx)
				}
			} else {
				for i := range n {
					c := r.Intn(classes)
					if q.classes[c].full() {
						continue
					}
					f := burst.Frame{Buf: 1, Len: uint32(60 + r.Intn(1000))}
					model[p][c] = append(model[p][c], modelFrame{keys[i], x[i], f.Len})
					q.enter(c, entry{f, x[i]})
				}
			}
			if r.Intn(4) == 0 {
				c := r.Intn(classes)
				q.track(c)
				q.largest(c)
			}
		}
		w.flows.Sweep(w.now)
		if err := checkQueuedFlows(w, &model); err != nil {
			return did, fmt.Errorf("step %d: %w", step, err)
		}
	}
	return did, nil
}

func checkQueuedFlows(w *Worker, model *[2][2][]modelFrame) error {
	queued := map[flowtable.Index]uint64{}
	for p := range w.egress {
		q := &w.egress[p]
		for c := range q.classes {
			ring, s := &q.classes[c], &q.shares[c]
			if ring.n != len(model[p][c]) {
				return fmt.Errorf("port %d class %d: %d frames, want %d", p, c, ring.n, len(model[p][c]))
			}
			other, most := uint64(0), uint64(0)
			mine := map[flowtable.Index]uint64{}
			depth := uint64(0)
			for i, m := range model[p][c] {
				at := ring.place(i)
				depth += uint64(m.size)
				x := ring.tags[at]
				if x == flowtable.None {
					other += uint64(m.size)
					continue
				}
				if x != m.x {
					return fmt.Errorf("tag %d, want %d", x, m.x)
				}
				if !w.flows.State(x).Live() || *w.flows.Key(x) != m.key {
					return fmt.Errorf("port %d class %d: frame %d's flow is gone", p, c, i)
				}
				if s.tracked {
					mine[x] += uint64(m.size)
					queued[x] += uint64(m.size)
				}
			}
			if depth != q.depth[c] {
				return fmt.Errorf("depth")
			}
			if !s.tracked {
				continue
			}
			for x, n := range mine {
				a := w.accounts.known(x)
				if a != w.accounts.get(x) || uint64(a.queued) != n || int(a.class) != c {
					return fmt.Errorf("port %d class %d flow %d: %d queued in class %d, want %d", p, c, x, a.queued, a.class, n)
				}
				if (a.rank != 0) != s.ranked {
					return fmt.Errorf("rank %d, ranked %v", a.rank, s.ranked)
				}
				most = max(most, n)
			}
			if s.other != other {
				return fmt.Errorf("port %d class %d: other %d, want %d", p, c, s.other, other)
			}
			if s.exact && s.most != most {
				return fmt.Errorf("most %d, want %d", s.most, most)
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
		if a := w.accounts.get(x); uint64(a.queued) != queued[x] || queued[x] == 0 && a.rank != 0 {
			return fmt.Errorf("flow %d: %d queued, rank %d, want %d", x, a.queued, a.rank, queued[x])
		}
	}
	return nil
}
