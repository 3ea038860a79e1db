//go:build !nodpdk

package dpdk

/*
#include "eal.h"
#include <rte_lcore.h>
*/
import "C"

import (
	"fmt"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// allowedCores is the process's affinity before this package changed a thread's.
var allowedCores = sync.OnceValues(func() (unix.CPUSet, error) {
	var set unix.CPUSet
	err := unix.SchedGetaffinity(0, &set)
	return set, err
})

// CheckCore returns an error if a thread can't be pinned to the core.
func CheckCore(core int) error {
	allowed, err := allowedCores()
	if err != nil {
		return fmt.Errorf("dpdk: core %d: reading the process's affinity: %w", core, err)
	}
	if core < 0 || core >= len(allowed)*64 || !allowed.IsSet(core) {
		return fmt.Errorf("dpdk: core %d is not there, or this process may not use it: it may use %s", core, coreList(&allowed))
	}
	return nil
}

// RegisterThread makes the calling goroutine's thread a worker: locks the goroutine to it, pins it to the core (unless it is negative) and
// registers it with the EAL, which gives it a mempool cache.
func RegisterThread(core int) error {
	if core >= 0 {
		if err := CheckCore(core); err != nil {
			return err
		}
	} else if _, err := allowedCores(); err != nil {
		return fmt.Errorf("dpdk: reading the process's affinity: %w", err)
	}
	runtime.LockOSThread()
	if core >= 0 {
		var set unix.CPUSet
		set.Set(core)
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			runtime.UnlockOSThread()
			return fmt.Errorf("dpdk: pinning a worker to core %d: %w", core, err)
		}
	}
	if C.rte_thread_register() != 0 {
		err := unix.Errno(C.cnp_errno())
		unpin()
		return fmt.Errorf("dpdk: registering a worker with the EAL (at most %d threads): %w", C.RTE_MAX_LCORE, err)
	}
	return nil
}

// UnregisterThread undoes RegisterThread, on the same goroutine.
func UnregisterThread() {
	C.rte_thread_unregister()
	unpin()
}

// unpin restores the thread's affinity before Go may use it for other goroutines.
func unpin() {
	allowed, _ := allowedCores()
	if unix.SchedSetaffinity(0, &allowed) == nil {
		runtime.UnlockOSThread()
	}
	// Otherwise the goroutine stays locked, and its thread ends with it.
}

// coreList prints a set in EAL's format: 0-3,8.
func coreList(set *unix.CPUSet) string {
	text := ""
	for c := 0; c < len(set)*64; c++ {
		if !set.IsSet(c) {
			continue
		}
		last := c
		for last+1 < len(set)*64 && set.IsSet(last+1) {
			last++
		}
		if text != "" {
			text += ","
		}
		text += fmt.Sprint(c)
		if last > c {
			text += fmt.Sprintf("-%d", last)
		}
		c = last
	}
	return text
}
