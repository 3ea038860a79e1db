//go:build linux

// Package ontime is for tests whose subject is time: rates, time-outs, how soon something happens. On a busy machine such a test may fail
// because its threads were kept off their cores, which says nothing about what it tests.
package ontime

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	variable = "CNPGATE_ONTIME" // set in a process that makes an attempt
	limit    = 10 * time.Minute // of an attempt
	niceness = -15              // of an attempt, where the test may raise its priority
)

// Again begins a test whose subject is time:
//
//	func TestRate(t *testing.T) {
//		if ontime.Again(t) {
//			return
//		}
//
// It runs the test in a process of its own, which returns false here and goes on. If that fails although its threads, and those of what it
// started, had their cores, the test has failed. If they were kept off them by other work, the attempt is inconclusive, and there is another
// one. If all fail, but not in the same way (see alike), the test is skipped, with the reason: it has neither passed nor failed.
func Again(t *testing.T) (done bool) {
	t.Helper()
	if os.Getenv(variable) != "" {
		endTogether()
		return false
	}
	said, outcome := Judge(func() *Attempt { return try(t) }, func(a *Attempt) { t.Logf("inconclusive, tried again: %v", a.Cores) })
	switch outcome {
	case Passed:
		show(t, said)
	case Failed:
		t.Fatal(plain(said))
	case Inconclusive:
		t.Skip(plain(said))
	}
	return true
}

// endTogether ends an attempt's whole process group at SIGTERM, which the attempt gets when the process that watches it is killed: gateways and guests that it started
// would go on for ever.
var endTogether = sync.OnceFunc(func() {
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM)
	go func() {
		<-told
		_ = syscall.Kill(-os.Getpid(), syscall.SIGKILL) // it leads the group
		os.Exit(143)
	}()
})

// try runs the test in another process.
func try(t *testing.T) *Attempt {
	t.Helper()
	verbose := "true"
	if events() {
		verbose = "test2json"
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run="+pattern(t.Name()), "-test.count=1", "-test.v="+verbose, "-test.timeout="+limit.String())
	cmd.Env = append(os.Environ(), variable+"=1")
	a := Run(cmd)
	if a.Err == nil && !strings.Contains(a.Output, "--- PASS: "+t.Name()+" (") {
		a.Err = errors.New("the test didn't pass")
	}
	return a
}

// Run runs a command, with a raised priority if that is allowed, and watches its threads and those of what it starts.
func Run(cmd *exec.Cmd) *Attempt {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGTERM}
	if cmd.Cancel != nil {
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.WaitDelay = time.Second // what a test leaves running must not hold the pipe
	if err := cmd.Start(); err != nil {
		return &Attempt{"", err, &Cores{}}
	}
	used := watchGroup(cmd.Process.Pid, true)
	err := cmd.Wait()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	used.end(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime())
	return &Attempt{said.String(), err, used}
}

// raise gives a process group priority over others, and over other sessions where the kernel shares cores between these first. Only root may.
func raise(group int) {
	_ = syscall.Setpriority(syscall.PRIO_PGRP, group, niceness)
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", group), fmt.Appendf(nil, "%d", niceness), 0)
}

// pattern selects one test.
func pattern(name string) string {
	parts := strings.Split(name, "/")
	for i := range parts {
		parts[i] = "^" + regexp.QuoteMeta(parts[i]) + "$"
	}
	return strings.Join(parts, "/")
}

// events reports whether the test runs for 'go test -json'.
func events() bool {
	f := flag.Lookup("test.v")
	return f != nil && f.Value.String() == "test2json"
}

// mark precedes the framework's lines (cmd/internal/test2json).
const mark = "\x16"

// plain is output without marks, as a reason: with them, a failed attempt would count as a failure of a test that is skipped.
func plain(output string) string { return strings.ReplaceAll(output, mark, "") }

// show passes on what an attempt said of its subtests, so that they count as if they had run in this process.
func show(t *testing.T, output string) {
	t.Helper()
	if !events() {
		t.Log(output)
		return
	}
	of := "" // the subtest that speaks
	var sub strings.Builder
	for line := range strings.Lines(output) {
		if name := speaker.FindStringSubmatch(line); name != nil {
			of = name[1]
			if !strings.HasPrefix(of, t.Name()+"/") {
				of = ""
			}
		}
		if of != "" && strings.TrimSpace(line) != mark+"PASS" {
			sub.WriteString(line)
		}
	}
	fmt.Print(sub.String() + mark + "=== NAME  " + t.Name() + "\n")
}

var speaker = regexp.MustCompile(`^\x16\s*(?:===|---) (?:RUN|NAME|PAUSE|CONT|PASS|SKIP):?\s+(\S*)`)
