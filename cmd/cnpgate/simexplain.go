package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/cnpgate/cnpgate/sim"
)

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
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	titles := []string{"until"}
	for _, c := range columns {
		titles = append(titles, c.title)
	}
	fmt.Fprintf(t, "\n%s, %s\n", r.outcome.Scenario, r.label())
	fmt.Fprintln(t, strings.Join(titles, "\t"))
	n := len(s.Gateway)
	for row := range min(n, explainedRows) {
		begin, end := row*n/min(n, explainedRows), (row+1)*n/min(n, explainedRows)
		cells := []string{timeText(int64(end) * s.Every)}
		for _, c := range columns {
			cells = append(cells, c.text(c.values[begin:end]))
		}
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	return t.Flush()
}

// explainedColumns are the columns: queue and F of each gateway, all notifications, and what some senders were asked and did.
func explainedColumns(s *sim.Series, wanted []int) (all []overTime) {
	bytes := func(v []int64) string { return bytesText(slices.Max(v)) }
	rate := func(v []int64) string { return rateText(mean(v)) }
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
