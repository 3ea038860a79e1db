//go:build !nodpdk

package dpdk

import (
	"fmt"
	"strings"
)

// Profile is what a device can do of what the gateway needs, asked once when it is opened, and how it was set up. Every difference
// between devices that matters here is a field.
type Profile struct {
	Driver      string   `json:"driver"`              // DPDK's name for it: net_af_packet, net_virtio, mlx5_pci
	Address     string   `json:"mac,omitempty"`       // the device's MAC address
	Interface   string   `json:"interface,omitempty"` // the kernel's, behind the device
	MTU         int      `json:"device_mtu"`          // bytes of the IP packet that the device takes; tags on top where it knows of them
	Buffer      int      `json:"buffer_bytes"`        // of each frame; one that is longer would need several
	Longest     int      `json:"longest_frame_bytes"` // of frames the device sends, without FCS; 0: no limit known
	Workers     int      `json:"workers"`             // each has a pair of queues
	Spread      Spread   `json:"spread"`              // how frames come to the workers
	LinkControl bool     `json:"link_control"`        // the link can be taken down
	Warnings    []string `json:"warnings,omitempty"`  // what follows that an operator should know
}

// Spread is how a device spreads frames over several workers' queues.
type Spread string

// The ways.
const (
	OneWorker    Spread = "one-worker"    // there is only one
	NoSpread     Spread = "none"          // all frames come to the first worker
	SymmetricRSS Spread = "symmetric-rss" // both directions of a flow come to the same worker
	KernelHash   Spread = "kernel-hash"   // as well, by the kernel (PACKET_FANOUT)
)

// tagRoom is what two VLAN tags add to a frame.
const tagRoom = 2 * 4

// consequences fills in what follows from the profile. tags is how many bytes of VLAN tags a frame of the port's MTU may have.
func (p *Profile) consequences(tags int) {
	warn := func(format string, args ...any) { p.Warnings = append(p.Warnings, fmt.Sprintf(format, args...)) }
	if p.Spread == NoSpread {
		warn("%s has no RSS: all frames come to the first worker, the other %d have nothing to do for this port", p.Driver, p.Workers-1)
	}
	if tags < tagRoom {
		warn("%s takes frames of the port's full MTU with %d VLAN tags at most, and drops those with more: lower the hosts' MTU by %d where frames have two tags",
			p.Driver, tags/4, tagRoom-tags)
	}
}

// String is the profile in one line.
func (p *Profile) String() string {
	text := []string{p.Driver}
	if p.Interface != "" {
		text = append(text, "interface "+p.Interface)
	}
	if p.Address != "" {
		text = append(text, "MAC "+p.Address)
	}
	text = append(text, fmt.Sprintf("device MTU %d", p.MTU), fmt.Sprintf("buffers of %d bytes", p.Buffer),
		fmt.Sprintf("%d workers, spread %s", p.Workers, p.Spread))
	if p.LinkControl {
		text = append(text, "takes its link down with the peer's")
	} else {
		text = append(text, "can't take its link down")
	}
	return strings.Join(text, ", ")
}
