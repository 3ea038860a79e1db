package scenario_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/sim/scenario"
)

// TestBrake: of four senders of 10G in front of a WAN of 20G, two ignore everything. The gateway finds these, and no sender that obeys late or over a
// long loop; its queue stays within its capacity. If its WAN port paces, the others lose nothing and have their fair share.
func TestBrake(t *testing.T) {
	const ignores, pacing = "selective_repeat: true, unresponsive: '0-1'", "pacing: {enabled: true, senders: ['fd00::/32']}"
	for i, c := range []struct {
		name, hosts, pacing string
		delay               int // us, of a short link
		found               []int
		least               float64 // Gbps that hosts 2 and 3 send each, without loss in the queue
	}{
		{"no pacing", ignores, "", 1, []int{0, 1}, 0},
		{"pacing", ignores, pacing, 2, []int{0, 1}, 0.95 * 5}, // at 1 us, host 1 gives up before it counts as unresponsive
		{"all obey, loop of 1 ms", "", pacing, 250, nil, 0.95 * 5},
		{"slow NICs", "nic: slow-measured", "", 1, nil, 0},
		{"slow NICs, pacing", "nic: slow-measured", pacing, 1, nil, 0},
	} {
		responses := []scenario.Response{scenario.StandardCNP, scenario.LongHaulCNP}
		if strings.HasPrefix(c.hosts, "nic") {
			responses = responses[:1] // they obey standard CNPs only
		}
		for _, r := range inTurn(i, responses) {
			t.Run(c.name+"/"+r.String(), func(t *testing.T) {
				t.Parallel()
				text := fmt.Sprintf(`name: brake
length: 300ms
topology: {dumbbell: {senders: 4, receivers: 4, rate: 10Gbps, delay: %dus, spans: [{rate: 20Gbps, delay: 1ms, gateway: west}]}}
hosts: {%s}
gateways: {west: {config: {ports: [{}, {%s}]}}}
traffic:
`, c.delay, c.hosts, c.pacing)
				for i := range 4 {
					text += fmt.Sprintf("  - incast: {from: %d, to: %d, bytes: 1GB}\n", i, 4+i)
				}
				o := run(t, parse(t, text), r)
				if !slices.Equal(o.Unresponsive, c.found) {
					t.Errorf("hosts %v are unresponsive, expected %v", o.Unresponsive, c.found)
				}
				if o.Gateway.Peak > 250e6 {
					t.Errorf("the queue had %d bytes, more than its capacity", o.Gateway.Peak)
				}
				rates, full := o.Series.Rates, o.Gateways[0]["dropped_packets_total{queue-full-bytes}"]
				if two, three := late(rates[2]), late(rates[3]); c.least > 0 && (full != 0 || two < c.least || three < c.least) {
					t.Errorf("hosts 2 and 3 send %.1f and %.1f Gbps, expected at least %.1f; %d packets were dropped from the queue", two, three, c.least, full)
				}
			})
		}
	}
}

// late is the mean of a sender's rates in the second half, Gbps.
func late(rates []int64) (mean float64) {
	half := rates[len(rates)/2:]
	for _, rate := range half {
		mean += float64(rate) / float64(len(half)) / 1e9
	}
	return mean
}
