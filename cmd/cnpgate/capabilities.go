//go:build !nodpdk

package main

import (
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/internal/dpdk"
)

// The main goroutine keeps the main thread. If another goroutine that was locked to that thread ended, Go would park the thread with every signal
// blocked, and its capabilities could not be given up.
func init() { runtime.LockOSThread() }

// limit gives up the capabilities that only the start needed. If that fails, it logs the failure and the gateway continues with all of them.
func (d *devices) limit(c *config.Config, reportPath string) {
	keep := d.Capabilities()
	if keep == dpdk.AllCapabilities {
		d.log.Info().Msg("All capabilities are kept: it is not known which ones a port's driver needs after the start.")
		return
	}
	if needsOverride(c, reportPath) {
		keep |= dpdk.DACOverride
	}
	if err := dpdk.LimitCapabilities(keep); err != nil {
		d.log.Warn().Err(err).Msg("The capabilities that only the start needed could not be given up.")
		return
	}
	d.log.Info().Strs("kept", keep.Names()).Msg("The capabilities that only the start needed were given up.")
}

// needsOverride reports whether the process needs CAP_DAC_OVERRIDE later, for files of another user: a reload reads the configuration, and the end of
// a run renames the report and removes the socket.
func needsOverride(c *config.Config, reportPath string) bool {
	uses := map[string]uint32{c.File.Name: unix.R_OK}
	for _, path := range []string{reportPath, c.Management.Socket} {
		if path != "" {
			uses[filepath.Dir(path)] = unix.W_OK | unix.X_OK
		}
	}
	refused := func() int {
		n := 0
		for path, mode := range uses {
			if unix.Faccessat(unix.AT_FDCWD, path, mode, unix.AT_EACCESS) != nil {
				n++
			}
		}
		return n
	}
	with, without := refused(), 0
	withoutOverride(func() { without = refused() })
	return without > with
}

// withoutOverride calls f on a thread without the capability to override file permissions.
func withoutOverride(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: Go ends the thread with the goroutine
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var sets [2]unix.CapUserData
		if unix.Capget(&header, &sets[0]) != nil {
			return
		}
		sets[0].Effective &^= 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH
		if unix.Capset(&header, &sets[0]) == nil {
			f()
		}
	}()
	<-done
}
