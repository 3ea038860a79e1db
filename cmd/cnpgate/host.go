//go:build !nodpdk

package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/internal/dpdk"
	"github.com/cnpgate/cnpgate/internal/netif"
)

// located adds the positions in the configuration to an error about devices.
func located(c *config.Config, err error) error {
	var faults dpdk.Faults
	if !errors.As(err, &faults) {
		return err
	}
	return c.Refused(keysOf(faults))
}

// keysOf are the faults with the keys of a configuration.
func keysOf(faults dpdk.Faults) (all []config.Fault) {
	keys := map[dpdk.Part]string{dpdk.Workers: "dpdk.workers[%d]", dpdk.Ports: "ports[%d].device", dpdk.EALArgs: "dpdk.eal_args", dpdk.MemorySize: "dpdk.hugepages"}
	for _, f := range faults {
		key := keys[f.Part]
		if strings.Contains(key, "%") {
			key = fmt.Sprintf(key, f.Index)
		}
		all = append(all, config.Fault{Key: key, Err: f.Err})
	}
	return all
}

// hostFaults lists what keeps the gateway from starting on this host, and what couldn't be seen.
func hostFaults(c *config.Config) (faults []config.Fault, unseen []error) {
	found, unseen := dpdk.Check(deviceConfig(c))
	return append(keysOf(found), managementFaults(c)...), unseen
}

// managementFaults looks at the addresses of the API and the metrics.
func managementFaults(c *config.Config) (faults []config.Fault) {
	if socket := c.Management.Socket; socket != "" {
		// The gateway makes the socket's directory, but none above it.
		if _, err := os.Stat(filepath.Dir(filepath.Dir(socket))); errors.Is(err, os.ErrNotExist) {
			faults = append(faults, config.Fault{Key: "management.listen", Err: fmt.Errorf("%w; expected a directory for the socket", err)})
		}
	}
	if err := checkLocal(c.Management.Metrics); err != nil {
		faults = append(faults, config.Fault{Key: "management.metrics", Err: err})
	}
	return faults
}

// hostConcerns are what harms a gateway with this configuration on this host, although it can start.
func hostConcerns(c *config.Config) (all []string) {
	for i := range c.Ports {
		p := &c.Ports[i]
		facts, err := netif.Describe(dpdk.Interface(p.Device))
		if err != nil {
			continue // a device without an interface; one that is missing is a fault
		}
		for _, text := range facts.Concerns(p.Tap) {
			all = append(all, "port "+p.Name+": "+text)
		}
	}
	return all
}

// checkLocal refuses an address and port that isn't this host's.
func checkLocal(address string) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || at.Addr().IsUnspecified() || at.Addr().IsLoopback() {
		return nil // none, or of every host
	}
	local, err := net.InterfaceAddrs()
	for _, a := range local {
		if n, ok := a.(*net.IPNet); ok && n.IP.Equal(net.IP(at.Addr().AsSlice())) {
			return nil
		}
	}
	if err != nil {
		return nil // they can't be seen
	}
	return fmt.Errorf("this host has no address %v; expected one of its own, or 0.0.0.0 or [::] for all", at.Addr())
}

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
