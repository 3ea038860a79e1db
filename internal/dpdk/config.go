//go:build !nodpdk

package dpdk

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/netif"
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
	// DataRoom is how many bytes a buffer has at least; 0 means what the largest MTU asks for.
	DataRoom int
	// LeastRoom bounds that from below; 0 means 2048 bytes, which every device takes.
	LeastRoom int
	// OtherMemory is how many bytes the process needs besides the devices and their frames, for the check of what is available.
	OtherMemory int
}

// PortConfig names one port.
type PortConfig struct {
	Name   string // the operator's, for errors
	Device string // what EAL's -a or --vdev takes: "0000:3b:00.0", "net_af_packet0,iface=eth0"
	MTU    int    // bytes of the IP packet; 0 means the device's own
}

// Descriptors of a device's queue; adjusted to what the device takes.
const (
	rxDescriptors = 1024
	txDescriptors = 1024
)

const (
	minRoom = 2048
	// frameHead is an Ethernet header with two VLAN tags.
	frameHead = 14 + 2*4
	// driverHead is the most that a driver wants in a buffer on top of the MTU it is set to: net_virtio counts an Ethernet header, a tag
	// and its own header of 12 bytes; the others two tags, or an FCS.
	driverHead = 14 + 4 + 12
	// roomUnit is what some NICs (ixgbe) count a buffer's size in: the rest of it they leave unused, and put long frames into several.
	roomUnit = 1024
)

// bufferFor is how many bytes a buffer must have so that every device takes frames of an MTU with two tags in one piece.
func bufferFor(mtu int) int { return (mtu + tagRoom + driverHead + roomUnit - 1) / roomUnit * roomUnit }

// plan is a valid configuration, and what follows from it.
type plan struct {
	Config
	devices []device
	frames  int // of the whole pool
	room    int // bytes of data a frame
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
		return nil, fmt.Errorf("dpdk: frames of %d bytes were asked for, expected at most %d", p.room, maxRoom)
	}
	p.addWorkers()
	return p, nil
}

// Memory is how many bytes the EAL needs for a configuration: of hugepages, where those are used. It looks at nothing but the configuration,
// so a kernel interface with a larger MTU than its port's needs more.
func Memory(cfg Config) (int, error) {
	p := &plan{Config: cfg, frames: cfg.Frames, room: max(cfg.DataRoom, cmp.Or(cfg.LeastRoom, minRoom))}
	if p.Burst == 0 {
		p.Burst = burst.MaxSize
	}
	for _, port := range cfg.Ports {
		d, err := parseDevice(port.Device)
		if err != nil {
			return 0, portError(port, err)
		}
		p.add(d, port.MTU)
	}
	p.addWorkers()
	return p.memory(), nil
}

// add counts what a device needs for frames of an MTU.
func (p *plan) add(d device, mtu int) {
	p.devices = append(p.devices, d)
	p.frames += d.holds(len(p.Cores), rxDescriptors, txDescriptors)
	if mtu > 0 {
		p.room = max(p.room, bufferFor(mtu))
	}
}

// addWorkers counts what workers hold besides their queues.
func (p *plan) addWorkers() {
	p.frames += len(p.Cores) * (p.Burst*len(p.Ports) + Spares + poolCache*3/2)
}

// planPorts takes the device strings apart and looks at what they name.
func (p *plan) planPorts() error {
	owner := map[string]string{} // device or interface -> port
	for _, port := range p.Ports {
		d, err := parseDevice(port.Device)
		if err != nil {
			return portError(port, err)
		}
		for _, what := range []string{d.name, d.iface} {
			if other, ok := owner[what]; ok && what != "" {
				return portError(port, fmt.Errorf("port %s uses %s already: give each port its own device name and interface", other, what))
			}
			owner[what] = port.Name
		}
		mtu := port.MTU
		switch {
		case d.iface != "":
			var n netif.State
			n, err = checkInterface(d, port.MTU)
			mtu = n.MTU // whatever the host's other end sends, it is not above that
		case d.pci:
			err = checkPCI("/", d.name)
		}
		if err != nil {
			return portError(port, err)
		}
		p.add(d, mtu)
	}
	return nil
}

// memory is how many octets the EAL needs.
func (p *plan) memory() int {
	return ealMemory + PoolMemory(p.frames, p.room) + len(p.Ports)*len(p.Cores)*pairMemory
}

func (p *plan) eal() EALConfig {
	cfg := EALConfig{Hugepages: p.Hugepages, InMemory: p.InMemory, Memory: p.memory(), OtherMemory: p.OtherMemory, MainCore: p.MainCore, Cores: p.Cores, Args: p.EALArgs}
	for _, d := range p.devices {
		cfg.PCI = cfg.PCI || d.pci
	}
	return cfg
}

func portError(port PortConfig, err error) error {
	return fmt.Errorf("dpdk: port %s (device %q): %w", port.Name, port.Device, err)
}

// checkInterface refuses an interface that is missing, down, or that can't carry the port's MTU; otherwise it says what the kernel knows.
func checkInterface(d device, mtu int) (netif.State, error) {
	n, err := netif.Read(d.iface)
	switch {
	case err != nil:
		return n, err
	case n.Loopback:
		return n, fmt.Errorf("interface %s is the loopback interface: nothing is behind it", d.iface)
	case !n.Ethernet:
		return n, fmt.Errorf("interface %s carries no Ethernet frames (a tunnel, or a tun device?): expected one that does", d.iface)
	case !n.On:
		return n, fmt.Errorf("interface %s is down: switch it on with `ip link set %s up`", d.iface, d.iface)
	case bufferFor(n.MTU) > maxRoom:
		return n, fmt.Errorf("interface %s has MTU %d, but buffers have %d bytes at most: `ip link set %s mtu 9000`", d.iface, n.MTU, maxRoom, d.iface)
	case mtu > n.MTU:
		return n, fmt.Errorf("interface %s has MTU %d, but the port is configured for %d: `ip link set %s mtu %d`",
			d.iface, n.MTU, mtu, d.iface, mtu)
	}
	return n, nil
}
