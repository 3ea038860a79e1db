package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cnpgate/cnpgate/sim"
)

// themis has the slowdowns in the two data centres of Themis (ICNP 2025), for each of its flow lists.
func themis(s *simulator) ([]string, error) {
	lists, err := filepath.Glob(filepath.Join(s.lists, "flow_*.txt"))
	if err != nil || len(lists) == 0 {
		return nil, fmt.Errorf("%s has no flow_*.txt", s.lists)
	}
	topology, err := os.ReadFile(filepath.Join(s.lists, "topology.txt"))
	if err != nil {
		return nil, err
	}
	near := filepath.Join(s.work, "near.txt")
	if err := os.WriteFile(near, []byte(strings.ReplaceAll(string(topology), "500000ns", "1000ns")), 0o600); err != nil {
		return nil, err
	}
	clamp := []string{"--set", "hosts.dcqcn.cut=period", "--set", "hosts.dcqcn.clamp_target=true"}
	rows := header("Load", "", "All (99th percentile)", "Within", "Between", "Lost")
	for i, list := range lists {
		load := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(list), "flow_"), ".txt") + " %"
		for _, c := range []struct {
			title, topology string
			gateways        bool
			options         []string
		}{
			{"DCQCN alone", "topology.txt", false, nil},
			{"DCQCN alone, WAN of 1 us", near, false, nil},
			{"cnpgate", "topology.txt", true, nil},
			{"DCQCN alone; clamp", "topology.txt", false, clamp},
			{"cnpgate; clamp", "topology.txt", true, clamp},
		} {
			if c.options != nil && i > 0 {
				continue
			}
			next, err := s.slowdowns(c.title, c.topology, filepath.Base(list), c.gateways, c.options)
			if err != nil {
				return nil, err
			}
			rows = append(rows, row(load, next))
		}
	}
	return rows, nil
}

// slowdowns is a part of a row: the scenario two-dcs with another topology and a flow list, with gateways or without.
func (s *simulator) slowdowns(title, topology, list string, gateways bool, options []string) (string, error) {
	text, err := os.ReadFile(filepath.Join(s.root, "sim/scenarios/two-dcs.yaml"))
	if err != nil {
		return "", err
	}
	var kept []string
	skipped := false
	for line := range strings.Lines(string(text)) {
		if key, _, found := strings.Cut(line, ":"); found && key == strings.TrimLeft(key, " #") {
			skipped = key == "topology" || key == "traffic" || key == "gateways" && !gateways
		}
		if !skipped {
			kept = append(kept, line)
		}
	}
	kept = append(kept, "topology:\n  file: ", topology, "\ntraffic: [{file: ", list, "}]\n")
	scenario := strings.Join(kept, "")
	response := "ecn"
	if gateways {
		response = "standard-cnp"
		scenario = strings.Replace(scenario, topology+"\n", topology+"\n  gateways: [{gateway: west, fabric: 48, wan: 49}, {gateway: east, fabric: 49, wan: 48}]\n", 1)
	}
	if filepath.IsAbs(topology) { // its flows have no window, as those within a data centre
		scenario = strings.Replace(scenario, "window: bdp", "window: none", 1)
	}
	file := filepath.Join(s.work, "themis.yaml")
	if err := os.WriteFile(file, []byte(scenario), 0o600); err != nil {
		return "", err
	}
	all, err := s.simulate(file, response, options...)
	if err != nil {
		return "", err
	}
	r := &all[0]
	groups := [2]string{"–", "–"}
	for i := range r.Groups {
		groups[i] = slowdown(&r.Groups[i])
	}
	return strings.Join([]string{title, slowdown(&r.All), groups[0], groups[1], fmt.Sprint(r.lost())}, " | "), nil
}

func slowdown(g *sim.Group) string { return fmt.Sprintf("%.2f (%.2f)", g.MeanSlowdown, g.P99Slowdown) }
