package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
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
