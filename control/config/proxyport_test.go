package config

import (
	"fmt"
	"strings"
	"testing"
)

const twoPorts = `gateway: {name: gw1, ipv4: 10.9.0.1}
ports:
  - {name: lan0, device: '0000:01:00.0', role: fabric, peer: wan0, rate: 100Gbps}
  - {name: wan0, device: '0000:01:00.1', role: wan, peer: lan0, rate: 100Gbps}
`

// TestProxyPort: a port of another protocol is refused, as the domain filter would drop that protocol.
func TestProxyPort(t *testing.T) {
	const domain = "domain: {members: [10.0.0.0/8], notification_sources: []}\n"
	parse := func(port int, more string) (*Config, error) {
		return Parse("c.yaml", fmt.Appendf(nil, "%sproxy: {port: %d}\n%s", twoPorts, port, more))
	}
	for _, port := range []int{1, 53, 67, 68, 123, 161, 319, 443, 500, 862, 1020, 1023, 2152, 3784, 3785, 4500, 4784, 4789, 4790, 4791, 6081, 6635, 7784, 8472, 51820} {
		want := fmt.Sprintf("c.yaml:5:15: proxy.port: %d is the port of ", port)
		for _, more := range []string{"", domain} {
			if _, err := parse(port, more); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%d: %v, expected %q", port, err, want)
			}
		}
	}
	for port, warnings := range map[int]int{1021: 0, 1022: 0, 1024: 0, 7471: 0, 32767: 0, 32768: 1, 50000: 1, 65535: 1} {
		if c, err := parse(port, domain); err != nil || len(c.Warnings) != warnings {
			t.Errorf("%d with domain: %v, %v; expected %d warnings", port, c, err, warnings)
		}
		if c, err := parse(port, ""); err != nil || len(c.Warnings) != 0 {
			t.Errorf("%d without domain: %v, %v; expected no warning", port, c, err)
		}
	}
}
