//go:build !nodpdk

package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/internal/dpdk"
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
