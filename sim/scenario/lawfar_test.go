package scenario_test

import (
	"fmt"
	"testing"

	"github.com/cnpgate/cnpgate/sim/scenario"
)

// TestFar: where the WAN is not the narrowest link, and the switch in front of the receiver overflows without marking, a gateway's notifications bring no less goodput than
// ECN alone, which only knows the gateway's queue, and lose fewer packets. If that switch marks, they don't hinder the receiver's CNPs.
func TestFar(t *testing.T) {
	const marks = "switches: {ecn: [{rate: 0bps, k_min: 400KB, k_max: 1600KB}]}\n"
	for _, c := range []struct {
		rtt      float64 // ms
		length   int     // ms
		switches string
	}{{1, 100, ""}, {10, 300, ""}, {1, 100, marks}} {
		for _, r := range []scenario.Response{scenario.StandardCNP, scenario.LongHaulCNP} {
			t.Run(fmt.Sprintf("%g ms,%d/%s", c.rtt, len(c.switches), r), func(t *testing.T) {
				t.Parallel()
				text := fmt.Sprintf(`name: far
length: %dms
topology: {dumbbell: {senders: 8, receivers: 1, rate: 100Gbps, spans: [{rate: 400Gbps, delay: %gms, gateway: west}]}}
%sgateways: {west: {}}
traffic: [{incast: {from: 0-7, to: 8, bytes: 100MB}}]
`, c.length, c.rtt/2, c.switches)
				o, ecn := run(t, parse(t, text), r), run(t, parse(t, text), scenario.ECN)
				if o.All.Goodput < 0.98*ecn.All.Goodput || o.Dropped > ecn.Dropped {
					t.Errorf("goodput is %.1f Gbps, with ECN alone %.1f; %d packets were lost, and %d", o.All.Goodput/1e9, ecn.All.Goodput/1e9, o.Dropped, ecn.Dropped)
				}
			})
		}
	}
}
