package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// draws says how many of 400 drawn networks, or DRAWS of them, are full and lose nothing, for two sets of NICs, and names the worst.
func draws(s *simulator) ([]string, error) {
	count := os.Getenv("DRAWS")
	if count == "" {
		count = "400"
	}
	rows := header("NICs, response", "Full, nothing lost", "Lose packets", "Worse than ECN alone", "Short queue")
	beyond := header("NICs", "Lose packets whatever standard CNPs come", "Have no short queue then")
	var worst []string
	for _, nics := range []string{"published", "settable"} {
		text, err := s.output(s.program, "sim", "--draw", count, "--seed", "3", "--response", "standard-cnp,long-haul-cnp", "--wide", fmt.Sprintf("--settable-nics=%t", nics == "settable"))
		if err != nil {
			return nil, err
		}
		parts := strings.Split(strings.TrimSpace(text), "\n\n")
		for _, cells := range cellsOf(parts[1]) {
			cells[0] = nics + ", " + cells[0]
			for i := range cells {
				cells[i], _, _ = strings.Cut(cells[i], " (") // without the number of networks, which the page gives once
			}
			rows = append(rows, row(cells...))
		}
		bound := bounds.FindStringSubmatch(parts[len(parts)-1])
		if bound == nil {
			return nil, fmt.Errorf("sim --draw says no bound but: %s", parts[len(parts)-1])
		}
		beyond = append(beyond, row(nics, bound[1], bound[2]))
		if nics == "published" {
			worst = header("Worst with standard CNPs", "Network", "Of possible", "Lost", "Reason")
			some := cellsOf(parts[2])
			for _, cells := range some[:min(len(some), 5)] {
				worst = append(worst, row(cells...))
			}
		}
	}
	return slices.Concat(rows, []string{""}, beyond, []string{""}, worst), nil
}

// bounds is what sim --draw says of what no standard CNPs can do.
var bounds = regexp.MustCompile(`(\d+) of \d+ lose packets, and (\d+) have no short queue`)

var gap = regexp.MustCompile("  +")

// cellsOf splits a table of text, without its header.
func cellsOf(table string) (all [][]string) {
	for _, line := range strings.Split(table, "\n")[1:] {
		all = append(all, gap.Split(strings.TrimSpace(line), -1))
	}
	return all
}

var listed = regexp.MustCompile(`(?m)^responses: \[(.*)\]$`)

// scenarios compares the responses in each built-in scenario with the control law, but two-dcs.
func scenarios(s *simulator) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(s.root, "sim/scenarios/*.yaml"))
	if err != nil {
		return nil, err
	}
	rows := responsesHeader("Scenario")
	slices.SortFunc(files, func(a, b string) int { return strings.Compare(nameOf(a), nameOf(b)) })
	for _, file := range files {
		name := nameOf(file)
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if name == "two-dcs" || strings.Contains(string(text), "mode: thresholds") {
			continue
		}
		these := responses
		if found := listed.FindSubmatch(text); found != nil {
			these = slices.DeleteFunc(strings.Split(string(found[1]), ", "), func(response string) bool { return !slices.Contains(responses, response) })
		}
		next, err := s.compare("`"+name+"`", name, strings.Join(these, ","))
		if err != nil {
			return nil, err
		}
		rows = append(rows, next)
	}
	return rows, nil
}

func nameOf(file string) string { return strings.TrimSuffix(filepath.Base(file), ".yaml") }

// changes are the networks that differ from incast-10ms by one thing.
var changes = []struct {
	title    string
	settings []string
}{
	{"32 senders", []string{"topology.dumbbell.senders=32", "traffic[0].incast={from: 0-31, to: 32, bytes: 25MB}"}},
	{"64 flows, 8 of each sender", []string{"traffic=[" + strings.Repeat("{incast: {from: 0-7, to: 8, bytes: 12500KB}},", 8) + "]"}},
	{"RTT of 100 ms", []string{"topology.dumbbell.spans[0].delay=50ms", "length=1s"}},
	{"loop of 100 us", []string{"topology.dumbbell.delay=25us"}},
	{"loop of 200 us", []string{"topology.dumbbell.delay=50us"}},
	{"loop of 500 us", []string{"topology.dumbbell.delay=125us"}},
	{"loop of 1 ms", []string{"topology.dumbbell.delay=250us"}},
	{"NICs `connectx-default`", []string{"hosts.nic=connectx-default"}},
	{"NICs `slow-measured`", []string{"hosts.nic=slow-measured"}},
	{"senders that obey nothing", []string{"hosts.unresponsive=all"}},
	{"WAN of 400 Gbps, receiver of 100 whose switch marks", []string{"topology.dumbbell.spans[0].rate=400Gbps", "switches.ecn=[{rate: 100Gbps, k_min: 400KB, k_max: 1600KB}]"}},
	{"WAN of 400 Gbps, receiver of 100 whose switch only drops", []string{"topology.dumbbell.spans[0].rate=400Gbps"}},
}

func networks(s *simulator) ([]string, error) {
	rows := responsesHeader("Network")
	for _, c := range changes {
		var options []string
		for _, setting := range c.settings {
			options = append(options, "--set", setting)
		}
		next, err := s.compare(c.title, "incast-10ms", strings.Join(responses, ","), options...)
		if err != nil {
			return nil, err
		}
		rows = append(rows, next)
	}
	return rows, nil
}
