//go:build !nodpdk

package dpdk

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/cnpgate/cnpgate/internal/burst"
)

var (
	pciAddress = regexp.MustCompile(`^(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]$`)
	// interfaceName is the usual form of the kernel's names of interfaces, which devices are often taken for.
	interfaceName = regexp.MustCompile(`^[a-z][a-z0-9]*$`)
	vdevName      = regexp.MustCompile(`^(net|eth)_[a-z]+(_[a-z]+)*[0-9]*([_.-]?[A-Za-z0-9]+)*$`)
)

// device is a parsed device string of a port: the argument of EAL's -a (a PCI address) or --vdev.
type device struct {
	name  string // the PCI address in its long form, or the virtual device's name
	args  string // after the first comma
	pci   bool
	iface string // net_af_packet: the kernel's interface
	traits
}

// devargs returns the argument of rte_dev_probe.
func (d device) devargs() string {
	if d.args == "" {
		return d.name
	}
	return d.name + "," + d.args
}

// is reports whether the device belongs to a virtual driver, by either of its names: net_x or eth_x.
func (d device) is(driver string) bool {
	return !d.pci && (strings.HasPrefix(d.name, "net_"+driver) || strings.HasPrefix(d.name, "eth_"+driver))
}

// recognise looks up the traits of a PCI device's driver before the EAL has loaded it. root is "/" except in tests.
func (d *device) recognise(root string) {
	if d.pci {
		d.traits = drivers[pciDriver(root, d.name)]
	}
}

// resources are those that no other port may use.
func (d device) resources() (list []resource) {
	if d.pci {
		return []resource{{pciResource, d.name}}
	}
	for _, kv := range strings.Split(d.args, ",") {
		k, v, _ := strings.Cut(kv, "=")
		r := resource{d.exclusive[k], v}
		if r.kind == "" || v == "" || r.kind == clientResource && strings.HasPrefix(v, "/dev/") { // vhost-net supports many users
			continue
		}
		if !slices.Contains(list, r) {
			list = append(list, r)
		}
	}
	return list
}

// holds is the number of frames that the device can keep in its own queues, with rx and tx descriptors for each pair.
func (d device) holds(pairs, rx, tx int) int {
	switch {
	case d.iface != "":
		return pairs * burst.MaxSize // the buffers for the next frames
	case d.copies:
		return 0
	}
	return pairs * (rx + tx)
}

// parseDevice parses a port's device string.
func parseDevice(s string) (device, error) {
	name, args, _ := strings.Cut(s, ",")
	switch {
	case pciAddress.MatchString(name):
		if strings.Count(name, ":") == 1 {
			name = "0000:" + name
		}
		return device{name: strings.ToLower(name), args: args, pci: true}, nil
	case !vdevName.MatchString(name):
		iface := "eth0"
		if interfaceName.MatchString(s) {
			iface = s
		}
		return device{}, fmt.Errorf("device %q: expected a PCI address (0000:3b:00.0) or a virtual device with its arguments "+
			"(net_af_packet0,iface=%s)", s, iface)
	}
	d := device{name: name, args: args, traits: drivers[virtualDriver(name)]}
	if d.is("af_packet") {
		return d, d.findInterface()
	}
	return d, nil
}

// Interface is the kernel's interface that a device of a configuration uses; "" if it uses none.
func Interface(device string) string {
	for _, kv := range strings.Split(device, ",")[1:] {
		if name, isInterface := strings.CutPrefix(kv, "iface="); isInterface {
			return name
		}
	}
	return ""
}

// ignored are the arguments of DPDK's own driver for af_packet: they size rings that the gateway's sockets don't have.
var ignored = []string{"blocksz", "framesz", "framecnt", "qpairs", "qdisc_bypass", "fanout_mode"}

// findInterface reads the arguments of net_af_packet.
func (d *device) findInterface() error {
	for _, kv := range strings.Split(d.args, ",") {
		switch k, v, _ := strings.Cut(kv, "="); {
		case k == "iface":
			d.iface = v
		case k != "" && !slices.Contains(ignored, k):
			return fmt.Errorf("device %q: net_af_packet has no argument %q; expected iface=", d.devargs(), k)
		}
	}
	if d.iface == "" {
		return fmt.Errorf("device %q: net_af_packet needs the interface it is to use: %s,iface=eth0", d.devargs(), d.name)
	}
	return nil
}

// hint returns the most frequent cause if a device can't be opened.
func (d device) hint() string {
	switch {
	case d.pci:
		return " (is it bound to vfio-pci, and free? are vfio-pci and vfio_iommu_type1 loaded? scripts/host-setup --bind sees to both)"
	case d.is("tap"):
		return " (CAP_NET_ADMIN and /dev/net/tun are needed)"
	case d.is("virtio_user"):
		return " (does its path= exist, and does somebody serve it?)"
	case d.is("af_xdp"):
		return " (CAP_NET_ADMIN, CAP_BPF and a kernel with XDP sockets are needed, and an interface whose MTU is at most " + strconv.Itoa(mostMTU(xdpRoom)) + ")"
	}
	if err := d.checkDriver(pluginFolder, nil); err != nil {
		return " (" + err.Error() + ")"
	}
	return " (see the driver's page in DPDK's NIC guide for its arguments)"
}
