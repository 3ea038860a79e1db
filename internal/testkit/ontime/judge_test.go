//go:build linux

package ontime

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestJudge: a test that fails in the same way each time has failed, also on a busy machine.
func TestJudge(t *testing.T) {
	cores := func(waited time.Duration) *Cores {
		return &Cores{took: 10 * time.Second, worst: 2 * late, waited: map[int]time.Duration{1: waited, 2: 0}}
	}
	calm := &Cores{took: 10 * time.Second}
	little, much, once := cores(time.Second/2), cores(2*time.Second), &Cores{took: 10 * time.Second, worst: 2 * long}
	const failed = "=== RUN   TestX\n    x_test.go:7: began after %d ms\n\x16--- FAIL: TestX (%d.00s)\n    x_test.go:%d: %s\nFAIL\n"
	for name, c := range map[string]struct {
		try   func(n int) (output string, cores *Cores, passed bool)
		tries int
		want  Outcome
	}{
		"passes": {func(int) (string, *Cores, bool) { return "", much, true }, 1, Passed},
		"passes at last": {func(n int) (string, *Cores, bool) {
			return fmt.Sprintf(failed, n, n, 9, "late"), much, n == 3
		}, 4, Passed},
		"fails on an idle machine": {func(n int) (string, *Cores, bool) { return fmt.Sprintf(failed, n, n, 9, "late"), calm, false }, 1, Failed},
		"has had its cores at last": {func(n int) (string, *Cores, bool) {
			return fmt.Sprintf(failed, n, n, n, "late"), []*Cores{much, much, calm}[n], false
		}, 3, Failed},
		"the same each time": {func(n int) (string, *Cores, bool) {
			return fmt.Sprintf(failed, 5, n, 9, "/tmp/TestX"+fmt.Sprint(n)+"/f is wrong"), much, false
		}, Attempts, Failed},
		"the same but for figures, and little waiting in one": {func(n int) (string, *Cores, bool) {
			return fmt.Sprintf(failed, n, n, 9, fmt.Sprintf("rate %d.5, PID %d", n, 100*n)), []*Cores{much, much, little, much}[n], false
		}, Attempts, Failed},
		"the same but for figures, and much waiting": {func(n int) (string, *Cores, bool) {
			return fmt.Sprintf(failed, 5, 5, 9, fmt.Sprintf("rate %d.5", n)), much, false
		}, Attempts, Inconclusive},
		"the same but for figures, and long waits": {func(n int) (string, *Cores, bool) {
			return fmt.Sprintf(failed, 5, 5, 9, fmt.Sprintf("rate %d.5", n)), once, false
		}, Attempts, Inconclusive},
		"at different places": {func(n int) (string, *Cores, bool) { return fmt.Sprintf(failed, 5, 5, 9+n/3, "late"), little, false }, Attempts, Inconclusive},
		"a command, the same each time": {func(n int) (string, *Cores, bool) {
			return fmt.Sprintf("line %d\nno such file\n", n), much, false
		}, Attempts, Failed},
		"a command's failed check": {func(n int) (string, *Cores, bool) {
			return fmt.Sprintf("  FAIL queue %d KB\n  PASS rate\nlast\n", n), much, false
		}, Attempts, Inconclusive},
		"silence": {func(int) (string, *Cores, bool) { return "", much, false }, Attempts, Failed},
	} {
		n, told := 0, 0
		said, outcome := Judge(func() *Attempt {
			output, cores, passed := c.try(n)
			n++
			if passed {
				return &Attempt{output, nil, cores}
			}
			return &Attempt{output, errors.New("exit status 1"), cores}
		}, func(*Attempt) { told++ })
		if outcome != c.want || n != c.tries || told != n-1 || outcome != Passed && !strings.Contains(said, "exit status 1") {
			t.Errorf("%s: outcome %d after %d attempts, %d told; expected %d after %d\n%s", name, outcome, n, told, c.want, c.tries, said)
		}
	}
}

// TestJudgeProcess: with real attempts, which always find the machine busy.
func TestJudgeProcess(t *testing.T) {
	for how, want := range map[string]Outcome{"same": Failed, "place": Inconclusive, "": Passed} {
		_, outcome := Judge(func() *Attempt {
			cmd := exec.Command(os.Args[0], "-test.run=^TestFailing$", "-test.v")
			cmd.Env = append(os.Environ(), variable+"=1", "FAIL="+how)
			a := Run(cmd)
			a.Cores.worst = time.Second
			return a
		}, func(*Attempt) {})
		if outcome != want {
			t.Errorf("%q: outcome %d, expected %d", how, outcome, want)
		}
	}
}
