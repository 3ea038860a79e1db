package main

import (
	"fmt"
	"strings"
)

// soakFile has a line for each run of scripts/soak that passed: the kind, its number, the commit, and what it printed. fuzzFile has a line for each fuzz target of
// scripts/fuzz: its package, name, and executions.
const (
	soakFile = "testdata/figures/soak.txt"
	fuzzFile = "testdata/figures/fuzz.txt"
)

// soaked is what all runs of scripts/soak and scripts/fuzz did together.
type soaked struct {
	hours             float64
	frames, takeovers uint64
	packets           uint64 // over rings
	targets           int
	executions        uint64
}

// readSoaks adds up what soakFile has.
func (s *soaked) readSoaks(text string) error {
	for line := range strings.Lines(text) {
		kind, said, _ := strings.Cut(line, " soak: ")
		var number, hours float64
		var commit string
		var frames, times, takeovers, lost uint64
		if _, err := fmt.Sscanf(kind, "PACKETS %g %s", &number, &commit); err == nil {
			if n, err := fmt.Sscanf(said, "%d packets over rings, %d lost", &frames, &lost); n != 2 || lost != 0 {
				return fmt.Errorf("%s: %q: %w", soakFile, line, err)
			}
			s.packets += frames
			continue
		}
		if n, err := fmt.Sscanf(said, "%g h, %d frames, accounted for %d times, %d takeovers", &hours, &frames, &times, &takeovers); n != 4 {
			return fmt.Errorf("%s: %q: %w", soakFile, line, err)
		}
		s.hours, s.frames, s.takeovers = s.hours+hours, s.frames+frames, s.takeovers+takeovers
	}
	return nil
}

// readFuzz adds up what fuzzFile has.
func (s *soaked) readFuzz(text string) error {
	for line := range strings.Lines(text) {
		var folder, target string
		var executions uint64
		if _, err := fmt.Sscanf(line, "%s %s %d\n", &folder, &target, &executions); err != nil {
			return fmt.Errorf("%s: %q: %w", fuzzFile, line, err)
		}
		s.targets++
		s.executions += executions
	}
	return nil
}

// figures are those of the sentence in docs/operations.md.
func (s *soaked) figures() []string {
	return []string{fmt.Sprintf("%.3g", s.hours), grouped(s.frames), fmt.Sprint(s.takeovers), grouped(s.packets), fmt.Sprint(s.targets), grouped(s.executions)}
}
