//go:build !nodpdk

package dpdk

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/netif"
)

// Config has the devices to open, and their workers.
type Config struct {
	Hugepages bool // see EALConfig
	InMemory  bool
	EALArgs   []string
	Log       func(LogLevel, string)
	MainCore  int // core of EAL's own thread; negative: any that no worker has

	Cores []int // one worker each: the core it will run on, or negative for any
	Burst int   // frames a port and direction in one Exchange, at most burst.MaxSize; 0 means that
	Ports []PortConfig

	// Frames is the number of frames that all workers together may keep in their queues. This package adds the frames of devices, bursts,
	// spares and caches.
	Frames int
	// DataRoom is the minimum number of bytes of a buffer; 0 means the largest MTU's.
	DataRoom int
	// LeastRoom is the minimum of DataRoom; 0 means 2048 bytes, which every device accepts.
	LeastRoom int
	// OtherMemory is the number of bytes that the process needs besides the devices and their frames, for the check of the available
	// memory.
	OtherMemory int
}

// PortConfig describes one port.
type PortConfig struct {
	Name   string // the operator's, for errors
	Device string // argument of EAL's -a or --vdev ("0000:3b:00.0", "net_tap0,iface=tap7"), or "net_af_packet0,iface=eth0" for packet sockets
	MTU    int    // bytes of the IP packet; 0 means the device's own
}

// Descriptors of a device's queue; adjusted to the device's limits.
const (
	rxDescriptors = 1024
	txDescriptors = 1024
)

const (
	minRoom = 2048
	// frameHead is an Ethernet header with two VLAN tags.
	frameHead = 14 + 2*4
)

// plan is a valid configuration, with derived values.
type plan struct {
	Config
	devices []device
	frames  int // of the whole pool
	room    int // bytes of data a frame
	raised  bool

	onlyLooks bool // nothing is opened, not even for a check
	waits     bool // another gateway uses the devices, and will end

	pool   *Pool                      // made before; nil: none
	before map[string]*offeredSockets // by interface
}

// startPlan is a plan without ports.
func startPlan(cfg Config) *plan {
	p := &plan{Config: cfg, frames: cfg.Frames, room: max(cfg.DataRoom, cmp.Or(cfg.LeastRoom, minRoom))}
	p.Burst = cmp.Or(p.Burst, burst.MaxSize)
	return p
}

// newPlan makes the checks that are possible without opening a device.
func newPlan(cfg Config) (*plan, error) {
	p := startPlan(cfg)
	if faults := p.examine(); len(faults) > 0 {
		return nil, faults
	}
	return p, nil
}

// examine looks for faults, and adds up what the ports and workers need.
func (p *plan) examine() (faults Faults) {
	switch {
	case len(p.Cores) == 0 || len(p.Ports) == 0:
		faults.add(Workers, 0, fmt.Errorf("dpdk: %d workers and %d ports were asked for, expected at least one of each", len(p.Cores), len(p.Ports)))
	case p.Burst < 1 || p.Burst > burst.MaxSize:
		faults.add(Workers, 0, fmt.Errorf("dpdk: burst is %d, expected 1 to %d", p.Burst, burst.MaxSize))
	case p.Frames < 0:
		faults.add(Workers, 0, fmt.Errorf("dpdk: %d frames were asked for", p.Frames))
	}
	for i, core := range p.Cores {
		if core < 0 {
			continue
		}
		faults.add(Workers, i, CheckCore(core))
		if slices.Contains(p.Cores[:i], core) {
			faults.add(Workers, i, fmt.Errorf("dpdk: core %d has two workers: a polling worker needs a core of its own", core))
		}
	}
	p.planPorts(&faults)
	if p.room > maxRoom {
		faults.add(Workers, 0, fmt.Errorf("dpdk: frames of %d bytes are configured, expected at most %d", p.room, maxRoom))
	}
	p.addWorkers()
	return faults
}

// Memory is the number of bytes that the EAL needs for a configuration, of hugepages if those are used. It considers a port's device if
// that is on this machine: a kernel interface may have a larger MTU than its port, and some drivers need larger buffers than others.
func Memory(cfg Config) (int, error) { return memoryOf("/", cfg) }

func memoryOf(root string, cfg Config) (int, error) {
	p := startPlan(cfg)
	for _, port := range cfg.Ports {
		d, err := parseDevice(port.Device)
		if err != nil {
			return 0, portError(port, err)
		}
		mtu := port.MTU
		if n, err := netif.Read(d.iface); d.iface != "" && err == nil {
			mtu = max(mtu, n.MTU)
		}
		d.recognise(root)
		p.add(d, mtu)
	}
	p.addWorkers()
	return p.memory(), nil
}

