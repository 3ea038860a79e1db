//go:build !nodpdk

package dpdk

/*
#cgo pkg-config: libdpdk
#include <stdlib.h>
#include "eal.h"
#include <rte_eal.h>
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// EALConfig configures the EAL, DPDK's runtime.
type EALConfig struct {
	// Hugepages: use them; otherwise the EAL has Memory bytes of ordinary memory.
	Hugepages bool
	// InMemory: use hugepages without files or a mounted hugetlbfs (--in-memory).
	InMemory bool
	// Memory is the number of bytes for the EAL; see PoolMemory.
	Memory int
	// OtherMemory is the number of bytes of ordinary memory that the process needs besides; it is only used to check the available memory.
	OtherMemory int
	// PCI lets the EAL look for PCI devices. It touches only devices that are opened.
	PCI bool
	// MainCore is the core of EAL's own thread; negative: any allowed core that is not in Cores.
	MainCore int
	// Cores are the workers' cores, which EAL's own threads don't use; negative ones don't matter.
	Cores []int
	// Args are the operator's, added at the end; they replace Start's own arguments.
	Args []string
	// Log is called with each line that EAL and the drivers log, without line end, one call at a time and none after Close. nil: they go to
	// standard error.
	Log func(LogLevel, string)
}

// EAL is DPDK's runtime. A process can have only one in its life. Any goroutine may call its methods.
type EAL struct {
	calls  chan func()
	done   chan struct{}
	closed atomic.Bool
	log    *ealLog
}

var ealStarted atomic.Bool

// Start starts the EAL on a dedicated thread. A process can do that once: the EAL keeps its parsed arguments also if it fails. If the
// checks before (cores, memory) fail, Start can be tried again.
func Start(cfg EALConfig) (*EAL, error) {
	args, err := ealArgs(cfg)
	if err != nil {
		return nil, Faults{{EALArgs, 0, err}}
	}
	if err := cfg.checkMemory(); err != nil {
		return nil, Faults{{MemorySize, 0, err}}
	}
	if !ealStarted.CompareAndSwap(false, true) {
		return nil, errors.New("dpdk: the EAL was started before in this process, and can't be started twice: start the process again")
	}
	removeStaleRuntimeDirs("/var/run/dpdk")
	e := &EAL{calls: make(chan func()), done: make(chan struct{})}
	if cfg.Log != nil {
		if e.log, err = startLog(cfg.Log); err != nil {
			return nil, err
		}
	}
	started := make(chan error)
	go e.main(args, started)
	if err := <-started; err != nil {
		e.log.stop()
		return nil, err
	}
	return e, nil
}

// checkMemory compares the memory that the EAL and the process need with what is free.
func (cfg *EALConfig) checkMemory() (err error) {
	needed := cfg.OtherMemory
	if cfg.Hugepages {
		err = checkHugepages("/", cfg.Memory, cfg.InMemory)
	} else {
		needed += cfg.Memory
	}
	return errors.Join(err, checkMemory("/", needed))
}

// main is EAL's main lcore: it runs the control calls. The goroutine never unlocks its thread, so Go ends the thread with it, and no other
// goroutine gets the affinity of rte_eal_init.
func (e *EAL) main(args []string, started chan<- error) {
	runtime.LockOSThread()
	defer close(e.done)
	if err := ealInit(args); err != nil {
		started <- err
		return
	}
	started <- nil
	for call := range e.calls {
		call()
	}
}

// Do runs f on EAL's thread, which DPDK's control functions need, and waits for it.
func (e *EAL) Do(f func() error) error {
	if e.closed.Load() {
		return errors.New("dpdk: the EAL is closed")
	}
	result := make(chan error)
	select {
	case e.calls <- func() { result <- f() }:
		return <-result
	case <-e.done:
		return errors.New("dpdk: the EAL is closed")
	}
}

// Close frees all resources of the EAL. Devices must be closed before. It can be called twice.
func (e *EAL) Close() error {
	if e.closed.Load() {
		return nil
	}
	err := e.Do(func() error {
		if ret := C.rte_eal_cleanup(); ret != 0 {
			return fmt.Errorf("dpdk: closing the EAL: %w", unix.Errno(-ret))
		}
		return removeRuntimeDir()
	})
	if e.closed.CompareAndSwap(false, true) {
		close(e.calls)
		<-e.done
		e.log.stop()
	}
	return err
}

// removeStaleRuntimeDirs removes the directories of killed gateways. It keeps a directory if its process exists, or if that can't be found
// out.
func removeStaleRuntimeDirs(root string) {
	dirs, _ := filepath.Glob(filepath.Join(root, "cnpgate-*"))
	for _, dir := range dirs {
		pid, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(dir), "cnpgate-"))
		if err == nil && pid > 0 && unix.Kill(pid, 0) == unix.ESRCH {
			_ = os.RemoveAll(dir)
		}
	}
}

// filePrefix distinguishes this process's files from those of others.
func filePrefix() string { return fmt.Sprintf("cnpgate-%d", os.Getpid()) }

// removeRuntimeDir removes the EAL's files in /run/dpdk, which a next process of the same prefix would use, unless the operator chose the
// prefix.
func removeRuntimeDir() error {
	dir := C.GoString(C.rte_eal_get_runtime_dir())
	if filepath.Base(dir) != filePrefix() {
		return nil
	}
	return os.RemoveAll(dir)
}

func ealInit(args []string) error {
	if ret := C.cnp_log_start(); ret != 0 {
		return fmt.Errorf("dpdk: redirecting EAL's log: %w", unix.Errno(-ret))
	}
	// getopt and the EAL keep pointers into the arguments for the life of the process, so they are never freed.
	argv := (**C.char)(C.calloc(C.size_t(len(args)+1), C.size_t(unsafe.Sizeof((*C.char)(nil)))))
	for i, a := range args {
		*(**C.char)(unsafe.Add(unsafe.Pointer(argv), uintptr(i)*unsafe.Sizeof(argv))) = C.CString(a)
	}
	C.cnp_log_clear()
	if C.rte_eal_init(C.int(len(args)), argv) >= 0 {
		return nil
	}
	err := unix.Errno(C.cnp_errno())
	removeRuntimeDir()
	hint := ""
	if err == unix.EACCES || err == unix.EPERM {
		hint = " (run as root, or with CAP_NET_ADMIN, CAP_NET_RAW and CAP_IPC_LOCK)"
	}
	return fmt.Errorf("dpdk: the EAL did not start: %w%s%s; its arguments were %q", err, hint, firstLog(), args[1:])
}

// firstLog returns the first error that EAL logged since the last cnp_log_clear, as the end of an error message.
func firstLog() string {
	var text [512]C.char
	C.cnp_log_first(&text[0], C.size_t(len(text)))
	s := strings.TrimSpace(C.GoString(&text[0]))
	if s == "" {
		return ""
	}
	return ": " + s
}

// ealArgs makes the command line. The operator's arguments are none of these, as package config refuses those, but for --huge-unlink and --iova-mode.
func ealArgs(cfg EALConfig) ([]string, error) {
	given := func(option string) bool {
		return slices.ContainsFunc(cfg.Args, func(a string) bool { return strings.HasPrefix(a, option) })
	}
	for _, ends := range []string{"-v", "--version"} {
		if slices.Contains(cfg.Args, ends) {
			return nil, fmt.Errorf("dpdk: eal_args: %s is not for a service: it would end the process", ends)
		}
	}
	lcores, err := mainLcore(cfg)
	if err != nil {
		return nil, err
	}
	args := []string{"cnpgate", "--log-level=*:warning", "--file-prefix=" + filePrefix(), "--lcores=" + lcores}
	switch {
	case !cfg.Hugepages:
		args = append(args, "--no-huge", "--no-shconf", "--no-telemetry", "-m", fmt.Sprint(toMiB(cfg.Memory)))
	case cfg.InMemory:
		args = append(args, "--in-memory")
	case !given("--huge-unlink"):
		// No later process would use the files of this prefix, and each would keep its hugepage.
		args = append(args, "--huge-unlink=always")
	}
	if cfg.PCI {
		// An allow list with only the host bridge: no device is probed until a port needs it.
		args = append(args, "-a", "0000:00:00.0")
	} else if args = append(args, "--no-pci"); !given("--iova-mode") {
		args = append(args, "--iova-mode=va")
	}
	return append(args, cfg.Args...), nil
}

// mainLcore is EAL's only lcore, number 0: workers get theirs by RegisterThread.
func mainLcore(cfg EALConfig) (string, error) {
	if cfg.MainCore >= 0 {
		if err := CheckCore(cfg.MainCore); err != nil {
			return "", err
		}
		return fmt.Sprintf("0@%d", cfg.MainCore), nil
	}
	allowed, err := allowedCores()
	if err != nil {
		return "", fmt.Errorf("dpdk: reading the process's affinity: %w", err)
	}
	rest := allowed
	for _, c := range cfg.Cores {
		if c >= 0 {
			if err := CheckCore(c); err != nil {
				return "", err
			}
			rest.Clear(c)
		}
	}
	if rest.Count() == 0 {
		rest = allowed
	}
	return "0@(" + coreList(&rest) + ")", nil
}

// StateDirectories are where the EAL and the gateway keep files while they run.
func StateDirectories() []string {
	all := []string{filepath.Dir(C.GoString(C.rte_eal_get_runtime_dir()))} // of all processes
	if dir, err := lockDirectory(); err == nil {
		all = append(all, dir)
	}
	return all
}
