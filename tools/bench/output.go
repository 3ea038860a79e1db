package main

import (
	"fmt"
	"slices"
	"strings"
)

// line is the row in words.
func (r *row) line() string {
	if r.Error != "" {
		return fmt.Sprintf("%-22s %s", r.Name, r.Error)
	}
	text := fmt.Sprintf("%-22s %10s %-6s %-28s %10s  ratio %6s (%s)", r.Name, figure(*r.Value), r.Unit, r.Peer, figure(*r.PeerValue), figure(*r.Ratio),
		r.bounds())
	if r.Wanted > 0 {
		text += fmt.Sprintf("  wanted %s: %s", figure(r.Wanted), r.verdict())
	}
	return text
}

// bounds are those of the ratio's interval.
func (r *row) bounds() string { return figure(*r.RatioLow) + " to " + figure(*r.RatioHigh) }

func figure(v float64) string { return fmt.Sprintf("%.4g", v) }

// text prints the result for a reader at a terminal.
func text(r *result) { fmt.Print(r.text()) }

func (r *result) text() string {
	lines := r.Machine.String() + "\n"
	for i := range r.Rows {
		lines += r.Rows[i].line() + "\n"
	}
	return lines
}

// markdown prints the figures of docs/performance.md, and what ports need.
func markdown(r *result) {
	fmt.Print(r.headline() + "\n" + r.tables() + "\nCores that ports need, at these rates:\n\n" + portTables(r.rates()))
}

// tables has a line for each row, but for those beside testpmd's modes that do less than csum and beside cnpgate itself.
func (r *result) tables() string {
	var t strings.Builder
	fmt.Fprintf(&t, "Measured on: %s.\n\n", r.Machine.String())
	t.WriteString("| Row | What | cnpgate | Beside it | Ratio | 95 % interval | Wanted |\n|---|---|---|---|---|---|---|\n")
	for i := range r.Rows {
		x := &r.Rows[i]
		mode := x.Name[strings.LastIndexByte(x.Name, '_')+1:]
		if x.Wanted == 0 && slices.Contains([]string{"io", "mac", "5tswap", "lf"}, mode) || strings.HasPrefix(x.Peer, "cnpgate,") {
			continue
		}
		if x.Error != "" {
			noise, _, _ := strings.Cut(x.Error, ":")
			fmt.Fprintf(&t, "| `%s` | %s | %s | %s | | | |\n", x.Name, x.What, noise, x.Peer)
			continue
		}
		wanted := ""
		if x.Wanted > 0 {
			wanted = "≥ " + figure(x.Wanted) + ": " + x.verdict()
		}
		fmt.Fprintf(&t, "| `%s` | %s | %s %s | %s: %s | %s | %s | %s |\n", x.Name, x.What, figure(*x.Value), x.Unit, x.Peer, figure(*x.PeerValue),
			figure(*x.Ratio), x.bounds(), wanted)
	}
	return t.String()
}

// rates are those of cnpgate in packets a second, by group of forwarding rows.
func (r *result) rates() map[string]float64 {
	rates := map[string]float64{}
	for i := range r.Rows {
		x := &r.Rows[i]
		if group, ok := strings.CutSuffix(x.Name, "_csum"); ok && x.Error == "" && x.Unit == "Mpps" {
			rates[group] = *x.Value * 1e6
		}
	}
	return rates
}
