//go:build !nodpdk

package dpdk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// awaitEvery is how often a gateway that stands by looks whether its devices are free. The kernel releases the locks of a process that has ended, however
// it ended, with the rest of it.
const awaitEvery = 10 * time.Millisecond

// prepareEvery is how often it tries to prepare itself, if that isn't possible yet.
const prepareEvery = 200 * time.Millisecond

// Standby is a gateway that waits for the devices of another one, and has its packet sockets. Of several, one at a time is the next: it starts the EAL and
// allocates its memory before the devices are free. If it ends while it takes over, frames still wait in the sockets for those behind it.
type Standby struct {
	cfg    Config
	place  *lock     // the next one's; nil: another is the next
	tried  time.Time // to start the EAL
	eal    *EAL      // nil: not started
	pool   *Pool     // nil: it depends on devices
	before map[string]*offeredSockets
	failed time.Time // to get sockets from a gateway that offers some
}

// NewStandby is a gateway that has not begun to wait.
func NewStandby(cfg Config) *Standby { return &Standby{cfg: cfg, before: map[string]*offeredSockets{}} }

// Await waits until no gateway uses the devices of the ports, and looks for the first time at once. While it waits, it calls waiting with the reason at each
// look, and ends with its error, if any. It can be called again then.
func (s *Standby) Await(ctx context.Context, waiting func(reason string) error) error {
	resources, err := resourcesOf(s.cfg.Ports)
	if err != nil {
		return err
	}
	tick := time.NewTicker(awaitEvery)
	defer tick.Stop()
	for waited := false; ; waited = true {
		if s.place == nil {
			s.place, err = lockStandby(resources[0])
		}
		if s.place != nil {
			err = tryAll(resources)
		}
		var taken *inUseError
		switch {
		case err == nil:
			return nil
		case errors.As(err, &taken):
			err = waiting(fmt.Sprintf("%s is in use by %s", taken.what, taken.holder))
		case waited: // an interface may be missing for a while
			err = waiting(err.Error())
		}
		if err == nil {
			s.inherit()
			if s.place != nil {
				err = s.prepare()
			}
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// prepare does beforehand what needs no device. What needs more memory than is free now, or has another fault that may be mended, is tried again later.
func (s *Standby) prepare() error {
	if s.eal != nil || time.Since(s.tried) < prepareEvery {
		return nil
	}
	s.tried = time.Now()
	p := startPlan(s.cfg)
	p.onlyLooks, p.waits = true, true
	if len(p.examine()) > 0 {
		return nil
	}
	e, err := Start(p.eal())
	faults := Faults(nil)
	switch {
	case errors.As(err, &faults):
		return nil
	case err != nil:
		return err
	}
	s.eal = e
	if slices.ContainsFunc(p.devices, func(d device) bool { return d.pci }) {
		return nil // the first device has the NUMA node, and may want larger buffers
	}
	return e.Do(func() error {
		s.pool, _ = newPool(e, p.frames, p.room, -1) // without it the pool is made at the takeover
		return nil
	})
}

// inherit gets the sockets of interfaces that their gateway offers, and gets them again when that one has others. A gateway that hangs, or has another
// version, is asked again later.
func (s *Standby) inherit() {
	for _, p := range s.cfg.Ports {
		d, err := parseDevice(p.Device)
		if err != nil || d.iface == "" {
			continue
		}
		if h := s.before[d.iface]; h != nil && h.ended.Load() == nil {
			continue
		} else if h != nil && h.stale() {
			h.close()
			delete(s.before, d.iface)
		}
		if time.Since(s.failed) < prepareEvery {
			continue
		}
		h, err := inherit(d.iface)
		switch {
		case err == nil:
			s.before[d.iface].close()
			s.before[d.iface] = h
		case !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ECONNREFUSED): // it offers some
			s.failed = time.Now()
		}
	}
}

// Open opens the devices, as Open does, with what was prepared. It ends the standby, also if it fails: the next one may try then.
func (s *Standby) Open() (d *Devices, err error) {
	defer func() { err = errors.Join(err, s.leave()) }()
	p, err := newPlan(s.cfg)
	if err != nil {
		return nil, errors.Join(err, s.freePool(), s.closeEAL())
	}
	p.before = s.before
	if s.eal == nil {
		return openAll(p)
	}
	if s.pool != nil && s.pool.fits(p) {
		p.pool, s.pool = s.pool, nil
	}
	if err := s.freePool(); err != nil {
		return nil, errors.Join(err, s.closeEAL())
	}
	e := s.eal
	s.eal = nil
	return e.openAll(p)
}

// Close ends a standby that has not opened the devices.
func (s *Standby) Close() error { return errors.Join(s.freePool(), s.closeEAL(), s.leave()) }

// leave frees the sockets that were not used, and the place of the next gateway.
func (s *Standby) leave() error {
	for _, h := range s.before {
		h.close()
	}
	clear(s.before)
	err := s.place.release()
	s.place = nil
	return err
}

func (s *Standby) freePool() error {
	if s.pool == nil {
		return nil
	}
	pool := s.pool
	s.pool = nil
	return s.eal.Do(func() error {
		pool.free()
		return nil
	})
}

func (s *Standby) closeEAL() error {
	if s.eal == nil {
		return nil
	}
	e := s.eal
	s.eal = nil
	return e.Close()
}

// lockStandby takes the place of the gateway that is next to use a resource.
func lockStandby(r resource) (*lock, error) {
	path, err := r.lockPath("standby-")
	if err != nil {
		return nil, err
	}
	return takeLock(path, "the first place behind the gateway of "+r.String())
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
		if err != nil {
			return nil, portError(p, err)
		}
		all = append(all, d.resources()...)
	}
	if len(all) == 0 {
		return nil, errors.New("none of the ports' devices can have only one user, so there is nothing to stand by for: " +
			"expected a PCI device, an interface of the kernel's, a tap or a socket")
	}
	return all, nil
}
