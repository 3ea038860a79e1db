//go:build linux

package ontime

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestAgain: the test goes on in another process, and its subtests count in this one.
func TestAgain(t *testing.T) {
	pid := os.Getpid()
	if Again(t) {
		return
	}
	t.Run("a subtest", func(t *testing.T) {
		if os.Getenv(variable) == "" || pid != os.Getpid() {
			t.Error("the test goes on in the process that watches it")
		}
	})
}

// TestFailing is run by TestJudgeProcess: it fails in the same way, or each time with another complaint.
func TestFailing(t *testing.T) {
	if os.Getenv(variable) == "" {
		return
	}
	switch os.Getenv("FAIL") {
	case "same":
		t.Errorf("too late in %s", t.TempDir())
	case "place":
		t.Error("too late: " + strings.Map(func(r rune) rune { return 'a' + r%16 }, time.Now().String()))
	}
}

// TestBusy: other work kept threads off their cores only if they waited and there was some.
func TestBusy(t *testing.T) {
	calm := &Cores{took: 10 * time.Second, idled: 1000 * time.Second, worst: time.Second}
	busy := &Cores{took: 10 * time.Second, worst: 2 * late}
	own := &Cores{took: 10 * time.Second, worst: 2 * late, ours: 10000 * time.Second}
	unhurt := &Cores{took: 10 * time.Second, worst: late}
	for name, c := range map[string]struct {
		*Cores
		busy bool
	}{"an idle machine": {calm, false}, "other work": {busy, true}, "the test's own work": {own, false}, "other work that the test didn't notice": {unhurt, false}} {
		if c.Busy() != c.busy {
			t.Errorf("%s: %v", name, c.Cores)
		}
	}
}

// TestWatch: a thread that competes for its core is seen to wait, and its CPU time counts as the group's.
func TestWatch(t *testing.T) {
	const loop = "(i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done)"
	cmd := exec.Command("taskset", "-c", "0", "sh", "-c", loop+" & "+loop+"; wait")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := watchGroup(cmd.Process.Pid)
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	c.end(cmd.ProcessState.UserTime())
	if c.worst < late || len(c.waited) == 0 {
		t.Errorf("%v", c)
	}
}

func TestPattern(t *testing.T) {
	if got := pattern("TestA/b.c/d"); got != `^TestA$/^b\.c$/^d$` {
		t.Error(got)
	}
}

// TestPlain: what a failed attempt said holds no line that 'go test -json' would read as a failure of the test.
func TestPlain(t *testing.T) {
	if got, want := plain("\x16=== RUN   TestX\n    \x16--- FAIL: TestX (0.00s)\n"), "=== RUN   TestX\n    --- FAIL: TestX (0.00s)\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
