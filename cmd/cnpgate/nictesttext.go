package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cnpgate/cnpgate/internal/units"
	"github.com/cnpgate/cnpgate/nictest"
)

// writeNICTest writes the report of a test as text.
func writeNICTest(to io.Writer, r *nictest.Report) error {
	state := "complete"
	if !r.Complete {
		state = "not complete"
	}
	fmt.Fprintf(to, "NIC: %s\nsender: %s, line rate %s; %d experiments, %s\nverdict: %s\n", cmp.Or(r.NIC.Name, "none"), r.Sender, units.Rate(r.LineRate), len(r.Trials), state, r.Verdict)
	for _, key := range slices.Sorted(maps.Keys(r.NIC.Facts)) {
		fmt.Fprintf(to, "  %s: %s\n", key, r.NIC.Facts[key])
	}
	if r.Unsteady {
		fmt.Fprintln(to, "the sender's rate varies too much by itself: use a host that does nothing else, or a coarser --bin, such as 1ms")
	}
	if r.Stopped != "" {
		fmt.Fprintf(to, "ended early: %s\n", r.Stopped)
	}
	fmt.Fprintln(to)
	w := newTable(to, "EXPERIMENT\tSENT\tRATE BEFORE\tFIRST REDUCTION\tCUT BY\tRECOVERED AFTER\tINCREASE\tVERDICT")
	for i := range r.Trials {
		t := &r.Trials[i]
		if nextAlike(r.Trials, i) {
			continue
		}
		w.row(experiment(r.Trials, i), t.Sent, units.Rate(t.Response.Before), strings.Join(reactionCells(&t.Response), "\t"), verdictText(r, t))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(r.Forms) > 0 {
		fmt.Fprintln(to)
		w = newTable(to, "FORM\tVERDICT\tDIFFERENCE")
		for _, f := range r.Forms {
			w.row(f.Form, f.Verdict, f.About)
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	s := &r.Suggest
	fmt.Fprintf(to, "\nGATEWAY: grant %s\n", cmp.Or(strings.Join(s.Formats, ", "), "none"))
	if s.Source != "" {
		fmt.Fprintf(to, "  source address of CNPs: %s\n", s.Source)
	}
	if s.Spacing > 0 {
		fmt.Fprintf(to, "  spacing: %v; closer CNPs reduce the rate little more\n", time.Duration(s.Spacing))
	}
	for _, need := range s.Needs {
		fmt.Fprintf(to, "  the NIC needs %s\n", need)
	}
	fmt.Fprintf(to, "%s\nPROFILE (differs from the measurement by %.1f %% of what was held back)\n%s", indent(s.YAML), 100*r.FitError, indent(r.File))
	if r.Counters != nil {
		fmt.Fprintf(to, "\nCOUNTERS of the sender\n")
		for _, line := range r.Counters.Says {
			fmt.Fprintf(to, "  %s\n", line)
		}
		for _, name := range slices.Sorted(maps.Keys(r.Counters.Increased)) {
			fmt.Fprintf(to, "  %s increased by %d\n", name, r.Counters.Increased[name])
		}
	}
	return nil
}

func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n  ") + "\n"
}

// alike reports whether two experiments are the same, with the same outcome in the table.
func alike(a, b *nictest.TrialResult) bool {
	return a.Trial == b.Trial && a.Group == nictest.Single && a.Response.Reduced == b.Response.Reduced
}

// nextAlike reports whether the next experiment is like this one, which the table then counts with it.
func nextAlike(all []nictest.TrialResult, i int) bool {
	return i+1 < len(all) && alike(&all[i], &all[i+1])
}

// experiment names an experiment, with the number of those before it that are like it.
func experiment(all []nictest.TrialResult, i int) string {
	n := 1
	for ; n <= i && alike(&all[i], &all[i-n]); n++ {
	}
	if n > 1 {
		return fmt.Sprintf("%s (the last of %d)", all[i].Name, n)
	}
	return all[i].Name
}

func milliseconds(ns int64) string { return fmt.Sprintf("%.3g ms", float64(ns)/1e6) }

// reactionCells are the first reduction, its depth, the time to recover, and the increase of the rate.
func reactionCells(r *nictest.Response) []string {
	cells := []string{"-", "-", "-", "-"}
	if r.Reduced {
		cells = []string{milliseconds(r.First), fmt.Sprintf("%.1f %%", 100*r.Depth), "not seen", "-"}
	}
	if r.Reduced && r.Recovered >= 0 {
		cells[2] = milliseconds(r.Recovered)
	}
	if r.Increase != 0 {
		cells[3] = units.Rate(r.Increase) + " per s"
	}
	return cells
}

func verdictText(r *nictest.Report, t *nictest.TrialResult) string {
	for _, f := range r.Forms {
		if f.Form == t.Form && (t.Group == nictest.FormOf || t.Group == nictest.Pausing) {
			return f.Verdict
		}
	}
	switch {
	case t.Skipped != "":
		return t.Skipped
	case !t.Response.Reduced:
		return "no visible reduction"
	}
	return "reduced"
}
