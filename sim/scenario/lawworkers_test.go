package scenario_test

import (
	"fmt"
	"testing"

	"github.com/cnpgate/cnpgate/sim/scenario"
)

func TestLawWorkers(t *testing.T) {
	for _, n := range []network{
		{name: "8 flows", flows: 8, wan: 100, rtt: 10},
		{name: "3 flows", flows: 3, wan: 100, rtt: 5},
		{name: "2 flows", flows: 2, wan: 100, rtt: 2},
		{name: "64 flows of 25G", flows: 64, wan: 100, host: 25, rtt: 5},
		{name: "400G", flows: 8, wan: 400, rtt: 2},
		{name: "polled each 20 us", flows: 8, wan: 100, rtt: 10, loop: 20},
	} {
		for _, r := range []scenario.Response{scenario.StandardCNP, scenario.LongHaulCNP} {
			t.Run(n.name+"/"+r.String(), func(t *testing.T) {
				for _, w := range []int{1, 2, 4} {
					n.workers = w
					o := run(t, parse(t, n.text()), r)
					fmt.Printf("%s %s %d workers: %.3f dropped %d jain %.4f p99 %.1f peak %.1f sent %d\n", n.name, r, w, o.All.Goodput/n.ideal(), o.Dropped, o.Jain,
						float64(o.Gateway.P99)/1e6, float64(o.Gateway.Peak)/1e6, o.Sent)
				}
			})
		}
	}
}
