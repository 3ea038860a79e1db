package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
)

// Where the figures of docs/performance.md begin and end.
const (
	headlineBegin = "<!-- scripts/bench --docs writes the headline from here -->\n"
	tablesBegin   = "<!-- scripts/bench --docs writes the tables from here -->\n"
	figuresEnd    = "<!-- to here -->\n"
)

// curveFile is the picture of the cost curve, beside the page.
const curveFile = "performance-cost.svg"

// writeDocs replaces the figures of a document, and draws the cost curve beside it if at least two of its points were measured.
func (r *result) writeDocs(path string) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	tables, picture := r.tables(), bytes.Buffer{}
	if ours, _ := r.costs(); len(ours) > 1 {
		if err := r.drawCosts(&picture); err != nil {
			return err
		}
		tables = "![CPU time of a packet by number of flows](" + curveFile + ")\n\n" + tables
	}
	text, err := replaceFigures(string(old), headlineBegin, r.headline())
	if err == nil {
		text, err = replaceFigures(text, tablesBegin, tables)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if picture.Len() > 0 {
		if err := os.WriteFile(filepath.Join(filepath.Dir(path), curveFile), picture.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// replaceFigures replaces what is between a begin and the end after it.
func replaceFigures(document, begin, figures string) (string, error) {
	head, rest, ok := strings.Cut(document, begin)
	_, after, closed := strings.Cut(rest, figuresEnd)
	if !ok || !closed {
		return "", fmt.Errorf("expected the lines %q and %q", begin, figuresEnd)
	}
	return head + begin + "\n" + figures + "\n" + figuresEnd + after, nil
}

// headlines are the rows whose figures lead docs/performance.md.
var headlines = []struct{ name, traffic string }{
	{"nic_mixed_cold_csum", "mixed, as in captures: opcodes, IPv4 and IPv6, VLANs, CNPs, CM; headers in memory"},
	{"nic_mixed_cold_5tswap", "the same"},
	{"nic_mixed_warm_csum", "the same, headers in L3"},
	{"nic64v6_1k_cold_csum", "IPv6, 1,024 flows, headers in memory"},
	{"nic64_1m_cold_csum", "IPv4, 1,048,576 flows, headers in memory"},
	{"fwd1k_csum", "payloads of 1 KB, IPv4, 1,024 flows, on ports that copy frames"},
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
