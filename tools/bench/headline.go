package main

import (
	"fmt"
	"math"
	"strings"
)

// headlines are the rows whose figures lead docs/performance.md.
var headlines = []struct{ name, traffic string }{
	{"fwd64_1k_csum", "64-byte class, IPv4, 1,024 flows"},
	{"fwd1k_csum", "payloads of 1 KB, IPv4, 1,024 flows"},
	{"fwd1k_io", "payloads of 1 KB, IPv4, 1,024 flows"},
	{"fwd64_1m_csum", "64-byte class, IPv4, 1,048,576 flows"},
}

// headline is the first table of docs/performance.md, and the cores that ports need.
func (r *result) headline() string {
	var t strings.Builder
	fmt.Fprintf(&t, "One core (%s) forwards:\n\n| Traffic | cnpgate | Beside it | Ratio | 95 %% interval |\n|---|---|---|---|---|\n", r.Machine.core())
	for _, h := range headlines {
		x := r.row(h.name)
		switch {
		case x == nil:
			fmt.Fprintf(&t, "| %s | not measured | | | |\n", h.traffic)
		case x.Error != "":
			fmt.Fprintf(&t, "| %s | %s | %s | | |\n", h.traffic, x.Error, x.Peer)
		default:
			fmt.Fprintf(&t, "| %s | %.3g %s | %s: %.3g | %.3g | %.3g to %.3g |\n", h.traffic, *x.Value, x.Unit, x.Peer, *x.PeerValue, *x.Ratio, *x.RatioLow, *x.RatioHigh)
		}
	}
	rates := r.rates()
	t.WriteString("\nCores for a port pair at line rate in both directions, at these rates:\n\n| Frames |")
	for _, rate := range portRates {
		fmt.Fprintf(&t, " %.0fG |", rate/1e9)
	}
	t.WriteString("\n|---|" + strings.Repeat("---|", len(portRates)) + "\n")
	for _, s := range sizes {
		fmt.Fprintf(&t, "| %s |", s.name)
		for _, rate := range portRates {
			if n := coresFor(rate, s.octets, rates[s.group]); n > 0 {
				fmt.Fprintf(&t, " %.0f |", math.Ceil(n))
			} else {
				t.WriteString(" not measured |")
			}
		}
		t.WriteString("\n")
	}
	return t.String()
}

// row returns the row of a name, or nil.
func (r *result) row(name string) *row {
	for i := range r.Rows {
		if r.Rows[i].Name == name {
			return &r.Rows[i]
		}
	}
	return nil
}
