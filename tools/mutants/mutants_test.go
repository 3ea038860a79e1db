package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const sample = `package p

type T struct{ n int }

func (t *T) f(a, b int) bool {
	t.n++
	s := "a" + "b"
	return a < b && len(s) == 2 || a < b
}
`

// TestPlaces: each place of a file is one mutant, which is found again by its line.
func TestPlaces(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.go")
	if err := os.WriteFile(path, []byte(sample), 0o600); err != nil {
		t.Fatal(err)
	}
	all, _, err := places(path)
	if err != nil {
		t.Fatal(err)
	}
	var changed []string
	for _, p := range all {
		m, err := parseMutant(p.String())
		if err != nil {
			t.Fatal(err)
		}
		text, ok, err := m.apply()
		if err != nil || !ok {
			t.Fatalf("%s: %v, %v", m, ok, err)
		}
		before, after := strings.Split(sample, "\n"), strings.Split(string(text), "\n")
		for i := range before {
			if before[i] != after[i] {
				changed = append(changed, strings.TrimSpace(after[i]))
			}
		}
	}
	expected := []string{
		`return a < b && len(s) == 2 && a < b`, `return a < b || len(s) == 2 || a < b`, `return a <= b && len(s) == 2 || a < b`, `return a < b && len(s) != 2 || a < b`,
		`return a < b && len(s) == 3 || a < b`, `return a < b && len(s) == 2 || a <= b`,
	}
	if got := strings.Join(changed, "\n"); got != strings.Join(append([]string{"t.n--"}, expected...), "\n") {
		t.Errorf("mutants:\n%s", got)
	}
	if _, ok, err := (mutant{file: path, function: "T.f", from: "a > b", to: "a >= b"}).apply(); ok || err != nil {
		t.Errorf("a place that isn't there: %v, %v", ok, err)
	}
}
