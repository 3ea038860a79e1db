package scenario_test

import (
	"testing"

	"github.com/cnpgate/cnpgate/sim/scenario"
)

// TestLosslessSlow: NICs that react 3 to 39 ms late fill the WAN and lose nothing where the class is lossless: PFC stops the fabric, but only what it must, and only
// once the queue is nearly full.
func TestLosslessSlow(t *testing.T) {
	o := run(t, builtIn(t, "slow-nics-lossless"), scenario.StandardCNP)
	if part := o.All.Goodput / o.Possible; part < 0.99 || o.Dropped > 0 || o.Pauses == 0 || o.Gateway.Peak < 40e6 || o.Sent == 0 {
		t.Errorf("%.3f of the possible goodput, %d lost, %d PFC frames of switches, a queue of %d bytes at most, %d notifications; want 0.99, none lost, PFC, and a queue that is used",
			part, o.Dropped, o.Pauses, o.Gateway.Peak, o.Sent)
	}
}

// TestChanging: rates of the WAN that change, senders that stop and begin, and senders of unequal QPs, round trips and obedience have at least the goodput, and
// lose at most what docs/effect.md says of them today.
func TestChanging(t *testing.T) {
	for i, c := range []struct {
		name          string
		possible      float64 // of the possible goodput, at least
		lost          uint64  // packets, at most
		jain, senders float64 // at least, of flows and of senders
	}{
		{"lag-member-fails", 0.97, 0, 0.99, 0.99},
		{"training-bursts", 0.98, 0, 0.99, 0.99},
		{"qps-1-and-64", 0.88, 0, 0.86, 0.97},
		{"rtts-2-and-40ms", 0.8, 0, 0.87, 0.98},
		{"half-obey", 0.75, 9506, 0.95, 0.86},
	} {
		for _, r := range inTurn(i, []scenario.Response{scenario.StandardCNP, scenario.LongHaulCNP}) {
			t.Run(c.name+"/"+r.String(), func(t *testing.T) {
				t.Parallel()
				o := run(t, builtIn(t, c.name), r)
				if part := o.All.Goodput / o.Possible; part < c.possible || o.Dropped > c.lost || o.Jain < c.jain || o.Senders < c.senders || o.All.Finished < o.All.Flows {
					t.Errorf("%.3f of the possible goodput, %d lost, Jain's index %.3f of flows and %.3f of senders, %d of %d flows ended; want %g, %d, %g and %g, and all",
						part, o.Dropped, o.Jain, o.Senders, o.All.Finished, o.All.Flows, c.possible, c.lost, c.jain, c.senders)
				}
			})
		}
	}
}
