package pairing

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// anyone is a hint without a destination.
func anyone(source packet.Addr, sourceQP, destinationQP uint32) QPPair {
	return QPPair{Source: source, SourceQP: sourceQP, DestinationQP: destinationQP, OneWay: true}
}

func (g *gateway) sweepAll(rounds int) {
	for range rounds {
		for _, w := range g.workers {
			w.Learner.Sweep()
		}
	}
}

// TestOneWayPair: it names the source QP of packets from its source, and nothing about those to it, nor about the other end's QP.
func TestOneWayPair(t *testing.T) {
	m := pairsMap(t, QPPair{Source: alice, Destination: bob, SourceQP: 100, DestinationQP: 200, OneWay: true})
	if qp, ok := m.Lookup(alice, bob, 200); !ok || qp != 100 {
		t.Error("the direction of the pair: ", qp, ok)
	}
	if qp, ok := m.Lookup(bob, alice, 100); ok {
		t.Error("the other direction: ", qp)
	}
	if !m.names(0, alice, 100) || m.names(0, bob, 200) {
		t.Error("the QPs that it names as ends of a connection aren't the source's only")
	}
	if _, err := NewQPMap([]QPPair{{Source: alice, SourceQP: 100, DestinationQP: 200}}, 1); err == nil {
		t.Error("a pair for both directions without a destination: accepted")
	}
	if _, err := NewQPMap([]QPPair{anyone(alice, 100, 200), anyone(alice, 101, 200)}, 1); err == nil {
		t.Error("two QPs connected to the same number, no destination: accepted")
	}
}

// TestHintWithoutDestination: it names the only flow from the host to the QP, at whatever worker, whether the flow or the hint comes first. While
// another such flow exists, to whatever host or in whatever VLAN, it names none, and that is counted.
func TestHintWithoutDestination(t *testing.T) {
	carol := packet.Addr{Lo: 77}
	key := func(dst packet.Addr, vid uint16) flowtable.Key {
		k := flowtable.Key{Src: alice, Dst: dst, DestQP: 200}
		if vid != 0 {
			k.OuterTag = packet.MakeTag(packet.EtherTypeCTag, vid)
		}
		return k
	}
	for name, other := range map[string]flowtable.Key{"another host": key(carol, 0), "another VLAN": key(bob, 10)} {
		for _, hintFirst := range []bool{false, true} {
			for _, sameWorker := range []bool{false, true} {
				g := newGateway(t, 64)
				first, second := g.workers[0], g.workers[1]
				if sameWorker {
					second = first
				}
				k, reverse := key(bob, 0), flowtable.Key{Src: bob, Dst: alice, DestQP: 100, Port: 1}
				unrelated := flowtable.Key{Src: carol, Dst: bob, DestQP: 200}
				begin := func(w *worker, k flowtable.Key, now int64) {
					w.lookup([]flowtable.Key{k}, now, make([]flowtable.Ref, 1))
				}
				hint := func() {
					g.pairing.SetHints(pairsMap(t, anyone(alice, 100, 200)))
					g.sweepAll(6)
				}
				if hintFirst {
					hint()
				}
				begin(first, k, synthEpoch)
				begin(second, reverse, synthEpoch)
				begin(second, unrelated, synthEpoch)
				if !hintFirst {
					hint()
				}
				is := func(when string, w *worker, k flowtable.Key, want uint32) {
					t.Helper()
					if a, ok := w.find(&k); !ok || a.Usable() != (want != 0) || a.SourceQP() != want {
						t.Errorf("%s, hint first %v, same worker %v, %s: %v, expected QP %d", name, hintFirst, sameWorker, when, a, want)
					}
				}
				ambiguous := func() uint64 {
					g.sweepAll(1)
					return first.counts.Ambiguous + second.counts.Ambiguous*uint64(len(g.workers)-1)
				}
				is("alone", first, k, 100)
				is("the other direction", second, reverse, 0)
				is("of another source", second, unrelated, 0)
				if n := ambiguous(); n != 0 {
					t.Errorf("%d flows are counted as ambiguous before any is", n)
				}
				begin(second, other, synthEpoch+1)
				is("with another flow", first, k, 0)
				is("the other flow", second, other, 0)
				if ambiguous() == 0 {
					t.Error("an ambiguous hint isn't counted")
				}
				begin(first, k, synthEpoch+50e9) // it stays, and the other one ages
				for range 100 {
					second.Table.Sweep(synthEpoch + 61e9)
				}
				is("alone again", first, k, 100)
				g.pairing.SetHints(nil)
				g.sweepAll(2)
				is("withdrawn", first, k, 0)
			}
		}
	}
}

