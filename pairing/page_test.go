package pairing

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

var updatePage = flag.Bool("update-page", false, "write the table of docs/qp-rules.md")

// What the table of docs/qp-rules.md has of TestNeverWrong: rows and columns, and the scenes that they are.
var (
	pageRows = [][2]string{{"free", "free"}, {"1 % loss, reordering", "bad network"}, {"two in three seen one way, in step", "half seen, lockstep"},
		{"RDMA-CM, QPs reused", "RDMA-CM and reuse"}, {"off-path attacker, knows QPs and PSNs", "attacker who knows QPs"}}
	pageColumns = []string{"ports symmetric, PSNs random, ", "ports symmetric, PSNs zero, ", "ports random, PSNs random, ", "ports random, PSNs zero, ", "ports asymmetric, PSNs random, "}
)

// cell is a score in the table: percent confirmed, and the packets it took.
func (s *score) cell() string {
	if s == nil {
		return "–"
	}
	text := fmt.Sprintf("%.3g", 100*s.recall())
	if n := len(s.took); n > 0 {
		slices.Sort(s.took)
		text += fmt.Sprintf("; %d/%d", s.took[n/2], s.took[n*99/100])
	}
	return text
}

// onPage compares the table of docs/qp-rules.md with the scores of its scenes, and runs those that have none.
func onPage(t *testing.T, scores map[string]*score) {
	t.Helper()
	const page, head = "../docs/qp-rules.md", "| Scene | formula, random PSNs |"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, table, found := strings.Cut(string(text), "\n"+head)
	columns, rows, both := strings.Cut(table, "|---|\n")
	old, after, _ := strings.Cut(rows+"\n", "\n\n")
	if !found || !both {
		t.Fatalf("%s has no table that begins with %q", page, head)
	}
	all, lines := scenes(), []string(nil)
	for _, row := range pageRows {
		line := "| " + row[0] + " |"
		for _, column := range pageColumns {
			name := column + row[1]
			if n := slices.IndexFunc(all, func(s scene) bool { return s.name == name }); scores[name] == nil && n >= 0 {
				scores[name] = all[n].run(t)
			}
			line += " " + scores[name].cell() + " |"
		}
		lines = append(lines, line)
	}
	want := strings.Join(lines, "\n")
	if *updatePage {
		after = strings.TrimSuffix("\n\n"+after, "\n")
		err = os.WriteFile(page, []byte(before+"\n"+head+columns+"|---|\n"+want+strings.TrimRight(after, "\n")+"\n"), 0o600)
	}
	if err != nil || old != want && !*updatePage {
		t.Errorf("the table of %s differs (%v; scripts/figures writes it); expected\n%s", page, err, want)
	}
}
