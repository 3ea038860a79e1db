package scenario_test

import (
	"fmt"
	"testing"

	"github.com/cnpgate/cnpgate/sim/scenario"
)

func TestBrake(t *testing.T) {
	for _, paced := range []bool{false, true} {
		for _, r := range []scenario.Response{scenario.StandardCNP, scenario.LongHaulCNP} {
			for _, nic := range []string{"unresponsive: 0-3", "nic: slow-measured"} {
				pacing := ""
				if paced {
					pacing = ", pacing: {enabled: true, senders: [\"fd00::/32\"]}"
				}
				text := fmt.Sprintf(`name: unresponsive
length: 400ms
topology: {dumbbell: {senders: 8, receivers: 8, rate: 25Gbps, delay: 1us, spans: [{rate: 100Gbps, delay: 1ms, gateway: west}]}}
hosts: {%s}
gateways: {west: {config: {ports: [{}, {%s}], domain: {members: ["fd00::/32"], notification_sources: ["fd00:ffff::/32"]}}}}
traffic:
`, nic, pacing[min(2, len(pacing)):])
				for i := range 8 {
					text += fmt.Sprintf("  - incast: {from: %d, to: %d, bytes: 2GB}\n", i, 8+i)
				}
				o := run(t, parse(t, text), r)
				fmt.Printf("%v %s %s: dropped %d retransmitted %d jain %.3f peak %.1f p99 %.1f sent %d goodput %.1f\n", paced, r, nic, o.Dropped, o.Retransmitted, o.Jain, float64(o.Gateway.Peak)/1e6, float64(o.Gateway.P99)/1e6, o.Sent, o.All.Goodput/1e9)
				n := len(o.Series.Rates[0])
				for i := range o.Series.Rates {
					fmt.Print("  host ", o.Series.Senders[i], ":")
					for k := 0; k < n; k += n / 12 {
						fmt.Printf(" %.1f", float64(o.Series.Rates[i][k])/1e9)
					}
					fmt.Println()
				}
				fmt.Println(o.Gateways)
			}
		}
	}
}
