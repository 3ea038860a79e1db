package main

import (
	"fmt"
	"os"
	"strings"
)

// line is the row in words.
func (r *row) line() string {
	if r.Error != "" {
		return fmt.Sprintf("%-22s %s", r.Name, r.Error)
	}
	text := fmt.Sprintf("%-22s %10s %-6s %-28s %10s  ratio %6s", r.Name, figure(*r.Value), r.Unit, r.Peer, figure(*r.PeerValue), figure(*r.Ratio))
	if r.Wanted > 0 {
		text += fmt.Sprintf("  wanted %s: %s", figure(r.Wanted), r.verdict())
	}
	return text
}

func figure(v float64) string { return fmt.Sprintf("%.4g", v) }

// text prints the result for a reader at a terminal.
func text(r *result) {
	fmt.Println(r.Machine.String())
	for i := range r.Rows {
		fmt.Println(r.Rows[i].line())
	}
}

// markdown prints the tables of docs/performance.md.
func markdown(r *result) { fmt.Print(r.markdown()) }

func (r *result) markdown() string {
	var t strings.Builder
	fmt.Fprintf(&t, "Measured on: %s.\n\n", r.Machine.String())
	t.WriteString("| Row | What | cnpgate | Unit | Beside it | Its figure | Ratio | Wanted | Runs |\n|---|---|---|---|---|---|---|---|---|\n")
	rates := map[string]float64{}
	for i := range r.Rows {
		x := &r.Rows[i]
		if x.Error != "" {
			fmt.Fprintf(&t, "| `%s` | %s | %s | %s | %s | | | | %d |\n", x.Name, x.What, x.Error, x.Unit, x.Peer, x.Runs)
			continue
		}
		if group, _, ok := strings.Cut(x.Name, "_csum"); ok {
			rates[group] = *x.Value * 1e6
		}
		wanted := ""
		if x.Wanted > 0 {
			wanted = "≥ " + figure(x.Wanted) + ": " + x.verdict()
		}
		fmt.Fprintf(&t, "| `%s` | %s | %s | %s | %s | %s | %s | %s | %d |\n", x.Name, x.What, figure(*x.Value), x.Unit, x.Peer, figure(*x.PeerValue),
			figure(*x.Ratio), wanted, x.Runs)
	}
	t.WriteString("\nCores that ports need, at these rates:\n\n" + portTables(rates))
	return t.String()
}

// Where a document's tables begin and end.
const (
	tablesBegin = "<!-- scripts/bench --docs writes from here -->\n"
	tablesEnd   = "<!-- to here -->\n"
)

// intoDocs replaces the tables of a document.
func (r *result) intoDocs(path string) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text, err := replaceTables(string(old), r.markdown())
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

func replaceTables(document, tables string) (string, error) {
	head, rest, ok := strings.Cut(document, tablesBegin)
	_, after, closed := strings.Cut(rest, tablesEnd)
	if !ok || !closed {
		return "", fmt.Errorf("expected the lines %q and %q", tablesBegin, tablesEnd)
	}
	return head + tablesBegin + "\n" + tables + "\n" + tablesEnd + after, nil
}
