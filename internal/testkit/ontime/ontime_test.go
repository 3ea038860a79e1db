//go:build linux

package ontime

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
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

// TestInterrupted: what an attempt has started ends when the process that watches the attempt is killed.
func TestInterrupted(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestWaiting$")
	cmd.Env = append(os.Environ(), "WAIT="+pipe)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(pipe)
	if err != nil {
		t.Fatal(err)
	}
	var attempt, child int
	if _, err := fmt.Sscan(string(text), &attempt, &child); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		running := processes()
		if running[attempt].group != attempt && running[child].group != attempt {
			return
		}
		if time.Since(begin) > time.Minute {
			t.Fatalf("of the attempt's group are there: %+v, %+v", running[attempt], running[child])
		}
	}
}

// TestWaiting is run by TestInterrupted: its attempt starts a process, says who both are, and waits.
func TestWaiting(t *testing.T) {
	pipe := os.Getenv("WAIT")
	if pipe == "" || Again(t) {
		return
	}
	child := exec.Command("sleep", "600")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(pipe, fmt.Appendln(nil, os.Getpid(), child.Process.Pid), 0); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
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

// TestOthers: what is neither idle nor the group's is other work.
func TestOthers(t *testing.T) {
	begin, cores := sight{time.Now(), time.Hour, time.Minute, time.Second}, time.Duration(runtime.NumCPU())
	for name, c := range map[string]struct{ idle, ran, ended, want time.Duration }{
		"an idle machine":         {cores * each, 0, 0, 0},
		"the test's own work":     {(cores - 1) * each, each, 0, 0},
		"its children that ended": {(cores - 1) * each, each / 2, each / 2, 0},
		"other work":              {(cores - 1) * each, 0, 0, each},
		"both":                    {0, each / 2, 0, (cores-1)*each + each/2},
	} {
		now := sight{begin.at.Add(each), begin.idle + c.idle, begin.ran + c.ran, begin.ended + c.ended}
		if got := now.others(begin); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestWatch: a thread that competes for its core is seen to wait, and its CPU time counts as the group's. Only what other work causes makes the group late.
func TestWatch(t *testing.T) {
	const loop = "(i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done)"
	start := func(text string) *exec.Cmd {
		cmd := exec.Command("taskset", "-c", "0", "sh", "-c", text)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
		return cmd
	}
	watch := func(work string) *Cores {
		cmd := start(work + "; sleep 0.3")
		c := watchGroup(cmd.Process.Pid, true)
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		if counted := c.last.ran + c.last.ended; counted > used+some {
			t.Errorf("%s: %v of CPU time counted, %v used", work, counted, used)
		}
		c.end(used)
		return c
	}
	work := map[string]string{"its own children": loop + " & " + loop + "; wait", "in groups of their own": "setsid -w sh -c '" + loop + "' & setsid -w sh -c '" + loop + "'; wait"}
	for name, text := range work {
		if c := watch(text); c.longest() < late || c.ours == 0 {
			t.Errorf("%s, alone: %v", name, c)
		}
	}
	other := start("while :; do :; done")
	raise(other.Process.Pid) // else it gets little beside the group
	for name, text := range work {
		if c := watch(text); !c.Busy() || c.others() == 0 {
			t.Errorf("%s, beside other work: %v", name, c)
		}
	}
	_ = syscall.Kill(-other.Process.Pid, syscall.SIGKILL)
	_ = other.Wait()
}

// TestWatchBegins: what a group's threads had before the watch began doesn't count.
func TestWatchBegins(t *testing.T) {
	cmd := exec.Command("taskset", "-c", "0", "sh", "-c", "(i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done); i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo; read end")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	c := Watch(cmd.Process.Pid)
	c.End()
	_ = in.Close()
	_ = cmd.Wait()
	if limit := c.took + some; c.ours > limit || c.longest() > limit {
		t.Errorf("a shell that waits for its input for %v: %v of CPU time; %v", c.took, c.ours, c)
	}
}

// TestBelow: a process of the group and what it has started are watched, also behind one that runs in a group of its own; a table that is read while
// process IDs are used again may have a cycle.
func TestBelow(t *testing.T) {
	running := table{1: {parent: 0, group: 1}, 10: {parent: 1, group: 10}, 11: {parent: 10, group: 10}, 20: {parent: 11, group: 20}, 21: {parent: 20, group: 21}, 30: {parent: 1, group: 30},
		40: {parent: 41, group: 40}, 41: {parent: 40, group: 40}, 50: {parent: 1, group: 10}}
	for pid, want := range map[int]bool{1: false, 10: true, 11: true, 20: true, 21: true, 30: false, 40: false, 50: true, 60: false} {
		if got := running.below(pid, 10); got != want {
			t.Errorf("process %d: %v, want %v", pid, got, want)
		}
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
