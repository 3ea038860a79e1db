package scenario_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cnpgate/cnpgate/sim/scenario"
)

// TestLawDrawn: whatever the number of flows, the rates, the round-trip time and the control loop, a gateway with its defaults fills the WAN, loses nothing and is fair.
func TestLawDrawn(t *testing.T) {
	r := rand.New(rand.NewPCG(25, 1))
	for range drawnNetworks {
		n := drawNetwork(r)
		for _, response := range []scenario.Response{scenario.StandardCNP, scenario.LongHaulCNP} {
			t.Run(n.name+"/"+response.String(), func(t *testing.T) {
				t.Parallel()
				n.check(t, response)
			})
		}
	}
}

// drawNetwork draws an incast that a gateway can handle: what comes until senders can have reacted, and a little longer, fits into half of the queue.
func drawNetwork(r *rand.Rand) network {
	between := func(least, most float64) float64 { return least * math.Pow(most/least, r.Float64()) }
	hosts := []int{10, 25, 40, 50, 100, 200, 400} // Gbps
	for {
		n := network{
			flows: int(between(2, 64)), host: hosts[r.IntN(len(hosts))], wan: int(between(10, 400)), rtt: math.Round(between(1, 100)), delay: math.Round(between(2.5, 50)),
			least: 0.92, fair: true,
		}
		queue := min(max(float64(n.wan)*5e-3, 0.256), 2.048)               // Gbit: a gateway's default
		excess := float64(n.flows*n.host-n.wan) * (4*n.delay + 100) * 1e-6 // Gbit
		if n.flows*n.host < n.wan*11/10 || excess > queue/2 {
			continue
		}
		n.name = fmt.Sprintf("%d flows of %dG, %dG, %g ms, a loop of %g us", n.flows, n.host, n.wan, n.rtt, 4*n.delay)
		return n
	}
}
