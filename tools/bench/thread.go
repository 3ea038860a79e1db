package main

import (
	"runtime"

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
