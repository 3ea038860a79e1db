package config

import (
	"strings"
	"testing"
)

// TestDefaultBaseHoldsAFrame: K_base's default holds a frame of the largest MTU there is, with two VLAN tags, as draft-tian 5.3.2 wants
// it, and so no port is warned about.
func TestDefaultBaseHoldsAFrame(t *testing.T) {
	const text = `gateway: {name: gw1}
ports:
  - {name: lan0, device: d0, role: fabric, peer: wan0, rate: 1Gbps, mtu: 16000}
  - {name: wan0, device: d1, role: wan, peer: lan0, rate: 1Gbps, mtu: 16000}
profiles: {default: {mode: thresholds}}
`
	cfg, err := Parse("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	const frame = 14 + 2*4 + 16000
	for _, p := range cfg.Ports {
		if p.Policy.KMax < frame {
			t.Errorf("%s: K_max without an RTT is %d, less than a frame of %d", p.Name, p.Policy.KMax, frame)
		}
	}
	if len(cfg.Warnings) != 0 {
		t.Errorf("warned: %v", cfg.Warnings)
	}
	if _, err := Parse("f", []byte(strings.ReplaceAll(text, "16000", "16001"))); err == nil || !strings.Contains(err.Error(), "expected 576 to 16000") {
		t.Errorf("a larger MTU: %v", err)
	}
}
