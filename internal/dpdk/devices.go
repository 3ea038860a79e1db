//go:build !nodpdk

package dpdk

import (
	"errors"
	"fmt"
	"slices"
)

// Devices are the opened ports, the pool their frames come from, and the workers' backends.
type Devices struct {
	eal      *EAL
	ownEAL   bool
	workers  int
	ports    []*Port
	profiles []Profile
	pool     *Pool
	backends []*Backend
	stopped  bool
}

// Open starts the EAL with as much memory as the configuration asks for and opens the devices. A process can do it once; Close
// closes the EAL too. Everything that can be told beforehand is checked before anything starts.
func Open(cfg Config) (*Devices, error) {
	p, err := newPlan(cfg)
	if err != nil {
		return nil, err
	}
	e, err := Start(p.eal())
	if err != nil {
		return nil, err
	}
	d, err := e.open(p)
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	d.ownEAL = true
	return d, nil
}

// Open opens devices on an EAL that runs already, as often as wanted. What Config says of the EAL itself is not looked at.
func (e *EAL) Open(cfg Config) (*Devices, error) {
	p, err := newPlan(cfg)
	if err != nil {
		return nil, err
	}
	return e.open(p)
}

func (e *EAL) open(p *plan) (*Devices, error) {
	d := &Devices{eal: e, workers: len(p.Cores)}
	err := e.do(func() error { return d.open(p) })
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// open opens the ports. PCI devices come first, as their drivers may want larger buffers than others do. The rest follow one after the
// other: a net_virtio_user may need the socket that a net_vhost before it serves.
func (d *Devices) open(p *plan) error {
	d.ports = make([]*Port, len(p.Ports))
	for i, device := range p.devices {
		if device.pci {
			if err := d.attach(p, i); err != nil {
				return err
			}
		}
	}
	for i, cfg := range p.Ports {
		if d.ports[i] == nil {
			if err := d.attach(p, i); err != nil {
				return err
			}
		}
		if d.pool == nil { // on the NUMA node of the first device
			var err error
			if d.pool, err = newPool(d.eal, p.frames, p.room, d.ports[i].driver.numa()); err != nil {
				return err
			}
		}
		profile, err := d.ports[i].setup(d.pool, d.workers)
		if err != nil {
			return portError(cfg, err)
		}
		d.profiles = append(d.profiles, profile)
	}
	for w := range d.workers {
		d.backends = append(d.backends, newBackend(d.ports, d.pool, w, p.Burst))
	}
	return nil
}

func (d *Devices) attach(p *plan, i int) error {
	port, err := newPort(d.eal, p.Ports[i], p.devices[i])
	if err != nil {
		return portError(p.Ports[i], err)
	}
	d.ports[i] = port
	if mtu := p.Ports[i].MTU; mtu > 0 {
		p.room = max(p.room, min(port.driver.buffer(mtu), maxRoom))
	}
	return nil
}

// Backend is a worker's, by its number from 0. It is for one goroutine at a time, best one that called RegisterThread.
func (d *Devices) Backend(worker int) *Backend { return d.backends[worker] }

// Workers is how many backends there are.
func (d *Devices) Workers() int { return len(d.backends) }

// Port is a port by its place in the configuration.
func (d *Devices) Port(i int) *Port { return d.ports[i] }

// Profile is what a port's device can do, and how it was set up.
func (d *Devices) Profile(port int) *Profile { return &d.profiles[port] }

// Pool is where all frames come from.
func (d *Devices) Pool() *Pool { return d.pool }

// Stop takes back the spares, stops the devices and closes them. No worker may call Exchange any more, and each should have freed
// what it held: then Pool().InUse() is 0. It can be called twice.
func (d *Devices) Stop() error {
	if d.stopped {
		return nil
	}
	d.stopped = true
	return d.eal.do(func() error {
		for _, b := range d.backends {
			b.close()
		}
		var errs []error
		opened := slices.DeleteFunc(slices.Clone(d.ports), func(p *Port) bool { return p == nil })
		for _, p := range opened {
			if err := p.driver.stop(); err != nil {
				errs = append(errs, portError(p.cfg, err))
			}
		}
		for _, p := range opened {
			if err := p.driver.close(); err != nil {
				errs = append(errs, portError(p.cfg, err))
			}
			p.free()
		}
		return errors.Join(errs...)
	})
}

// keepsFrames tells whether a device never gives back the buffers that wait in it: DPDK's driver for XDP sockets.
func (d *Devices) keepsFrames() bool {
	return slices.ContainsFunc(d.ports, func(p *Port) bool {
		e, ok := p.driver.(*ethdev)
		return ok && e.device.is("af_xdp")
	})
}

// Close stops the devices and frees the pool, and closes the EAL if Open started it. Frames that are still in use are an error:
// somebody lost them. It can be called twice.
func (d *Devices) Close() error {
	errs := []error{d.Stop()}
	if d.pool != nil && d.pool.pool != nil {
		errs = append(errs, d.eal.do(func() error {
			lost := d.pool.InUse()
			d.pool.free()
			if lost != 0 && !d.keepsFrames() {
				return fmt.Errorf("dpdk: %d frames were never given back", lost)
			}
			return nil
		}))
	}
	if d.ownEAL {
		errs = append(errs, d.eal.Close())
	}
	return errors.Join(errs...)
}
