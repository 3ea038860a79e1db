package main

import (
	"fmt"
	"strings"
)

// line is the row in words.
func (r *row) line() string {
	if r.Error != "" {
		return fmt.Sprintf("%-22s %s", r.Name, r.Error)
	}
	text := fmt.Sprintf("%-22s %10s %-5s %-28s %10s  ratio %6s", r.Name, figure(*r.Value), r.Unit, r.Peer, figure(*r.PeerValue), figure(*r.Ratio))
	if r.Wanted > 0 {
		text += fmt.Sprintf("  wanted %s: %s", figure(r.Wanted), r.verdict())
	}
	return text
}

func figure(v float64) string { return strings.TrimSuffix(fmt.Sprintf("%.4g", v), ".") }

// text prints the result for a reader at a terminal.
func text(r *result) {
	fmt.Println(r.Machine.String())
	for i := range r.Rows {
		fmt.Println(r.Rows[i].line())
	}
}

// markdown prints the tables of docs/performance.md.
func markdown(r *result) {
	fmt.Printf("%s\n\n", r.Machine.String())
	fmt.Println("| Row | What | cnpgate | Unit | Peer | Peer's | Ratio | Wanted | Runs |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|")
	for i := range r.Rows {
		x := &r.Rows[i]
		if x.Error != "" {
			fmt.Printf("| `%s` | %s | %s | | | | | | %d |\n", x.Name, x.What, x.Error, x.Runs)
			continue
		}
		wanted := ""
		if x.Wanted > 0 {
			wanted = "≥ " + figure(x.Wanted)
		}
		fmt.Printf("| `%s` | %s | %s | %s | %s | %s | %s | %s | %d |\n", x.Name, x.What, figure(*x.Value), x.Unit, x.Peer, figure(*x.PeerValue),
			figure(*x.Ratio), wanted, x.Runs)
	}
}
