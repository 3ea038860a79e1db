package yamldoc

import (
	"errors"
	"testing"
)

// Mistakes don't pile up before the first ones are picked.
func TestReportStaysSmall(t *testing.T) {
	r, most := &report{}, 0
	const n = 100_000
	for i := range n {
		r.problem(&Node{Line: n - i}, "x")
		most = max(most, len(r.problems))
	}
	if most > 100*MaxProblems {
		t.Errorf("%d problems at a time", most)
	}
	var list *Error
	if !errors.As(r.Err(), &list) || list.Problems[0].Line != 1 || list.Problems[MaxProblems-1].Line != MaxProblems {
		t.Errorf("got %v", list)
	}
}
