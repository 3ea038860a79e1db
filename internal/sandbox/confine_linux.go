package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/sys/unix"
)

// LimitFiles limits what all threads may open from now on, by Landlock, and sets no_new_privs. What is open stays so.
func LimitFiles(p Paths) error {
	if _, _, err := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION); err != 0 {
		return fmt.Errorf("the kernel has no Landlock (%w); expected Linux 5.13 or later, with landlock in its list of security modules (lsm=)", err)
	}
	// V3 has all ways to read and write a file. Later versions limit ioctl and sockets, which seccomp's list does.
	err := landlock.V3.BestEffort().RestrictPaths(append(rules(p.Read, landlock.ROFiles, landlock.RODirs), rules(p.Write, landlock.RWFiles, landlock.RWDirs)...)...)
	if err != nil {
		return fmt.Errorf("the kernel's Landlock refuses the rules: %w", err)
	}
	return nil
}

// rules allow the paths that exist. A pipe or a socket without a name in a file system needs no rule.
func rules(paths []string, files, directories func(...string) landlock.FSRule) (all []landlock.Rule) {
	for _, path := range paths {
		path, err := filepath.EvalSymlinks(path)
		if err != nil {
			continue
		}
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			all = append(all, directories(path))
		} else if err == nil {
			all = append(all, files(path))
		}
	}
	return all
}

// Confine limits all threads of a command to its files and to system calls, without a network; serve: it accepts connections. A call that isn't allowed
// fails with EPERM.
func Confine(p Paths, serve bool) error {
	calls := []Calls{Runtime, Files}
	if serve {
		calls = append(calls, Serve)
	}
	policy, err := filter(seccomp.ActionErrno, calls)
	if err != nil {
		return err
	}
	limited := LimitFiles(p) // before the filter, which doesn't allow it
	if err := seccomp.LoadFilter(seccomp.Filter{NoNewPrivs: true, Flag: seccomp.FilterFlagTSync, Policy: policy}); err != nil {
		return errors.Join(limited, fmt.Errorf("seccomp: %w", err))
	}
	return limited
}

// KeepFromCores leaves the process's memory, which may have keys in it, out of core dumps: they have the registers of each thread only.
func KeepFromCores() error { return os.WriteFile("/proc/self/coredump_filter", []byte("0x10"), 0) }
