package main

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// tried are the results of the networks of seed 4 with standard CNPs.
type tried [40]result

// worst is what the change of a constant does.
type worst struct {
	constant, value, changed string
	part                     float64 // the least goodput of a network, of that with the value
	where                    string
	lost                     int64 // more than with the value
}

// sensitivity halves and doubles each constant of the control law. The table has the ten with the most effect.
func sensitivity(s *simulator) ([]string, error) {
	constants, err := s.output("go", "run", "./tools/tune", s.work, "./congestion", "./dataplane/respond")
	if err != nil {
		return nil, err
	}
	tuned := *s
	tuned.program = filepath.Join(s.work, "tuned")
	if _, err := s.output("go", "build", "-tags", "nodpdk", "-overlay", filepath.Join(s.work, "overlay.json"), "-o", tuned.program, "./cmd/cnpgate"); err != nil {
		return nil, err
	}
	built, err := tuned.try("")
	if err != nil {
		return nil, err
	}
	var all []worst
	for line := range strings.Lines(constants) {
		fields := strings.Fields(line) // name, value, and the two that it is changed to
		var most *worst
		for _, changed := range fields[2:] {
			other, err := tuned.try(fields[0] + "=" + changed)
			if err != nil {
				return nil, err
			}
			w := worse(built, other)
			w.constant, w.value, w.changed = fields[0], fields[1], changed
			if (w.part < 0.9 || w.lost > 0) && (most == nil || w.part < most.part) {
				most = &w
			}
		}
		if most != nil {
			all = append(all, *most)
		}
	}
	slices.SortStableFunc(all, func(a, b worst) int { return cmp.Compare(a.part, b.part) })
	rows := header("Constant", "Value", "Changed to", "Goodput, of that with the value", "Where", "Lost")
	for _, w := range all[:min(len(all), 10)] {
		rows = append(rows, row("`"+w.constant+"`", w.value, w.changed, fmt.Sprintf("%.3f", w.part), "`"+w.where+"`", fmt.Sprint(w.lost)))
	}
	return rows, nil
}

// try simulates the networks, on all cores, with a constant changed.
func (s simulator) try(tune string) (all tried, err error) {
	s.tune = tune
	cores := runtime.GOMAXPROCS(0)
	failed := make([]error, cores)
	var group sync.WaitGroup
	for first := range cores {
		group.Go(func() {
			for i := first; i < len(all) && failed[first] == nil; i += cores {
				var runs []result
				if runs, failed[first] = s.simulate(fmt.Sprintf("draw-4-%d", i+1), "standard-cnp"); failed[first] == nil {
					all[i] = runs[0]
				}
			}
		})
	}
	group.Wait()
	return all, errors.Join(failed...)
}

// worse compares networks with those of before.
func worse(before, after tried) (w worst) {
	for i := range after {
		if part := after[i].gbps() / before[i].gbps(); i == 0 || part < w.part {
			w.part, w.where = part, after[i].Scenario
		}
		w.lost += int64(after[i].lost()) - int64(before[i].lost())
	}
	return w
}
