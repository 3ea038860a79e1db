package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/internal/units"
	"github.com/cnpgate/cnpgate/internal/yamldoc"
	"github.com/cnpgate/cnpgate/sim/scenario"
)

// mostDraws bounds the drawn networks of one command.
const mostDraws = 100_000

// runDraws simulates drawn networks.
func (f *simFlags) runDraws(c *cobra.Command, args []string) error {
	if len(args) > 0 || f.draw < 1 || f.draw > mostDraws {
		return fmt.Errorf("--draw %d with %d scenarios: expected 1 to %d drawn networks, and no scenario", f.draw, len(args), mostDraws)
	}
	if f.explain || f.csv != "" || f.svg != "" || f.web != "" {
		return errors.New("--draw prints one table; --explain, --csv, --svg and --web are for one scenario, such as draw-1-1")
	}
	responses, err := f.drawnResponses()
	if err != nil {
		return err
	}
	set := scenario.Published
	if f.settable {
		set = scenario.Settable
	}
	draws := make([]scenario.Drawn, f.draw)
	var runs []*simRun
	for n := range draws {
		draws[n] = scenario.Draw(set, f.seed, uint64(n)+1)
		s, err := scenario.Parse(draws[n].Name, draws[n].Text, nil, nil)
		if err != nil {
			return err
		}
		for _, r := range responses {
			runs = append(runs, &simRun{scenario: s, response: r, brief: true})
		}
	}
	ctx, stop := untilStopped()
	defer stop()
	if err := simulate(ctx, c.ErrOrStderr(), runs, f.cores); err != nil {
		return err
	}
	if f.output == "json" {
		return writeJSON(c.OutOrStdout(), runs)
	}
	return writeDraws(c.OutOrStdout(), draws, runs)
}

// drawnResponses are ECN alone and those to compare with it.
func (f *simFlags) drawnResponses() ([]scenario.Response, error) {
	names := f.responses
	if len(names) == 0 {
		names = []string{scenario.StandardCNP.String()}
	}
	all := []scenario.Response{scenario.ECN}
	known := []string{scenario.ECN.String(), scenario.StandardCNP.String(), scenario.LongHaulCNP.String()}
	for _, name := range names {
		if err := yamldoc.CheckWord(name, known); err != nil {
			return nil, fmt.Errorf("--response, of drawn networks: %w", err)
		}
		if r := scenario.ECN + scenario.Response(slices.Index(responses(), name)); !slices.Contains(all, r) {
			all = append(all, r)
		}
	}
	return all, nil
}

// mostWorst is how many of the worst networks are listed.
const mostWorst = 10

// drawnResult is how a response does on all drawn networks.
type drawnResult struct {
	response                  scenario.Response
	full, loses, worse, short int
	worst                     []drawnRow // those that aren't full
}

type drawnRow struct {
	*scenario.Drawn
	scenario.Verdict
	lost uint64
}

// writeDraws writes a row for each drawn network, then what each response does on all of them, and its worst networks. The runs of a network follow each other,
// with ECN alone first.
func writeDraws(w io.Writer, draws []scenario.Drawn, runs []*simRun) error {
	results := make([]drawnResult, len(runs)/len(draws))
	header := "draw\tnetwork"
	for i := range results {
		results[i].response = runs[i].response
		header += fmt.Sprintf("\t%s: of possible\tlost\tqueue p99", runs[i].response)
	}
	t := newTable(w, header)
	for n := range draws {
		cells := []any{draws[n].Name, draws[n].Summary}
		for i := range results {
			o, alone := runs[n*len(results)+i].outcome, runs[n*len(results)].outcome
			v := draws[n].Judge(o, alone)
			cells = append(cells, fmt.Sprintf("%.3f", v.Part), o.Dropped, units.Size(o.Gateway.P99))
			results[i].add(drawnRow{&draws[n], v, o.Dropped})
		}
		t.row(cells...)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if err := writeDrawnResults(w, results, len(draws)); err != nil {
		return err
	}
	for i := range results[1:] {
		if err := results[i+1].writeWorst(w); err != nil {
			return err
		}
	}
	return writeBounds(w, draws)
}

// writeBounds writes in how many networks no standard CNPs prevent loss, or a long queue.
func writeBounds(w io.Writer, draws []scenario.Drawn) error {
	loses, long := 0, 0
	for n := range draws {
		b, err := draws[n].Bound()
		if err != nil {
			return err
		}
		if b.Loses {
			loses++
		}
		if b.Long {
			long++
		}
	}
	_, err := fmt.Fprintf(w, "\nWhatever standard CNPs their senders get, %d of %d lose packets, and %d have no short queue.\n", loses, len(draws), long)
	return err
}

func (r *drawnResult) add(row drawnRow) {
	if row.Full {
		r.full++
	} else {
		r.worst = append(r.worst, row)
	}
	if row.lost > 0 {
		r.loses++
	}
	if row.Worse {
		r.worse++
	}
	if row.Short {
		r.short++
	}
}

func writeDrawnResults(w io.Writer, results []drawnResult, draws int) error {
	fmt.Fprintln(w)
	t := newTable(w, "response\tfull, nothing lost\tlose packets\tworse than ECN alone\tshort queue")
	for i := range results {
		r := &results[i]
		part := func(n int) string { return fmt.Sprintf("%.1f %% (%d of %d)", 100*float64(n)/float64(draws), n, draws) }
		t.row(r.response, part(r.full), part(r.loses), part(r.worse), part(r.short))
	}
	return t.Flush()
}

// writeWorst writes the networks with the least part of the possible goodput among those whose WAN isn't full without loss.
func (r *drawnResult) writeWorst(w io.Writer) error {
	if len(r.worst) == 0 {
		return nil
	}
	slices.SortStableFunc(r.worst, func(a, b drawnRow) int { return cmp.Compare(a.Part, b.Part) })
	fmt.Fprintln(w)
	t := newTable(w, fmt.Sprintf("%s: the worst\tnetwork\tof possible\tlost\treason", r.response))
	for _, row := range r.worst[:min(len(r.worst), mostWorst)] {
		t.row(row.Name, row.Summary, fmt.Sprintf("%.3f", row.Part), row.lost, row.Reason)
	}
	return t.Flush()
}
