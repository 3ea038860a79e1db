//go:build linux

package ontime

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Attempts is how often an inconclusive test is tried.
const Attempts = 4

// Attempt is what a test or a command said, how it ended, and what it had of the machine.
type Attempt struct {
	Output string
	Err    error // nil if it passed
	Cores  *Cores
}

// Outcome is what attempts have shown.
type Outcome int

// Inconclusive: only other work on the machine may be to blame.
const (
	Passed Outcome = iota
	Failed
	Inconclusive
)

// Judge makes attempts until one passes or has failed although it had its cores, and tells of each other one that is followed by one more. It
// returns what the last one said.
func Judge(try func() *Attempt, tell func(*Attempt)) (said string, outcome Outcome) {
	var tried []*Attempt
	for {
		a := try()
		tried = append(tried, a)
		said = fmt.Sprintf("%s%v\n%v", a.Output, a.Err, a.Cores)
		switch {
		case a.Err == nil:
			return a.Output, Passed
		case !a.Cores.Busy():
			return said, Failed
		case len(tried) < Attempts:
			tell(a)
		case alike(tried):
			return fmt.Sprintf("%sfailed %d times alike, which other work on the machine doesn't explain\n", said, Attempts), Failed
		default:
			return fmt.Sprintf("inconclusive, %d times; the last attempt:\n%s", Attempts, said), Inconclusive
		}
	}
}

// alike reports whether attempts failed in the same way, so that the test and not the machine is to blame: with the same complaints to the last
// figure, or with the same ones but for their figures although other work took little of the time in one of the attempts.
func alike(tried []*Attempt) bool {
	exact, words, little := true, true, false
	for _, a := range tried {
		first := complaints(tried[0])
		exact = exact && slices.Equal(complaints(a), first)
		words = words && slices.Equal(withoutFigures(complaints(a)), withoutFigures(first))
		little = little || !a.Cores.explains()
	}
	return exact || words && little
}

var (
	complaint = regexp.MustCompile(`^\s*\S+\.go:\d+: |^\W*(panic|fatal error): |\bFAIL\b`)
	took      = regexp.MustCompile(`\([0-9.]+s\)|/tmp/\S+`) // they differ whatever a test does
	figure    = regexp.MustCompile(`[0-9][0-9.]*([nuµm]?s|m|h)?`)
)

// complaints are the lines that say what is wrong and where, sorted, each once; the last line if there are none.
func complaints(a *Attempt) (lines []string) {
	last := fmt.Sprint(a.Err)
	for line := range strings.Lines(a.Output) {
		line = took.ReplaceAllString(strings.TrimSpace(line), "")
		if complaint.MatchString(line) {
			lines = append(lines, line)
		} else if line != "" {
			last = line
		}
	}
	if len(lines) == 0 {
		return []string{last}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// withoutFigures leaves the words of complaints and, in front, their place.
func withoutFigures(lines []string) (out []string) {
	for _, line := range lines {
		place := 0
		if at := complaint.FindStringIndex(line); at != nil {
			place = at[1]
		}
		out = append(out, line[:place]+figure.ReplaceAllString(line[place:], "#"))
	}
	slices.Sort(out)
	return slices.Compact(out)
}
