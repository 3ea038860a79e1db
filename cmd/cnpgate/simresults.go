package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cnpgate/cnpgate/internal/units"
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
	return scenario.WriteJSON(w, list)
}

// column is one column of the table.
type column struct {
	title string
	text  func(r *simRun) string
}

var resultColumns = []column{
	{"response", func(r *simRun) string { return r.response.String() }},
	{"queue peak", func(r *simRun) string { return units.Size(r.outcome.Gateway.Peak) }},
	{"queue p99", func(r *simRun) string { return units.Size(r.outcome.Gateway.P99) }},
	{"switch peak", func(r *simRun) string { return units.Size(r.outcome.Switch.Peak) }},
	{"switch p99", func(r *simRun) string { return units.Size(r.outcome.Switch.P99) }},
	{"lost", func(r *simRun) string { return count(r.outcome.Dropped + r.outcome.Lost) }},
	{"PFC", func(r *simRun) string { return count(r.outcome.Pauses) }},
	{"slow-down", func(r *simRun) string { return timeText(r.outcome.SlowDown) }},
	{"done", func(r *simRun) string { return done(&r.outcome.All) }},
	{"FCT mean", func(r *simRun) string { return ended(&r.outcome.All, r.outcome.All.MeanFCT) }},
	{"FCT p99", func(r *simRun) string { return ended(&r.outcome.All, r.outcome.All.P99FCT) }},
	{"slowdown", func(r *simRun) string { return slowdown(&r.outcome.All) }},
	{"goodput", func(r *simRun) string { return units.Rate(r.outcome.All.Goodput) }},
	{"possible", func(r *simRun) string { return units.Rate(r.outcome.Possible) }},
	{"Jain", func(r *simRun) string { return strconv.FormatFloat(r.outcome.Jain, 'f', 3, 64) }},
	{"notified", func(r *simRun) string { return count(r.outcome.Sent) }},
	{"CNPs", func(r *simRun) string { return count(r.outcome.CNPs) }},
}

// writeTable writes a table of the runs, and of the groups of flows if the scenario has several.
func writeTable(w io.Writer, runs []*simRun) error {
	all := resultColumns
	if runs[0].swept != "" {
		all = append([]column{{"sweep", func(r *simRun) string { return r.swept }}}, resultColumns...)
	}
	for n := range runs[0].outcome.Groups {
		all = append(all, column{runs[0].outcome.Names[n] + ": slowdown", func(r *simRun) string { return slowdown(&r.outcome.Groups[n]) }})
	}
	s := runs[0].scenario
	if _, err := fmt.Fprintf(w, "%s: %d hosts, %d flows, %v at most, seed %d\n", s.Name, s.Hosts(), s.Flows(), time.Duration(s.Length()), s.Seed()); err != nil {
		return err
	}
	cells := make([]string, len(all))
	for i, c := range all {
		cells[i] = c.title
	}
	t := newTable(w, strings.Join(cells, "\t"), "switch p99", "switch peak", "possible", "CNPs", "FCT mean", "PFC", "Jain", "slow-down", "notified", "FCT p99", "queue p99")
	for _, r := range runs {
		for i, c := range all {
			cells[i] = c.text(r)
		}
		t.line(cells)
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

const (
	explainedRows = 32
	mostSenders   = 8 // that a plot or an explanation shows
)

// shownSender is a sender that is shown over time: its place in the series, and what it is called.
type shownSender struct {
	at   int
	name string
}

// showSenders returns the senders to show: those that are wanted or, without any, the slowest and the one that got most notifications.
func showSenders(s *sim.Series, wanted []int) (all []shownSender) {
	for _, h := range wanted {
		all = append(all, shownSender{slices.Index(s.Senders, h), fmt.Sprintf("host %d", h)})
	}
	if len(all) > 0 || len(s.Senders) == 0 {
		return all
	}
	slowest, most := 0, 0
	for i := range s.Senders {
		if speed(s.Rates[i]) < speed(s.Rates[slowest]) {
			slowest = i
		}
		if totalOf(s.Asked[i]) > totalOf(s.Asked[most]) {
			most = i
		}
	}
	name := func(i int, is string) shownSender {
		return shownSender{i, fmt.Sprintf("host %d (%s)", s.Senders[i], is)}
	}
	switch {
	case totalOf(s.Asked[most]) == 0:
		return []shownSender{name(slowest, "slowest")}
	case slowest == most:
		return []shownSender{name(slowest, "slowest, most notified")}
	}
	return []shownSender{name(slowest, "slowest"), name(most, "most notified")}
}

// speed is the mean rate from the first to the last time at which something was sent.
func speed(rates []int64) float64 {
	sending := func(r int64) bool { return r > 0 }
	first := slices.IndexFunc(rates, sending)
	if first < 0 {
		return 0
	}
	last := len(rates) - 1
	for rates[last] == 0 {
		last--
	}
	return mean(rates[first : last+1])
}

func totalOf(values []int64) (n int64) {
	for _, v := range values {
		n += v
	}
	return n
}

func mean(values []int64) float64 { return float64(totalOf(values)) / float64(len(values)) }

func highest(values []int64) float64 { return float64(slices.Max(values)) }

// increments are the differences of values that only grow.
func increments(values []int64) []int64 {
	all := slices.Clone(values)
	for i := len(all) - 1; i > 0; i-- {
		all[i] -= all[i-1]
	}
	return all
}

// overTime is a column of an explanation.
type overTime struct {
	title  string
	values []int64
	text   func(values []int64) string
}

// writeExplanation writes what happened over time: a row for each part of the run.
func writeExplanation(w io.Writer, r *simRun, wanted []int) error {
	s := r.outcome.Series
	columns := explainedColumns(s, wanted)
	titles := []string{"until"}
	for _, c := range columns {
		titles = append(titles, c.title)
	}
	fmt.Fprintf(w, "\n%s, %s\n", r.outcome.Scenario, r.label())
	t := newTable(w, strings.Join(titles, "\t"))
	n := len(s.Gateway)
	for row := range min(n, explainedRows) {
		begin, end := row*n/min(n, explainedRows), (row+1)*n/min(n, explainedRows)
		cells := []string{timeText(int64(end) * s.Every)}
		for _, c := range columns {
			cells = append(cells, c.text(c.values[begin:end]))
		}
		t.line(cells)
	}
	return t.Flush()
}

// explainedColumns are the columns: queue and F of each gateway, all notifications, and what some senders were asked and did.
func explainedColumns(s *sim.Series, wanted []int) (all []overTime) {
	bytes := func(v []int64) string { return units.Size(slices.Max(v)) }
	rate := func(v []int64) string { return units.Rate(mean(v)) }
	events := func(v []int64) string { return strconv.FormatInt(totalOf(v), 10) }
	for _, p := range s.Ports {
		all = append(all, overTime{p.Gateway + ": queue", p.Depth, bytes})
		if p.Reference > 0 {
			ofReference := func(v []int64) string { return fmt.Sprintf("%.2f", highest(v)/float64(p.Reference)) }
			all = append(all, overTime{"of q_ref", p.Depth, ofReference}, overTime{"F", p.Fair, rate})
		}
	}
	all = append(all, overTime{"notified", increments(s.Notified), events}, overTime{"CNPs", increments(s.CNPs), events})
	for _, h := range showSenders(s, wanted) {
		all = append(all, overTime{h.name + ": rate", s.Rates[h.at], rate}, overTime{"notified", s.Asked[h.at], events})
	}
	return all
}
