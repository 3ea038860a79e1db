package main

import (
	"fmt"
	"strings"
)

// soakFile has a line for each run of scripts/soak that passed: the kind, its number, the commit, and what it printed.
const soakFile = "testdata/figures/soak.txt"

// soaked is what all runs of scripts/soak did together.
type soaked struct {
	hours             float64
	frames, takeovers uint64
	packets           uint64 // over rings
}

func readSoaks(text string) (s soaked, err error) {
	for line := range strings.Lines(text) {
		kind, said, _ := strings.Cut(line, " soak: ")
		var number, hours float64
		var commit string
		var frames, times, takeovers, lost uint64
		if _, err := fmt.Sscanf(kind, "PACKETS %g %s", &number, &commit); err == nil {
			if n, err := fmt.Sscanf(said, "%d packets over rings, %d lost", &frames, &lost); n != 2 || lost != 0 {
				return s, fmt.Errorf("%s: %q: %w", soakFile, line, err)
			}
			s.packets += frames
			continue
		}
		if n, err := fmt.Sscanf(said, "%g h, %d frames, accounted for %d times, %d takeovers", &hours, &frames, &times, &takeovers); n != 4 {
			return s, fmt.Errorf("%s: %q: %w", soakFile, line, err)
		}
		s.hours, s.frames, s.takeovers = s.hours+hours, s.frames+frames, s.takeovers+takeovers
	}
	return s, nil
}

// figures are those of the sentence in docs/operations.md.
func (s *soaked) figures() []string {
	return []string{fmt.Sprintf("%.3g", s.hours), grouped(s.frames), fmt.Sprint(s.takeovers), grouped(s.packets)}
}
