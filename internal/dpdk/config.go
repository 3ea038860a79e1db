//go:build !nodpdk

package dpdk

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/cnpgate/cnpgate/internal/burst"
)

// Config says which devices are opened, and for whom.
type Config struct {
	Hugepages bool // see EALConfig
	InMemory  bool
	EALArgs   []string
	MainCore  int // of EAL's own thread; negative: any that no worker has

	Cores []int // one worker each: the core it will run on, or negative for any
	Burst int   // frames a port and direction in one Exchange, at most burst.MaxSize; 0 means that
	Ports []PortConfig

	// Frames is how many frames all workers together may keep in their queues. What devices, bursts, spares and caches hold
	// comes on top and is worked out here.
	Frames int
	// DataRoom is how many octets of a frame lie in one piece at least, without FCS; 0 means what the largest MTU asks for.
	DataRoom int
	// LeastRoom bounds that from below; 0 means 2048 octets, which every device takes.
	LeastRoom int
}

// PortConfig names one port.
type PortConfig struct {
	Name   string // the operator's, for errors
	Device string // what EAL's -a or --vdev takes: "0000:3b:00.0", "net_af_packet0,iface=eth0"
	MTU    int    // octets of the IP packet; 0 means 1500, or what the interface has
}

// Descriptors of a device's queue; adjusted to what the device takes.
const (
	rxDescriptors = 1024
	txDescriptors = 1024
)

const (
	defaultMTU = 1500
	minRoom    = 2048
	// frameHead is an Ethernet header with two VLAN tags.
	frameHead = 14 + 2*4
)

// plan is a configuration that was found sound, and what follows from it.
type plan struct {
	Config
	devices []device
	frames  int // of the whole pool
	room    int // octets of data a frame
}

// newPlan checks what can be told without opening anything.
func newPlan(cfg Config) (*plan, error) {
	p := &plan{Config: cfg, frames: cfg.Frames, room: max(cfg.DataRoom, cmp.Or(cfg.LeastRoom, minRoom))}
	if p.Burst == 0 {
		p.Burst = burst.MaxSize
	}
	switch {
	case len(p.Cores) == 0 || len(p.Ports) == 0:
		return nil, fmt.Errorf("dpdk: %d workers and %d ports were asked for, expected at least one of each", len(p.Cores), len(p.Ports))
	case p.Burst < 1 || p.Burst > burst.MaxSize:
		return nil, fmt.Errorf("dpdk: burst is %d, expected 1 to %d", p.Burst, burst.MaxSize)
	case p.Frames < 0:
		return nil, fmt.Errorf("dpdk: %d frames were asked for", p.Frames)
	}
	for i, core := range p.Cores {
		if core < 0 {
			continue
		}
		if err := CheckCore(core); err != nil {
			return nil, err
		}
		if slices.Contains(p.Cores[:i], core) {
			return nil, fmt.Errorf("dpdk: core %d has two workers: a polling worker needs a core of its own", core)
		}
	}
	if err := p.planPorts(); err != nil {
		return nil, err
	}
	if p.room > maxRoom {
		return nil, fmt.Errorf("dpdk: frames of %d octets were asked for, expected at most %d", p.room, maxRoom)
	}
	p.frames += len(p.Cores) * (p.Burst*len(p.Ports) + Spares + poolCache*3/2)
	return p, nil
}

// planPorts takes the device strings apart and looks at what they name.
func (p *plan) planPorts() error {
	owner := map[string]string{} // device or interface -> port
	for _, port := range p.Ports {
		d, err := parseDevice(port.Device, len(p.Cores))
		if err != nil {
			return portError(port, err)
		}
		for _, what := range []string{d.name, d.iface} {
			if other, ok := owner[what]; ok && what != "" {
				return portError(port, fmt.Errorf("port %s uses %s already: give each port its own device name and interface", other, what))
			}
			owner[what] = port.Name
		}
		switch {
		case d.iface != "":
			err = checkInterface(d, port.MTU)
		case d.pci:
			err = checkPCI("/", d.name)
		}
		if err != nil {
			return portError(port, err)
		}
		p.devices = append(p.devices, d)
		p.frames += d.holds(len(p.Cores), rxDescriptors, txDescriptors)
		p.room = max(p.room, d.room(), port.MTU+frameHead)
	}
	return nil
}

// memory is how many octets the EAL needs.
func (p *plan) memory() int {
	return ealMemory + PoolMemory(p.frames, p.room) + len(p.Ports)*len(p.Cores)*pairMemory
}

func (p *plan) eal() EALConfig {
	cfg := EALConfig{Hugepages: p.Hugepages, InMemory: p.InMemory, Memory: p.memory(), MainCore: p.MainCore, Cores: p.Cores, Args: p.EALArgs}
	for _, d := range p.devices {
		cfg.PCI = cfg.PCI || d.pci
	}
	return cfg
}

func portError(port PortConfig, err error) error {
	return fmt.Errorf("dpdk: port %s (device %q): %w", port.Name, port.Device, err)
}
