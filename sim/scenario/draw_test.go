package scenario_test

import (
	"testing"

	"github.com/cnpgate/cnpgate/internal/testkit/effort"
	"github.com/cnpgate/cnpgate/sim/scenario"
)

// How many networks and NICs are drawn, and whether tests run all of their cases.
const (
	drawnNetworks = 2*effort.Short + 2*effort.Race + 60*effort.Long
	drawnNICs     = 6*effort.Short + 6*effort.Race + 400*effort.Long
	thorough      = effort.Long == 1
)

// TestDrawn: on networks with NICs that were drawn, standard CNPs fill the WAN and lose nothing in at least a share of draws, and Long-haul CNPs in nearly all; in all
// together both lose less than ECN alone.
func TestDrawn(t *testing.T) {
	sets := []*scenario.NICSet{scenario.Published, scenario.Settable}
	if !thorough {
		sets = sets[:1]
	}
	least := map[scenario.Response]int{scenario.StandardCNP: 60, scenario.LongHaulCNP: 91} // percent of the draws
	for _, set := range sets {
		t.Run(set.Name, func(t *testing.T) {
			t.Parallel()
			full, lost := map[scenario.Response]int{}, map[scenario.Response]uint64{}
			for n := range drawnNICs {
				d := scenario.Draw(set, 5, uint64(n)+1)
				s := parse(t, string(d.Text))
				alone := run(t, s, scenario.ECN)
				lost[scenario.ECN] += alone.Dropped
				for r := range least {
					o := run(t, s, r)
					v := d.Judge(o, alone)
					if v.Full {
						full[r]++
					}
					lost[r] += o.Dropped
					b, err := d.Bound()
					if standard := r == scenario.StandardCNP; err != nil || standard && b.Loses && o.Dropped == 0 || standard && b.Long && v.Full && v.Short {
						t.Errorf("%s: whatever CNPs come, %+v, %v; %d packets were lost, and %+v", d.Name, b, err, o.Dropped, v)
					}
					t.Logf("%s, %s, %v: %.3f of the possible goodput, %d packets lost, worse than ECN alone: %t; %s", d.Name, d.Summary, r, v.Part, o.Dropped, v.Worse, v.Reason)
				}
			}
			for r, percent := range least {
				if full[r]*100 < percent*drawnNICs || lost[r] > lost[scenario.ECN]/2 {
					t.Errorf("%v: in %d of %d draws the WAN is full and nothing is lost, want %d %%; %d packets are lost, with ECN alone %d",
						r, full[r], drawnNICs, percent, lost[r], lost[scenario.ECN])
				}
			}
		})
	}
}

// TestBound: 9 NICs of 400G that return to their rate within the 50 us between two cuts overflow a queue of 10G whatever CNPs come. With a byte counter of 1 MB, they
// don't. What 27 of 25G send in a loop of 75 us keeps it long.
func TestBound(t *testing.T) {
	for number, want := range map[uint64]scenario.Bound{12: {Loses: true, Long: true}, 4: {Long: true}, 7: {}, 100: {}} {
		d := scenario.Draw(scenario.Published, 3, number)
		if b, err := d.Bound(); b != want || err != nil {
			t.Errorf("%s, %s: %+v, %v, want %+v", d.Name, d.Summary, b, err, want)
		}
	}
}

// TestSmallPackets: a queue holds a bounded number of frames, too. With small packets it is full long before it has as many bytes as it may hold, and senders are
// asked as if it were.
func TestSmallPackets(t *testing.T) {
	t.Parallel()
	s := parse(t, string(scenario.Draw(scenario.Published, 1, 16).Text), "hosts.mtu=512")
	if o := run(t, s, scenario.StandardCNP); o.Dropped != 0 {
		t.Errorf("%d packets were lost, of %d bytes of queue at most", o.Dropped, o.Gateway.Peak)
	}
}

// TestDraw: the same seed and number give the same network, with each set of NICs, others another one; its name finds it.
func TestDraw(t *testing.T) {
	d, other := scenario.Draw(scenario.Published, 1, 2), scenario.Draw(scenario.Published, 2, 1)
	found, ok := scenario.FindDrawn(d.Name)
	if !ok || string(found.Text) != string(d.Text) || d.Summary == other.Summary {
		t.Errorf("draw-1-2 is %q, found by its name %q; draw-2-1 is %q", d.Summary, found.Summary, other.Summary)
	}
	wide := scenario.Draw(scenario.Settable, 1, 2)
	if found, ok := scenario.FindDrawn("settable-1-2"); !ok || found.Name != wide.Name || wide.Summary != d.Summary || string(wide.Text) == string(d.Text) {
		t.Errorf("settable-1-2 is %q, found by its name %q; draw-1-2 is %q", wide.Summary, found.Summary, d.Summary)
	}
	for _, name := range []string{"draw", "settable-1", "narrow-1-2", "draw-1", "draw-1-02", "draw-1-2.yaml", "drawn-1-2"} {
		if _, ok := scenario.FindDrawn(name); ok {
			t.Errorf("%q names a drawn network", name)
		}
	}
}
