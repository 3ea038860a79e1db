package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// threadCPU is the CPU time of the calling thread, ns.
func threadCPU() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err) // Linux always has it
	}
	return t.Nano()
}

// taskCPU is the CPU time of a thread of another process, /proc/PID/task/TID, ns. It is exact while the thread doesn't run.
func taskCPU(task string) (int64, error) {
	text, err := os.ReadFile(filepath.Join(task, "schedstat"))
	if err != nil {
		return 0, err
	}
	ns, err := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s/schedstat: %w", task, err)
	}
	return ns, nil
}

// awaitCPU sleeps until threads have used about d of CPU time. The kernel counts a running thread's time at its own ticks, and on a busy machine
// the thread needs longer to get it.
func awaitCPU(d time.Duration, used func() (int64, error)) error {
	began := time.Now()
	for left := d; left > 0 && time.Since(began) < 20*d+patience; {
		time.Sleep(max(left, time.Millisecond))
		now, err := used()
		if err != nil {
			return err
		}
		left = d*9/10 - time.Duration(now)
	}
	return nil
}

// pin ties the calling goroutine to a thread, and the thread to a core.
func pin(core int) error {
	runtime.LockOSThread()
	var set unix.CPUSet
	set.Set(core)
	return unix.SchedSetaffinity(0, &set)
}

// serve makes a program a measured process: it does what its input asks for, "run MILLISECONDS" and other words, until the input ends.
func serve(run func(what string, d time.Duration) (*sample, error)) error {
	fmt.Println("ready")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		what, number, _ := strings.Cut(in.Text(), " ")
		ms, err := strconv.Atoi(number)
		if err != nil {
			return fmt.Errorf("asked %q", in.Text())
		}
		s, err := run(what, time.Duration(ms)*time.Millisecond)
		if err != nil {
			return err
		}
		if err := json.NewEncoder(os.Stdout).Encode(s); err != nil {
			return err
		}
	}
	return nil
}
