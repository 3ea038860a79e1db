package main

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/internal/units"
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
	draws := make([]scenario.Drawn, f.draw)
	var runs []*simRun
	for n := range draws {
		draws[n] = scenario.Draw(f.seed, uint64(n)+1)
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
		if err := config.CheckWord(name, known); err != nil {
			return nil, fmt.Errorf("--response, of drawn networks: %w", err)
		}
		for r := scenario.ECN; r <= scenario.StandardCNP; r++ {
			if r.String() == name && !slices.Contains(all, r) {
				all = append(all, r)
			}
		}
	}
	return all, nil
}

const (
	drawnGoodput  = 0.95  // of the possible one: the WAN is full
	drawnTolerant = 0.995 // of ECN alone's goodput: not worse
)

// writeDraws writes a row for each drawn network, and for each response in how many the WAN is full and nothing is lost. The runs of a network follow each other,
// with ECN alone first.
func writeDraws(w io.Writer, draws []scenario.Drawn, runs []*simRun) error {
	responses := len(runs) / len(draws)
	header := "draw\tnetwork"
	for _, r := range runs[:responses] {
		header += fmt.Sprintf("\t%s: of possible\tlost\tqueue p99", r.response)
	}
	t := newTable(w, header)
	full, loses, worse := make([]int, responses), make([]int, responses), make([]int, responses)
	for n, d := range draws {
		cells := []any{d.Name, d.Summary}
		alone := runs[n*responses].outcome
		for i, r := range runs[n*responses:][:responses] {
			o := r.outcome
			part := o.All.Goodput / o.Possible
			cells = append(cells, fmt.Sprintf("%.3f", part), o.Dropped, units.Size(o.Gateway.P99))
			if o.Dropped > 0 {
				loses[i]++
			} else if part >= drawnGoodput {
				full[i]++
			}
			if o.All.Goodput < drawnTolerant*alone.All.Goodput || o.Dropped > alone.Dropped {
				worse[i]++
			}
		}
		t.row(cells...)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for i, r := range runs[:responses] {
		if _, err := fmt.Fprintf(w, "%s: %d of %d at %g of the possible goodput or more with nothing lost; %d lose packets; %d worse than ECN alone\n",
			r.response, full[i], len(draws), drawnGoodput, loses[i], worse[i]); err != nil {
			return err
		}
	}
	return nil
}
