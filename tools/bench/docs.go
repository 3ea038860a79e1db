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

// headline is the first table of docs/performance.md, of traffic on ports like a NIC's, and the cores that ports need.
func (r *result) headline() string {
	var t strings.Builder
	fmt.Fprintf(&t, "One core forwards:\n\n| Row | Traffic | cnpgate | Ratio to `csum` | to `5tswap` | to `io` |\n|---|---|---|---|---|---|\n")
	for _, g := range groups() {
		if csum := r.row(g.name + besideCsum); strings.HasPrefix(g.name, "nic") && (csum == nil || csum.Error != "") {
			fmt.Fprintf(&t, "| `%s` | not measured | | | | |\n", g.name)
		} else if strings.HasPrefix(g.name, "nic") {
			fmt.Fprintf(&t, "| `%s` | %s | %.3g %s | %s |", g.name, csum.What, *csum.Value, csum.Unit, csum.ratio())
			for _, mode := range []string{"_5tswap", "_io"} {
				if x := r.row(g.name + mode); x != nil && x.Error == "" {
					fmt.Fprintf(&t, " %.3g", *x.Ratio)
				}
				t.WriteString(" |")
			}
			t.WriteString("\n")
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
