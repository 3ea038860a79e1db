//go:build linux

package netif

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Describe reads the facts of an Ethernet interface. What the driver doesn't tell is left out.
func Describe(name string) (Facts, error) {
	s, err := Read(name)
	if err != nil {
		return Facts{}, err
	}
	if !s.Ethernet || s.Loopback {
		return Facts{}, fmt.Errorf("interface %s isn't an Ethernet interface; expected one", name)
	}
	link, err := netlink.LinkByIndex(s.Index)
	if err != nil {
		return Facts{}, fmt.Errorf("interface %s: %w", name, err)
	}
	f := Facts{Name: name, MTU: s.MTU, Up: s.Up(), NUMA: -1}
	if master := link.Attrs().MasterIndex; master != 0 {
		if m, err := netlink.LinkByIndex(master); err == nil {
			f.Master = m.Attrs().Name
		}
	}
	addresses, err := netlink.AddrList(link, netlink.FAMILY_ALL)
	if err != nil {
		return Facts{}, fmt.Errorf("interface %s: reading its addresses: %w", name, err)
	}
	for _, a := range addresses {
		if p, ok := prefixOf(a.IPNet); ok {
			f.Addresses = append(f.Addresses, p)
		}
	}
	return f, f.askDriver()
}

// askDriver adds what the driver tells.
func (f *Facts) askDriver() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("interface %s: socket: %w", f.Name, err)
	}
	defer unix.Close(fd)
	if d, err := unix.IoctlGetEthtoolDrvinfo(fd, f.Name); err == nil {
		f.Driver = unix.ByteSliceToString(d.Driver[:])
		f.setPCI("/", unix.ByteSliceToString(d.Bus_info[:]))
	}
	f.Rate = linkRate(fd, f.Name)
	for _, o := range []struct {
		get  uint32
		name string
	}{{unix.ETHTOOL_GGRO, "GRO"}, {unix.ETHTOOL_GGSO, "GSO"}, {unix.ETHTOOL_GTSO, "TSO"}} {
		if v := struct{ cmd, data uint32 }{cmd: o.get}; ethtool(fd, f.Name, unsafe.Pointer(&v)) == nil && v.data != 0 {
			f.Offloads = append(f.Offloads, o.name)
		}
	}
	if v := struct{ cmd, data uint32 }{cmd: unix.ETHTOOL_GFLAGS}; ethtool(fd, f.Name, unsafe.Pointer(&v)) == nil && v.data&flagLRO != 0 {
		f.Offloads = append(f.Offloads, "LRO")
	}
	return nil
}

// setPCI uses the bus information of a driver, if it is the address of a PCI device. root is the file system's root, "/" but in tests.
func (f *Facts) setPCI(root, bus string) {
	dir := filepath.Join(root, "sys/bus/pci/devices", bus)
	if strings.Count(bus, ":") != 2 {
		return
	}
	if _, err := os.Stat(dir); err != nil {
		return
	}
	f.PCI = bus
	if text, err := os.ReadFile(filepath.Join(dir, "numa_node")); err == nil {
		if node, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			f.NUMA = node
		}
	}
}

// flagLRO is the kernel's ETH_FLAG_LRO.
const flagLRO = 1 << 15

// linkSettings is the kernel's struct ethtool_cmd.
type linkSettings struct {
	cmd, supported, advertising uint32
	speed                       uint16
	_                           [14]byte
	speedHigh                   uint16
	_                           [2]byte
	_                           [3]uint32
}

// linkRate is the rate of a link in bit/s, 0 if the driver doesn't know it.
func linkRate(fd int, name string) uint64 {
	s := linkSettings{cmd: unix.ETHTOOL_GSET}
	if ethtool(fd, name, unsafe.Pointer(&s)) != nil {
		return 0
	}
	mbps := uint32(s.speedHigh)<<16 | uint32(s.speed)
	if mbps == ^uint32(0) || mbps == 0xffff {
		return 0
	}
	return uint64(mbps) * 1e6
}

// ethtool makes a request of ethtool's. data is a struct of the kernel's.
func ethtool(fd int, name string, data unsafe.Pointer) error {
	request := struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte // the kernel's union is longer than a pointer
	}{data: data}
	copy(request.name[:unix.IFNAMSIZ-1], name)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request)))
	runtime.KeepAlive(data)
	if errno != 0 {
		return errno
	}
	return nil
}

// LastCore is the highest core that this process may use, of a NUMA node if it has one (-1: any node).
func LastCore(node int) (int, error) {
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		return 0, fmt.Errorf("reading the process's cores: %w", err)
	}
	var all, near []int
	for core := range len(allowed) * 64 {
		if !allowed.IsSet(core) {
			continue
		}
		all = append(all, core)
		if _, err := os.Stat(fmt.Sprintf("/sys/devices/system/node/node%d/cpu%d", node, core)); err == nil {
			near = append(near, core)
		}
	}
	if len(near) > 0 {
		all = near
	}
	return slices.Max(all), nil
}
