package netif

import (
	"fmt"
	"net/netip"
)

// Captured bounds the bytes of a frame that a Listener returns: the headers of any tunnel, or a message of RDMA-CM, fit.
const Captured = 1024

// Facts are properties of an interface that matter to who forwards by it.
type Facts struct {
	Name      string
	MTU       int    // bytes of an IP packet
	Up        bool   // switched on, and with a carrier
	Rate      uint64 // bit/s of the link; 0: not known
	Driver    string // of the kernel; "" if not known
	PCI       string // address of the PCI device; "" for a virtual interface
	NUMA      int    // node of the PCI device; -1: not known
	Offloads  []string
	Addresses []netip.Prefix
	Master    string // bridge or bond that the interface belongs to; "" for none
}

// Concerns are what harms a gateway that forwards by the interface, or receives by it only, and what to do. The host forwards and answers, too.
func (f *Facts) Concerns(receivesOnly bool) (all []string) {
	if f.Master != "" && !receivesOnly {
		all = append(all, fmt.Sprintf("%s belongs to %s, which forwards too, so that each frame would cross twice: `ip link set %s nomaster`", f.Name, f.Master, f.Name))
	}
	for _, a := range f.Addresses {
		if !a.Addr().IsLinkLocalUnicast() {
			all = append(all, fmt.Sprintf("%s has the address %v: this host answers for it, too; `ip addr flush dev %s` removes it", f.Name, a, f.Name))
		}
	}
	return all
}
