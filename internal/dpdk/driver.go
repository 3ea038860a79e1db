//go:build !nodpdk

package dpdk

import (
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// traits are properties of a DPDK driver that the driver doesn't report. The reported ones are in Profile.
type traits struct {
	powerOfTwo bool // it uses only the next smaller power of two of a receive buffer's size
	copies     bool // it copies frames: none stays in the device
	keeps      bool // it never returns the buffers that wait in the device
	refuses    bool // it refuses a frame longer than the MTU and two tags, and all frames after it
	// retried: what it counts as transmit errors are frames that it has no space for. They wait, and each further try would count them again.
	retried bool
	most    int // bytes of the largest buffer that it accepts; 0: any
	// exclusive are the arguments that name a resource that only one port can use.
	exclusive  map[string]resourceKind
	afterStart Capabilities // what it needs once a device has been started
	observed   bool         // its system calls were observed, and package sandbox has them
}

// em is the driver of e1000 and e1000e.
const em = "net_e1000_em"

// xdpRoom is the largest buffer that net_af_xdp accepts. A buffer with its overhead must fit into one of the kernel's pages, of 4096 bytes, and is a
// multiple of roomUnit.
const xdpRoom = 3 * roomUnit

// mostMTU is the highest MTU with which frames fit a buffer.
func mostMTU(room int) int { return room - tagRoom - driverHead }

var drivers = map[string]traits{
	em:              {powerOfTwo: true},
	"mlx5_pci":      {afterStart: netAdmin | netRaw}, // changes the link through the kernel's driver
	"net_null":      {copies: true, observed: true},
	"net_ring":      {observed: true},
	"net_memif":     {afterStart: DACOverride},
	"net_af_packet": {afterStart: netAdmin | netRaw, observed: true, exclusive: map[string]resourceKind{"iface": interfaceResource}}, // opens sockets when an interface comes back
	"net_af_xdp": {keeps: true, most: xdpRoom, retried: true, afterStart: netAdmin | netRaw | bpf,
		exclusive: map[string]resourceKind{"iface": interfaceResource}},
	"net_pcap": {copies: true, retried: true, observed: true, exclusive: map[string]resourceKind{
		"iface": interfaceResource, "rx_iface": interfaceResource, "rx_iface_in": interfaceResource, "tx_iface": interfaceResource}},
	"net_tap": {refuses: true, retried: true, afterStart: netAdmin, observed: true,
		exclusive: map[string]resourceKind{"remote": interfaceResource, "iface": tapResource}},
	"net_vhost": {retried: true, afterStart: DACOverride, observed: true, exclusive: map[string]resourceKind{"iface": serverResource}},
	// It connects again to a socket that belongs to another user.
	"net_virtio_user": {afterStart: netAdmin | DACOverride, observed: true, exclusive: map[string]resourceKind{"path": clientResource}},
}

// Observed reports whether the system calls of a driver were observed, so that a sandbox can be limited to them. A NIC's driver may use others.
func Observed(driver string) bool { return drivers[driver].observed }

// virtualDriver is the driver of a virtual device, by its name: net_tap0, eth_tap0. "" for one without traits.
func virtualDriver(name string) string {
	if rest, ok := strings.CutPrefix(name, "eth_"); ok {
		name = "net_" + rest
	}
	for driver := range drivers {
		if rest, ok := strings.CutPrefix(name, driver); ok && (rest == "" || rest[0] < 'a' || rest[0] > 'z') {
			return driver
		}
	}
	return ""
}

// emDevices are the PCI device IDs of Intel's that the driver takes (DPDK 22.11).
var emDevices = []uint64{
	0x100e, 0x100f, 0x1010, 0x1011, 0x1012, 0x101d, 0x105e, 0x105f, 0x1060, 0x107d, 0x107e, 0x107f,
	0x109a, 0x10a4, 0x10a5, 0x10b9, 0x10bc, 0x10d3, 0x10d5, 0x10d9, 0x10da, 0x10f6, 0x1502, 0x150c,
	0x153a, 0x153b, 0x1559, 0x155a, 0x156f, 0x1570, 0x15a0, 0x15a1, 0x15a2, 0x15a3, 0x15b7, 0x15b8,
	0x15b9, 0x15bb, 0x15bc, 0x15bd, 0x15be, 0x15d6, 0x15d7, 0x15d8, 0x15e3,
}

// pciDriver is DPDK's driver for a PCI device, if it has traits; "" otherwise, also for a missing device. root
// is "/" except in tests.
func pciDriver(root, address string) string {
	id := func(file string) uint64 {
		text, _ := os.ReadFile(filepath.Join(root, "sys/bus/pci/devices", address, file))
		n, _ := strconv.ParseUint(strings.TrimSpace(string(text)), 0, 16)
		return n
	}
	if id("vendor") == 0x8086 && slices.Contains(emDevices, id("device")) {
		return em
	}
	return ""
}

// buffer is how many bytes a buffer must have so that frames of an MTU, with two tags, come in one piece.
func (t traits) buffer(mtu int) int {
	if t.powerOfTwo {
		return 1 << bits.Len(uint(mtu+tagRoom+driverHead-1))
	}
	return bufferFor(mtu)
}

// usable is the number of bytes of a buffer that the device uses.
func (t traits) usable(room int) int {
	if t.powerOfTwo {
		return 1 << (bits.Len(uint(room)) - 1)
	}
	return room / roomUnit * roomUnit
}
