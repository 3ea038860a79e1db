package pairing

import (
	"testing"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// TestPairsWithoutScope: a pair without a scope names a flow as long as no other scope has such a flow, at whatever worker; one of a scope names the flow
// there.
func TestPairsWithoutScope(t *testing.T) {
	in := func(vid uint16) packet.Scope {
		return packet.ScopeInVLAN(0, packet.MakeTag(packet.EtherTypeCTag, vid), 0)
	}
	tunnel := packet.ScopeInTunnel(0, packet.Tunnel{Kind: packet.VXLAN, ID: 10}, 0)
	pair := QPPair{Source: alice, Destination: bob, SourceQP: 100, DestinationQP: 200}
	scoped := func(s packet.Scope, qp uint32) QPPair {
		p := pair
		p.InScope, p.Scope, p.SourceQP = true, s, qp
		return p
	}
	for _, c := range []struct {
		name  string
		pairs []QPPair
		want  map[packet.Scope][2]uint32 // source QPs while both scopes have the flow, and after the other one's has ended; 0: unknown
	}{
		{"without a scope", []QPPair{pair}, map[packet.Scope][2]uint32{in(10): {0, 100}, in(20): {0, 100}}},
		{"without a scope, in a tunnel", []QPPair{pair}, map[packet.Scope][2]uint32{in(10): {0, 100}, tunnel: {0, 100}}},
		{"behind two ports", []QPPair{pair}, map[packet.Scope][2]uint32{0: {0, 100}, packet.Scope(0).At(2): {0, 100}}},
		{"one has a scope", []QPPair{scoped(in(10), 100)}, map[packet.Scope][2]uint32{in(10): {100, 100}, in(20): {0, 0}}},
		{"both have scopes", []QPPair{scoped(in(10), 100), scoped(in(20), 101)}, map[packet.Scope][2]uint32{in(10): {100, 100}, in(20): {101, 101}}},
		{"the scope's pair wins", []QPPair{pair, scoped(in(20), 101)}, map[packet.Scope][2]uint32{in(10): {0, 100}, in(20): {101, 101}}},
		{"of no tag", []QPPair{scoped(0, 100)}, map[packet.Scope][2]uint32{0: {100, 100}, in(10): {0, 0}}},
	} {
		m, err := NewQPMap(c.pairs, 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, hints := range []bool{false, true} {
			for _, late := range []bool{false, true} { // the map comes when the flows exist
				for ends := range c.want { // this one's flow ends
					g := newGateway(t, 64)
					set := func() {
						for _, w := range g.workers {
							if hints {
								g.pairing.SetHints(m)
							} else {
								w.SetStatic(m)
							}
							w.Learner.Sweep()
						}
					}
					if !late {
						set()
					}
					at, keys := map[packet.Scope]int{}, map[packet.Scope]flowtable.Key{}
					for s := range c.want {
						k := flowtable.Key{Src: alice, Dst: bob, DestQP: 200}
						k.SetScope(s)
						worker := len(at)
						at[s], keys[s] = worker, k
						g.workers[worker].lookup([]flowtable.Key{k}, synthEpoch, g.flow[:])
					}
					if late {
						set()
					}
					check := func(after int) {
						for s, want := range c.want {
							if after == 1 && s == ends {
								continue
							}
							k := keys[s]
							a, ok := g.workers[at[s]].find(&k)
							if qp := a.SourceQP(); !ok || a.Usable() != (want[after] != 0) || qp != want[after] {
								t.Errorf("%s, hints %v, late %v, %d flows: scope %#x: %v, expected QP %d", c.name, hints, late, len(c.want)-after, s, a, want[after])
							}
						}
					}
					check(0)
					for s, k := range keys { // the others stay
						if s != ends {
							g.workers[at[s]].lookup([]flowtable.Key{k}, synthEpoch+50e9, g.flow[:])
						}
					}
					for range 100 {
						g.workers[at[ends]].Table.Sweep(synthEpoch + 61e9)
					}
					check(1)
				}
			}
		}
	}
}

// TestFirstMapOfManyFlows: a worker with many flows lists them only once a map has a pair without a scope, a few a
// Sweep. A pair without a scope applies to none
// until all workers have listed theirs, and then to those that have no twin.
func TestFirstMapOfManyFlows(t *testing.T) {
	const flows = 500
	var keys [2][]flowtable.Key
	var pairs []QPPair
	for n := range uint32(flows) {
		k := flowtable.Key{Src: alice, Dst: bob, DestQP: 200 + n}
		pairs = append(pairs, QPPair{alice, bob, 10_000 + n, k.DestQP, false, 0, false})
		keys[0] = append(keys[0], k)
		if k.OuterTag = packet.MakeTag(packet.EtherTypeCTag, 10); n < flows/4 {
			keys[1] = append(keys[1], k)
		}
	}
	m := pairsMap(t, pairs...)
	first := pairs[0]
	first.InScope = true
	inScope, err := NewQPMap([]QPPair{first}, 1)
	if err != nil {
		t.Fatal(err)
	}
	for name, set := range map[string]func(g *gateway){
		"static": func(g *gateway) {
			for _, w := range g.workers {
				w.SetStatic(m)
			}
		},
		"hints": func(g *gateway) { g.pairing.SetHints(m) },
	} {
		g := newGateway(t, 2*flows)
		for i, w := range g.workers {
			w.lookup(keys[i], synthEpoch, make([]flowtable.Ref, flows)[:len(keys[i])])
			for _, m := range []*QPMap{nil, pairsMap(t), inScope} {
				w.SetStatic(m)
				g.pairing.SetHints(m)
				for range 2 * flows / recheckBatch {
					w.Learner.Sweep()
				}
			}
			if w.TwinsListed() {
				t.Fatalf("%s: listed without a map", name)
			}
			w.SetStatic(nil)
			g.pairing.SetHints(nil)
		}
		set(g)
		usable := func() (n int) {
			for i, w := range g.workers {
				for j := range keys[i] {
					if a, ok := w.find(&keys[i][j]); !ok || a.Usable() && i == 0 && j < len(keys[1]) {
						t.Fatalf("%s: flow %d of worker %d: %v", name, j, i, a)
					} else if a.Usable() {
						n++
					}
				}
			}
			return n
		}
		more := keys[0][0] // a flow that begins meanwhile
		more.OuterTag = packet.MakeTag(packet.EtherTypeCTag, 20)
		for n := range 2*flows/recheckBatch + 1 {
			for i, w := range g.workers {
				w.Learner.Sweep()
				if n < flows/recheckBatch-1 && usable() != 0 {
					t.Fatalf("%s: a pair applies after %d Sweeps", name, n)
				}
				if n == 2 && i == 0 {
					w.lookup([]flowtable.Key{more}, synthEpoch, make([]flowtable.Ref, 1))
				}
			}
		}
		if n := usable(); n != flows-len(keys[1]) {
			t.Errorf("%s: %d flows have QPs, expected %d", name, n, flows-len(keys[1]))
		}
		if a, ok := g.workers[0].find(&more); !ok || a.Usable() {
			t.Errorf("%s: a third twin: %v", name, a)
		}
	}
}

// TestTwinOfFlowSinceFirstHints: a flow that begins between the first hints and the next Sweep, and gets its QP from them, is found by the worker
// at which its twin begins, however many flows have followed it.
func TestTwinOfFlowSinceFirstHints(t *testing.T) {
	g := newGateway(t, 1024)
	for _, w := range g.workers {
		w.Learner.Sweep()
	}
	g.pairing.SetHints(pairsMap(t, QPPair{alice, bob, 100, 200, false, 0, false}))
	k := flowtable.Key{Src: alice, Dst: bob, DestQP: 200}
	keys := []flowtable.Key{k}
	for n := range uint32(200) {
		keys = append(keys, flowtable.Key{Src: alice, Dst: bob, DestQP: 300 + n})
	}
	g.workers[0].lookup(keys, synthEpoch, make([]flowtable.Ref, len(keys)))
	if a, _ := g.workers[0].find(&k); a.SourceQP() != 100 || !a.Usable() {
		t.Fatalf("%v", a)
	}
	twin := k
	twin.OuterTag = packet.MakeTag(packet.EtherTypeCTag, 10)
	g.workers[1].lookup([]flowtable.Key{twin}, synthEpoch, make([]flowtable.Ref, 1))
	for i, k := range []flowtable.Key{k, twin} {
		if a, ok := g.workers[i].find(&k); !ok || a.Usable() {
			t.Errorf("worker %d: %v", i, a)
		}
	}
}