// add adds a device's needs for frames of this MTU; 0 is the device's own MTU, which isn't known yet.
func (p *plan) add(d device, mtu int) {
	p.devices = append(p.devices, d)
	p.frames += d.holds(len(p.Cores), rxDescriptors, txDescriptors)
	if mtu > 0 {
		p.room = max(p.room, d.buffer(mtu))
	}
}

// raise makes buffers larger if a device turns out to need it after the EAL got its memory.
func (p *plan) raise(buffer int) {
	if room := min(buffer, maxRoom); room > p.room {
		p.room, p.raised = room, true
	}
}

// checkRaised compares what larger buffers need with the hugepages that are free.
func (p *plan) checkRaised() error {
	if !p.raised || !p.Hugepages {
		return nil
	}
	if err := checkHugepages("/", p.memory(), true); err != nil {
		return fmt.Errorf("a device wants buffers of %d bytes: %w", p.room, err)
	}
	return nil
}

// addWorkers counts what workers hold besides their queues.
func (p *plan) addWorkers() {
	p.frames += len(p.Cores) * (p.Burst*len(p.Ports) + Spares + poolCache*3/2)
}

// planPorts takes the device strings apart and looks at what they name.
func (p *plan) planPorts(faults *Faults) {
	owner := map[string]string{} // device or resource -> port
	for i, port := range p.Ports {
		d, mtu, err := p.planPort(owner, port)
		faults.add(Ports, i, portError(port, err))
		p.add(d, mtu)
	}
	for i, d := range p.devices {
		if d.most > 0 && p.room > d.most {
			faults.add(Ports, i, portError(p.Ports[i], fmt.Errorf("its buffers have at most %d bytes, and a port needs %d: set an mtu of at most %d for every port and interface",
				d.most, p.room, mostMTU(d.most))))
		}
	}
}

// planPort looks at a port's device; mtu is the MTU for which it needs buffers.
func (p *plan) planPort(owner map[string]string, port PortConfig) (d device, mtu int, err error) {
	if d, err = parseDevice(port.Device); err != nil {
		return d, 0, err
	}
	if err := claim(owner, port, d); err != nil {
		return d, 0, err
	}
	mtu = port.MTU
	if d.iface != "" {
		n, err := checkInterface(d, port.MTU)
		if err != nil {
			return d, 0, err
		}
		mtu = n.MTU // whatever the host's other end sends, it is not above that
	}
	if err := checkFree(d); err != nil && !p.waits {
		return d, mtu, err
	}
	if d.pci {
		if err := checkPCI("/", d.name, p.onlyLooks); err != nil {
			return d, mtu, err
		}
	}
	d.recognise("/")
	return d, mtu, nil
}

// claim refuses a device that has a port's name or uses what a port before it uses, whatever either calls it.
func claim(owner map[string]string, port PortConfig, d device) error {
	names := map[string]string{d.name: d.name} // what it is called here -> to be looked up as
	for _, r := range d.resources() {
		key, err := r.key()
		if err != nil {
			return err
		}
		names[r.String()] = key
	}
	for name, key := range names {
		if other, ok := owner[key]; ok {
			return fmt.Errorf("port %s uses %s already: give each port its own device name and interface", other, name)
		}
	}
	for _, key := range names {
		owner[key] = port.Name
	}
	return nil
}

// memory is how many octets the EAL needs.
func (p *plan) memory() int {
	return ealMemory + PoolMemory(p.frames, p.room) + len(p.Ports)*len(p.Cores)*pairMemory
}

func (p *plan) eal() EALConfig {
	cfg := EALConfig{Hugepages: p.Hugepages, InMemory: p.InMemory, Memory: p.memory(), OtherMemory: p.OtherMemory, MainCore: p.MainCore, Cores: p.Cores, Args: p.EALArgs, Log: p.Log}
	for _, d := range p.devices {
		cfg.PCI = cfg.PCI || d.pci
	}
	return cfg
}

// portError is a port's error, nil for nil.
func portError(port PortConfig, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("dpdk: port %s (device %q): %w", port.Name, port.Device, err)
}

// checkInterface refuses an interface that is missing, down, or that can't carry the port's MTU; otherwise it says what the kernel knows.
func checkInterface(d device, mtu int) (netif.State, error) {
	n, err := netif.Read(d.iface)
	if err != nil {
		return n, err
	}
	if err := unusable(n); err != nil {
		return n, err
	}
	if bufferFor(n.MTU) > maxRoom {
		return n, fmt.Errorf("interface %s has MTU %d, but buffers have %d bytes at most: `ip link set %s mtu 9000`", d.iface, n.MTU, maxRoom, d.iface)
	}
	return n, tooSmall(n, mtu)
}
