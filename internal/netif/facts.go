package netif

import "net/netip"

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
