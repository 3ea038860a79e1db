//go:build long

package scenario_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cnpgate/cnpgate/sim/scenario"
)

// TestCollectivesDrawn: whatever the collective, the number and rate of the hosts, and the WAN, notifications lose nothing. Where ECN alone loses packets, they
// are not later than it.
func TestCollectivesDrawn(t *testing.T) {
	r := rand.New(rand.NewPCG(25, 2))
	for n := range 24 {
		text := drawCollective(r)
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			s := parse(t, text)
			if compare(t, s, []scenario.Response{scenario.StandardCNP, scenario.LongHaulCNP}, 0.97, true); t.Failed() {
				t.Log(text)
			}
		})
	}
}

func drawCollective(r *rand.Rand) string {
	tors, perToR := []int{2, 4}[r.IntN(2)], []int{2, 4}[r.IntN(2)]
	hosts, rate := 2*tors*perToR, []int{25, 50, 100}[r.IntN(3)] // Gbps
	wan := max(hosts/2*rate/[]int{2, 4, 8, 16}[r.IntN(4)], 10)
	total := wan * 500_000 // bytes over the WAN in one direction: 4 ms
	every := hosts * hosts / 4
	const margin = 2 // of lines below
	half, quarter := hosts/2, hosts/4
	some := fmt.Sprintf("'0-%d,%d-%d'", quarter-1, half, half+quarter-1)
	others := fmt.Sprintf("'%d-%d,%d-%d'", quarter, half-1, half+quarter, hosts-1)
	traffic := []string{
		fmt.Sprintf("  - all_to_all: {ranks: all, bytes: %dB}\n", total/every),
		fmt.Sprintf("  - all_to_all: {ranks: all, bytes: %dB}\n", max(total/every/8, 1)),
		fmt.Sprintf("  - tree: {ranks: all, bytes: %dB}\n", total/half),
		fmt.Sprintf("  - ring: {ranks: all, bytes: %dB}\n", total/margin),
		fmt.Sprintf("  - all_to_all: {ranks: %s, bytes: %dB}\n  - all_to_all: {ranks: %s, bytes: %dB, start: 2ms}\n", some, total/every, others, total/every),
		fmt.Sprintf("  - all_to_all: {ranks: %s, bytes: %dB}\n  - tree: {ranks: %s, bytes: %dB}\n", some, total/every, others, total/half),
		fmt.Sprintf("  - all_to_all: {ranks: all, bytes: %dB}\n  - all_to_all: {ranks: all, bytes: %dB, start: 6ms}\n", total/every, total/every),
	}[r.IntN(7)]
	nic := []string{"nic: paper", "cnp_interval: 4us, dcqcn: {alpha_timer: 1us, decrease_interval: 4us, rate_timer: 900us, byte_counter: 0B, fast_recovery: 1, " +
		"additive_increase: 50Mbps, hyper_increase: 100Mbps, min_rate: 100Mbps}"}[r.IntN(2)]
	window := []string{"none", "bdp"}[r.IntN(2)]
	return fmt.Sprintf(`name: drawn
length: 500ms
topology: {two_dcs: {tors: %d, hosts_per_tor: %d, spines: 4, rate: %dGbps, border_rate: 400Gbps, wan: {rate: %dGbps, delay: %dus, west: west, east: east}}}
switches: {buffer: 32MB, ecn: [{rate: 10Gbps, k_min: 100KB, k_max: 400KB}, {rate: 100Gbps, k_min: 400KB, k_max: 1600KB}, {rate: 400Gbps, k_min: 800KB, k_max: 6400KB}]}
hosts: {%s, window: %s, variable_window: %t}
gateways: {west: {}, east: {}}
traffic:
%s`, tors, perToR, rate, wan, []int{100, 500, 2500}[r.IntN(3)], nic, window, window == "bdp", traffic)
}
