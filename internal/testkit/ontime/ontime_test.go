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

// TestFailing is run by TestVerdict.
func TestFailing(t *testing.T) {
	if os.Getenv(variable) == "" || os.Getenv("FAIL") == "" {
		return
	}
	t.Error("too late")
}

// TestVerdict: an attempt that fails has failed if nothing kept its threads off their cores, and is inconclusive otherwise.
func TestVerdict(t *testing.T) {
	t.Setenv("FAIL", "1")
	cmd := exec.Command(os.Args[0], "-test.run=^TestFailing$")
	cmd.Env = append(os.Environ(), variable+"=1")
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "too late") {
		t.Fatalf("%v: %s", err, out)
	}
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
	const loop = "(i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done)"
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
