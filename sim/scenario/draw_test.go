package scenario_test

import (
	"testing"

	"github.com/cnpgate/cnpgate/sim/scenario"
)

// TestDrawn: on networks with NICs that were drawn, standard CNPs fill the WAN and lose nothing in at least the share of draws that docs/effect.md states, and lose less
// than ECN alone in all together.
func TestDrawn(t *testing.T) {
	const (
		full       = 0.95 // of the possible goodput
		leastDrawn = 33   // percent of the draws
	)
	good, lost, alone := 0, uint64(0), uint64(0)
	for n := range drawnNICs {
		d := scenario.Draw(5, uint64(n)+1)
		s := parse(t, string(d.Text))
		ecn, cnp := run(t, s, scenario.ECN), run(t, s, scenario.StandardCNP)
		if cnp.Dropped == 0 && cnp.All.Goodput >= full*cnp.Possible {
			good++
		}
		lost, alone = lost+cnp.Dropped, alone+ecn.Dropped
		t.Logf("%s, %s: %.3f of the possible goodput, %d packets lost; with ECN alone %.3f and %d", d.Name, d.Summary, cnp.All.Goodput/cnp.Possible, cnp.Dropped, ecn.All.Goodput/ecn.Possible, ecn.Dropped)
	}
	if good*100 < leastDrawn*drawnNICs || lost > alone/2 {
		t.Errorf("%d of %d draws have %g of the possible goodput and lose nothing, want %d %%; %d packets were lost, with ECN alone %d", good, drawnNICs, full, leastDrawn, lost, alone)
	}
}

// TestDraw: the same seed and number give the same network, others another one; its name finds it.
func TestDraw(t *testing.T) {
	d, other := scenario.Draw(1, 2), scenario.Draw(2, 1)
	found, ok := scenario.FindDrawn(d.Name)
	if !ok || string(found.Text) != string(d.Text) || d.Summary == other.Summary {
		t.Errorf("draw-1-2 is %q, found by its name %q; draw-2-1 is %q", d.Summary, found.Summary, other.Summary)
	}
	for _, name := range []string{"draw", "draw-1", "draw-1-02", "draw-1-2.yaml", "drawn-1-2"} {
		if _, ok := scenario.FindDrawn(name); ok {
			t.Errorf("%q names a drawn network", name)
		}
	}
}
