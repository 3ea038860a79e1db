package scenario_test

import (
	"math"
	"testing"

	"github.com/cnpgate/cnpgate/sim/scenario"
)

// TestLawWorkers: with several workers, which share the flows evenly or not, the fair rate is the same, and so is the result.
func TestLawWorkers(t *testing.T) {
	for _, n := range []network{
		{name: "8 flows", flows: 8, wan: 100, rtt: 10},
		{name: "9 flows: 6 and 3, or 5, 2, 1 and 1", flows: 9, wan: 100, rtt: 5},
		{name: "64 flows of 25G", flows: 64, wan: 100, host: 25, rtt: 5},
	} {
		for _, r := range []scenario.Response{scenario.StandardCNP, scenario.LongHaulCNP} {
			t.Run(n.name+"/"+r.String(), func(t *testing.T) {
				t.Parallel()
				one := run(t, parse(t, n.text()), r)
				for _, n.workers = range []int{2, 4} {
					o := run(t, parse(t, n.text()), r)
					if ratio := o.All.Goodput / one.All.Goodput; math.Abs(ratio-1) > 0.03 || o.Dropped != 0 || math.Abs(o.Jain-one.Jain) > 0.03 {
						t.Errorf("%d workers have %.3f of the goodput of one, lost %d packets, and Jain's index is %.3f, with one %.3f",
							n.workers, ratio, o.Dropped, o.Jain, one.Jain)
					}
				}
			})
		}
	}
}
