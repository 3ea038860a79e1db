package scenario_test

import (
	"fmt"
	"testing"

	"github.com/cnpgate/cnpgate/internal/testkit/effort"
	"github.com/cnpgate/cnpgate/sim/scenario"
)

// TestTwoDCs: where the queues are in the data centres, gateways that answer marks and pace hosts relieve the flows within them, at little cost for those
// between the two. The lists are not those of docs/effect.md.
func TestTwoDCs(t *testing.T) {
	for _, c := range []struct {
		load, seed  string
		within, all float64 // of the mean slowdown without notifications and pacing, at most
	}{{"20", "5", 0.88, 0.92}, {"60", "3", 0.78, 0.86}} {
		if !thorough && c.load != "60" {
			continue
		}
		t.Run(c.load, func(t *testing.T) {
			t.Parallel()
			s := builtIn(t, "two-dcs", "traffic[0].poisson.load="+c.load, "seed="+c.seed, fmt.Sprintf("traffic[0].poisson.length=%dms", 2*effort.Short+2*effort.Race+4*effort.Long))
			alone, with := run(t, s, scenario.ECN), run(t, s, scenario.StandardCNP)
			if alone.All.Finished != s.Flows() || with.All.Finished != s.Flows() || with.Dropped > 0 {
				t.Fatalf("%d and %d of %d flows ended, %d packets lost", alone.All.Finished, with.All.Finished, s.Flows(), with.Dropped)
			}
			atMost(t, "all", with.All.MeanSlowdown, alone.All.MeanSlowdown*c.all)
			atMost(t, "within", with.Groups[0].MeanSlowdown, alone.Groups[0].MeanSlowdown*c.within)
			atMost(t, "between", with.Groups[1].MeanSlowdown, alone.Groups[1].MeanSlowdown*1.12)
		})
	}
}

func atMost(t *testing.T, what string, got, most float64) {
	t.Helper()
	t.Logf("%s: mean slowdown %.2f, at most %.2f", what, got, most)
	if got > most {
		t.Errorf("%s: mean slowdown %.2f, expected at most %.2f", what, got, most)
	}
}
