package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/cnpgate/cnpgate/control/report"
)

// gatewayReport is what the gateway says it did.
type gatewayReport struct {
	report.Report
	wan, fabric *report.Port
}

func readReport(name string) (*gatewayReport, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	r := &gatewayReport{}
	if err := json.Unmarshal(text, &r.Report); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for i := range r.Ports {
		switch p := &r.Ports[i]; p.Role {
		case "wan":
			r.wan = p
		case "fabric":
			r.fabric = p
		}
	}
	if r.wan == nil || r.fabric == nil {
		return nil, fmt.Errorf("%s: no WAN port or no fabric port in it", name)
	}
	return r, nil
}

// dropped is how many frames the WAN port's queue refused.
func (r *gatewayReport) dropped() int { return total(r.wan.Counters, "dropped_packets_total") }
