package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/cnpgate/cnpgate/sim"
)

// simulator runs cnpgate sim.
type simulator struct {
	root, work, lists, program string
	tune                       string // a constant of the control law with its value
}

// result is one of the objects that it prints.
type result struct {
	Scenario, Response string
	sim.Result
}

// Gbps is the goodput.
func (r *result) gbps() float64 { return r.All.Goodput / 1e9 }

// lost is how many packets were lost, by whatever.
func (r *result) lost() uint64 { return r.Dropped + r.Lost }

// simulate runs a scenario with some responses.
func (s *simulator) simulate(scenario, responses string, options ...string) (all []result, err error) {
	c := exec.Command(s.program, append([]string{"sim", scenario, "--response", responses, "-o", "json"}, options...)...)
	c.Dir = s.lists // a scenario may read files of the current folder
	if s.tune != "" {
		c.Env = append(os.Environ(), "CNPGATE_TUNE="+s.tune)
	}
	text, err := printed(c)
	if err != nil {
		return nil, err
	}
	return all, json.Unmarshal([]byte(text), &all)
}

// row is a row of a table.
func row(cells ...string) string { return "| " + strings.Join(cells, " | ") + " |" }

// header is the head of a table.
func header(names ...string) []string {
	return []string{row(names...), strings.Repeat("|---", len(names)) + "|"}
}

// responses are the columns of most tables.
var responses = []string{"ecn", "standard-cnp", "fast-cnp", "long-haul-cnp"}

func responsesHeader(first string) []string {
	return header(first, "ECN alone", "Standard CNP", "Fast CNP", "Long-haul CNP", "Possible")
}

// compare is a row with the goodput and the loss of each response.
func (s *simulator) compare(title, scenario, these string, options ...string) (string, error) {
	all, err := s.simulate(scenario, these, options...)
	if err != nil {
		return "", err
	}
	cells := []string{title}
	for _, response := range responses {
		text := "–"
		for i := range all {
			if r := &all[i]; r.Response == response {
				text = fmt.Sprintf("%.1f", r.gbps())
				if r.lost() > 0 {
					text += fmt.Sprintf(" (%d)", r.lost())
				}
			}
		}
		cells = append(cells, text)
	}
	return row(append(cells, fmt.Sprintf("%.1f", all[0].Possible/1e9))...), nil
}