// TestNewHintOfManyFlows: a hint that comes when two flows match it, however many flows lie between them in the table, and though other hints
// change with each Sweep, never names one of them.
func TestNewHintOfManyFlows(t *testing.T) {
	const flows = 500
	g := newGateway(t, 2*flows)
	var keys []flowtable.Key
	for n := range uint32(flows) {
		keys = append(keys, flowtable.Key{Src: alice, Dst: bob, DestQP: 1000 + n})
	}
	keys[3] = flowtable.Key{Src: alice, Dst: bob, DestQP: 200}
	keys[flows-3] = flowtable.Key{Src: alice, Dst: packet.Addr{Lo: 77}, DestQP: 200}
	g.workers[0].lookup(keys, synthEpoch, make([]flowtable.Ref, flows))
	for n := range uint32(6 * flows / recheckBatch) {
		g.pairing.SetHints(pairsMap(t, anyone(alice, 100, 200), anyone(alice, 101, 1010), anyone(bob, 5, 10_000+n)))
		g.sweepAll(1)
		for _, i := range []int{3, flows - 3} {
			if a, _ := g.workers[0].find(&keys[i]); a.Usable() {
				t.Fatalf("after %d Sweeps flow %d is %v", n, i, a)
			}
		}
	}
	if a, _ := g.workers[0].find(&keys[10]); a.SourceQP() != 101 || !a.Usable() {
		t.Errorf("the only flow that matches a hint: %v", a)
	}
	if n := g.workers[0].counts.Ambiguous; n == 0 {
		t.Error("the ambiguous hint isn't counted")
	}
}

// TestHintsWithoutDestinationAbstain: whatever flows begin and end, and whatever hints come and go: a flow has the QP of a hint only while it is
// the only one that matches, and does have it once all is calm.
func TestHintsWithoutDestinationAbstain(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		g := newGateway(t, 256)
		type placed struct {
			worker int
			key    flowtable.Key
		}
		begun := map[placed]int64{}
		now := int64(synthEpoch)
		hints := map[uint32]uint32{} // source QPs by destination QP
		applied := true              // the workers have compared their flows with the present hints
		publish := func() {
			applied = false
			var pairs []QPPair
			for d, s := range hints {
				pairs = append(pairs, anyone(alice, s, d))
			}
			g.pairing.SetHints(pairsMap(t, pairs...))
		}
		check := func(calm bool) {
			matching := map[uint32]map[flowtable.Key]bool{}
			for p := range begun {
				if _, ok := g.workers[p.worker].find(&p.key); !ok {
					delete(begun, p)
					continue
				}
				if matching[p.key.DestQP] == nil {
					matching[p.key.DestQP] = map[flowtable.Key]bool{}
				}
				matching[p.key.DestQP][p.key] = true
			}
			for p := range begun {
				a, _ := g.workers[p.worker].find(&p.key)
				n, want := len(matching[p.key.DestQP]), hints[p.key.DestQP]
				if applied && a.Usable() && (n > 1 || calm && a.SourceQP() != want) {
					rt.Fatalf("%+v: %v with %d flows that match", p, a, n)
				}
				if calm && n == 1 && want != 0 && !a.Usable() {
					rt.Fatalf("%+v: %v, expected QP %d", p, a, want)
				}
			}
		}
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			now += 1e9
			switch qp := rapid.Uint32Range(200, 203).Draw(rt, "QP"); rapid.IntRange(0, 4).Draw(rt, "step") {
			case 0, 1:
				p := placed{rapid.IntRange(0, len(g.workers)-1).Draw(rt, "worker"),
					flowtable.Key{Src: alice, Dst: packet.Addr{Lo: rapid.Uint64Range(50, 51).Draw(rt, "host")}, DestQP: qp}}
				g.workers[p.worker].lookup([]flowtable.Key{p.key}, now, make([]flowtable.Ref, 1))
				begun[p] = now
			case 2:
				now += 40e9
				for _, w := range g.workers {
					w.Table.Sweep(now)
				}
			case 3:
				hints[qp] = 100 + qp + rapid.Uint32Range(0, 1).Draw(rt, "change")
				publish()
			case 4:
				delete(hints, qp)
				publish()
			}
			check(false)
			sweeps := rapid.IntRange(0, 2).Draw(rt, "sweeps")
			g.sweepAll(sweeps)
			applied = applied || sweeps > 0
			check(false)
		}
		g.sweepAll(12)
		check(true)
	})
}
