//go:build !nodpdk

package dpdk

/*
#include "capabilities.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Capabilities is a set of them: bit n stands for capability n (capabilities(7)).
type Capabilities uint64

// AllCapabilities is what a device needs of which nothing is known.
const AllCapabilities = ^Capabilities(0)

const (
	netAdmin    Capabilities = 1 << unix.CAP_NET_ADMIN
	netRaw      Capabilities = 1 << unix.CAP_NET_RAW
	bpf         Capabilities = 1 << unix.CAP_BPF
	DACOverride Capabilities = 1 << unix.CAP_DAC_OVERRIDE // to use files whatever their permissions
)

var capabilityNames = map[Capabilities]string{netAdmin: "CAP_NET_ADMIN", netRaw: "CAP_NET_RAW", bpf: "CAP_BPF", DACOverride: "CAP_DAC_OVERRIDE"}

// Names are the capabilities' names, in the order of their numbers.
func (c Capabilities) Names() []string {
	names := []string{}
	for bit := Capabilities(1); bit != 0; bit <<= 1 {
		if name := capabilityNames[bit]; c&bit != 0 {
			if name == "" {
				return []string{"all"}
			}
			names = append(names, name)
		}
	}
	return names
}

// capabilitiesAfterStart are what a device of such a driver needs once it has been started: a PCI device of a driver without traits nothing.
func capabilitiesAfterStart(device, driver string) Capabilities {
	if t, known := drivers[driver]; known || pciAddress.MatchString(device) {
		return t.afterStart
	}
	return AllCapabilities
}

// Capabilities are what the opened devices still need.
func (d *Devices) Capabilities() Capabilities {
	all := Capabilities(0)
	for i, p := range d.ports {
		name, _, _ := strings.Cut(p.cfg.Device, ",")
		all |= capabilitiesAfterStart(name, d.profiles[i].Driver)
	}
	return all
}

const (
	limitSignal  = unix.Signal(40) // a real-time signal, which neither Go, glibc nor DPDK uses
	limitTimeout = 5 * time.Second
)

// LimitCapabilities takes every capability from each of the process's threads that isn't in keep, and the right to get one by executing a
// program. It returns once /proc shows that for each thread.
func LimitCapabilities(keep Capabilities) error {
	// Go keeps a thread that takes only signals which the program has asked for.
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, limitSignal)
	defer signal.Stop(asked)
	if ret := C.cnp_capabilities_begin(C.int(limitSignal), C.uint64_t(keep)); ret != 0 {
		return fmt.Errorf("installing a signal handler: %w", unix.Errno(-ret))
	}
	defer C.cnp_capabilities_end(C.int(limitSignal))
	for end := time.Now().Add(limitTimeout); ; time.Sleep(time.Millisecond) {
		left, err := threadsAbove(keep)
		if err != nil || len(left) == 0 {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("thread %d still has its capabilities after %s", left[0], limitTimeout)
		}
		for _, thread := range left {
			if err := unix.Tgkill(os.Getpid(), thread, limitSignal); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("signal to thread %d: %w", thread, err)
			}
		}
	}
}

// threadsAbove are the process's threads that have capabilities beyond keep, or may get some.
func threadsAbove(keep Capabilities) ([]int, error) {
	const tasks = "/proc/self/task"
	entries, err := os.ReadDir(tasks)
	if err != nil {
		return nil, err
	}
	var above []int
	for _, e := range entries {
		status, err := os.ReadFile(tasks + "/" + e.Name() + "/status")
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			continue // it has ended
		}
		if err != nil {
			return nil, err
		}
		thread, err := strconv.Atoi(e.Name())
		if err != nil {
			return nil, err
		}
		if !limited(string(status), keep) {
			above = append(above, thread)
		}
	}
	return above, nil
}

// limited reports whether a thread of this status (proc(5)) has no capability beyond keep and can't get one.
func limited(status string, keep Capabilities) bool {
	value := func(key string, base int) (uint64, error) {
		_, after, _ := strings.Cut(status, "\n"+key+":")
		line, _, _ := strings.Cut(after, "\n")
		return strconv.ParseUint(strings.TrimSpace(line), base, 64)
	}
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapAmb"} {
		if c, err := value(set, 16); err != nil || Capabilities(c)&^keep != 0 {
			return false
		}
	}
	fixed, err := value("NoNewPrivs", 10)
	return err == nil && fixed == 1
}
