//go:build !nodpdk

package dpdk

import (
	"errors"
	"fmt"
	"slices"
)

// Devices are the opened ports, the pool of their frames, and the workers' backends.
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

// Open starts the EAL with the memory that the configuration needs and opens the devices. A process can do it once; Close closes the EAL,
// too. Open makes all possible checks before it starts anything.
func Open(cfg Config) (*Devices, error) {
	p, err := newPlan(cfg)
	if err != nil {
		return nil, err
	}
	return openAll(p)
}

func openAll(p *plan) (*Devices, error) {
	e, err := Start(p.eal())
	if err != nil {
		return nil, asFaults(EALArgs, err)
	}
	return e.openAll(p)
}

// openAll opens devices that close the EAL with them.
func (e *EAL) openAll(p *plan) (*Devices, error) {
	d, err := e.open(p)
	if err != nil {
		return nil, asFaults(MemorySize, errors.Join(err, e.Close()))
	}
	d.ownEAL = true
	return d, nil
}

// Open opens devices on a running EAL, any number of times. It ignores Config's fields about the EAL.
func (e *EAL) Open(cfg Config) (*Devices, error) {
	p, err := newPlan(cfg)
	if err != nil {
		return nil, err
	}
	return e.open(p)
}

func (e *EAL) open(p *plan) (*Devices, error) {
	d := &Devices{eal: e, workers: len(p.Cores), pool: p.pool}
	err := e.Do(func() error { return d.open(p) })
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// open opens the ports. PCI devices come first, since their drivers may need larger buffers than others. The rest follow in order: a
// net_virtio_user may need the socket of an earlier net_vhost.
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
			err := p.checkRaised()
			if err != nil {
				return err
			}
			if d.pool, err = newPool(d.eal, p.frames, p.room, d.ports[i].driver.numa()); err != nil {
				return err
			}
		}
		profile, err := d.ports[i].setup(d.pool, d.workers)
		if err != nil {
			return Faults{{Ports, i, portError(cfg, err)}}
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
		return Faults{{Ports, i, portError(p.Ports[i], err)}}
	}
	d.ports[i] = port
	if k, ok := port.driver.(*kernelInterface); ok {
		k.before = p.before[k.device.iface]
	}
	if mtu := p.Ports[i].MTU; mtu > 0 {
		p.raise(port.driver.buffer(mtu))
	}
	return nil
}

// Backend returns the backend of a worker, numbered from 0. Only one goroutine at a time may use it, preferably one that called
// RegisterThread.
func (d *Devices) Backend(worker int) *Backend { return d.backends[worker] }

// Workers is the number of backends.
func (d *Devices) Workers() int { return len(d.backends) }

// Ports is the number of ports.
func (d *Devices) Ports() int { return len(d.ports) }

// Port returns a port by its index in the configuration.
func (d *Devices) Port(i int) *Port { return d.ports[i] }

// Profile returns the capabilities and the setup of a port's device.
func (d *Devices) Profile(port int) *Profile { return &d.profiles[port] }

// Pool is the pool of all frames.
func (d *Devices) Pool() *Pool { return d.pool }

// Discarded is the number of frames that waited in a port's device when Stop stopped it, and were dropped before any worker received them.
func (d *Devices) Discarded(port int) uint64 { return d.ports[port].driver.stopped() }

// Stop frees the spares, stops the devices and closes them. After that no worker may call Exchange. Each should have freed its frames: then
// Pool().InUse() is 0. It can be called twice.
func (d *Devices) Stop() error {
	if d.stopped {
		return nil
	}
	d.stopped = true
	return d.eal.Do(func() error {
		for _, b := range d.backends {
			b.close()
		}
		var errs []error
		opened := slices.DeleteFunc(slices.Clone(d.ports), func(p *Port) bool { return p == nil })
		for _, p := range opened {
			errs = append(errs, portError(p.cfg, p.driver.stop()))
		}
		for _, p := range opened {
			errs = append(errs, portError(p.cfg, p.driver.close()))
			p.free()
		}
		return errors.Join(errs...)
	})
}

// keepsFrames reports whether a device never returns the buffers that wait in it.
func (d *Devices) keepsFrames() bool {
	return slices.ContainsFunc(d.ports, func(p *Port) bool {
		e, ok := p.driver.(*ethdev)
		return ok && e.known.keeps
	})
}

// Close stops the devices and frees the pool, and closes the EAL if Open started it. Frames that are still in use are an error: a worker
// lost them. It can be called twice.
func (d *Devices) Close() error {
	errs := []error{d.Stop()}
	if d.pool != nil && d.pool.pool != nil {
		errs = append(errs, d.eal.Do(func() error {
			lost := d.pool.InUse()
			d.pool.free()
			if lost != 0 && !d.keepsFrames() {
				return fmt.Errorf("dpdk: %d frames were never freed", lost)
			}
			return nil
		}))
	}
	if d.ownEAL {
		errs = append(errs, d.eal.Close())
	}
	return errors.Join(errs...)
}
