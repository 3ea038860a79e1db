//go:build !nodpdk

package dpdk

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

// awaitEvery is how often a gateway that stands by looks whether its devices are free. The kernel releases the locks of a process that has ended, however
// it ended, with the rest of it.
const awaitEvery = 10 * time.Millisecond

// Await waits until no gateway uses the devices of the ports, and looks for the first time at once. Of several that wait, one at a time goes on: until it calls
// release, which it does once it has opened the devices or given up. While it waits, it calls waiting with the reason at each look.
func Await(ctx context.Context, ports []PortConfig, waiting func(reason string)) (release func() error, err error) {
	resources, err := resourcesOf(ports)
	if err != nil {
		return nil, err
	}
	tick := time.NewTicker(awaitEvery)
	defer tick.Stop()
	var place *lock
	for {
		if place == nil {
			place, err = lockStandby(resources[0])
		}
		if place != nil {
			err = tryAll(resources)
		}
		var taken *inUseError
		switch {
		case err == nil:
			return place.release, nil
		case !errors.As(err, &taken):
			return nil, errors.Join(err, place.release())
		}
		waiting(fmt.Sprintf("%s is in use by %s", taken.what, taken.holder))
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), place.release())
		case <-tick.C:
		}
	}
}

// lockStandby takes the place of the gateway that is next to use a resource.
func lockStandby(r resource) (*lock, error) {
	key, err := r.key()
	if err != nil {
		return nil, err
	}
	dir, err := lockDirectory()
	if err != nil {
		return nil, err
	}
	return takeLock(filepath.Join(dir, "standby-"+key+".lock"), "the first place behind the gateway of "+r.String())
}

// tryAll is an error while another process uses one of the resources.
func tryAll(resources []resource) error {
	locks, err := lockAll(resources)
	return errors.Join(err, releaseAll(locks))
}

// resourcesOf are what nobody else may use while a gateway has the ports; there is at least one.
func resourcesOf(ports []PortConfig) (all []resource, err error) {
	for _, p := range ports {
		d, err := parseDevice(p.Device)
		switch {
		case err != nil:
			return nil, portError(p, err)
		case d.iface != "":
			all = append(all, resource{interfaceResource, d.iface})
		default:
			all = append(all, d.resources()...)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("none of the ports' devices can have only one user, so there is nothing to stand by for: " +
			"expected a PCI device, an interface of the kernel's, a tap or a socket")
	}
	return all, nil
}
