package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/cnpgate/cnpgate/sim"
	"github.com/cnpgate/cnpgate/sim/scenario"
)

// writeJSON writes the results of the runs as a list.
func writeJSON(w io.Writer, runs []*simRun) error {
	list := make([]*scenario.Outcome, len(runs))
	for i, r := range runs {
		list[i] = r.outcome
		list[i].Sweep = r.swept
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(list)
}

// column is one column of the table.
type column struct {
	title string
	text  func(r *simRun) string
}

var columns = []column{
	{"response", func(r *simRun) string { return r.response.String() }},
	{"queue peak", func(r *simRun) string { return bytesText(r.outcome.Gateway.Peak) }},
	{"p99", func(r *simRun) string { return bytesText(r.outcome.Gateway.P99) }},
	{"switch peak", func(r *simRun) string { return bytesText(r.outcome.Switch.Peak) }},
	{"p99", func(r *simRun) string { return bytesText(r.outcome.Switch.P99) }},
	{"lost", func(r *simRun) string { return count(r.outcome.Dropped + r.outcome.Lost) }},
	{"PFC", func(r *simRun) string { return count(r.outcome.Pauses) }},
	{"slow-down", func(r *simRun) string { return timeText(r.outcome.SlowDown) }},
	{"done", func(r *simRun) string { return done(&r.outcome.All) }},
	{"FCT mean", func(r *simRun) string { return ended(&r.outcome.All, r.outcome.All.MeanFCT) }},
	{"p99", func(r *simRun) string { return ended(&r.outcome.All, r.outcome.All.P99FCT) }},
	{"slowdown", func(r *simRun) string { return slowdown(&r.outcome.All) }},
	{"goodput", func(r *simRun) string { return rateText(r.outcome.All.Goodput) }},
	{"possible", func(r *simRun) string { return rateText(r.outcome.Possible) }},
	{"Jain", func(r *simRun) string { return strconv.FormatFloat(r.outcome.Jain, 'f', 3, 64) }},
	{"notified", func(r *simRun) string { return count(r.outcome.Sent) }},
	{"CNPs", func(r *simRun) string { return count(r.outcome.CNPs) }},
}

// writeTable writes a table of the runs, and of the groups of flows if the scenario has several.
func writeTable(w io.Writer, runs []*simRun) error {
	all := columns
	if runs[0].swept != "" {
		all = append([]column{{"sweep", func(r *simRun) string { return r.swept }}}, columns...)
	}
	for n := range runs[0].outcome.Groups {
		all = append(all, column{runs[0].outcome.Names[n] + ": slowdown", func(r *simRun) string { return slowdown(&r.outcome.Groups[n]) }})
	}
	s := runs[0].scenario
	if _, err := fmt.Fprintf(w, "%s: %d hosts, %d flows, %v at most, seed %d\n", s.Name, s.Hosts(), s.Flows(), time.Duration(s.Length()), s.Seed()); err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(text func(c column) string) {
		cells := make([]string, len(all))
		for i, c := range all {
			cells[i] = text(c)
		}
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	line(func(c column) string { return c.title })
	for _, r := range runs {
		line(func(c column) string { return c.text(r) })
	}
	return t.Flush()
}

// slowdown is the mean and the 99th percentile of the finished flows' slowdown.
func slowdown(g *sim.Group) string {
	if g.Finished == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f (p99 %.2f)", g.MeanSlowdown, g.P99Slowdown)
}

// done is the number of flows that have ended, and of those that failed.
func done(g *sim.Group) string {
	text := fmt.Sprintf("%d/%d", g.Finished, g.Flows)
	if g.Failed > 0 {
		text += fmt.Sprintf(" (%d failed)", g.Failed)
	}
	return text
}

// ended is a time as text; it exists only if flows have ended.
func ended(g *sim.Group, ns int64) string {
	if g.Finished == 0 {
		return "-"
	}
	return timeText(ns)
}

func count(n uint64) string { return strconv.FormatUint(n, 10) }

func bytesText(n int64) string {
	switch {
	case n >= 1e6:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%.1f KB", float64(n)/1e3)
	}
	return strconv.FormatInt(n, 10) + " B"
}

func timeText(ns int64) string {
	const digits = 1000
	if ns < 0 {
		return "never"
	}
	d := time.Duration(ns)
	for unit := time.Duration(1); unit*digits < time.Hour; unit *= 10 {
		if d < unit*digits*10 {
			return d.Round(unit).String()
		}
	}
	return d.String()
}

func rateText(bps float64) string { return fmt.Sprintf("%.1f Gbps", bps/1e9) }
