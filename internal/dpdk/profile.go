//go:build !nodpdk

package dpdk

import (
	"fmt"
	"strings"
)

// Profile has the capabilities of a device that matter to the gateway, read once when it is opened, and its setup. Each relevant difference
// between devices is a field.
type Profile struct {
	Driver      string   `json:"driver"`              // DPDK's name for it: net_af_packet, net_virtio, mlx5_pci
	Address     string   `json:"mac,omitempty"`       // the device's MAC address
	Interface   string   `json:"interface,omitempty"` // the kernel's, behind the device
	MTU         int      `json:"device_mtu"`          // bytes of the IP packet that the device accepts; tags in addition if it supports them
	Buffer      int      `json:"buffer_bytes"`        // of each frame; one that is longer would need several
	Longest     int      `json:"longest_frame_bytes"` // of frames the device sends, without FCS; 0: no limit known
	Workers     int      `json:"workers"`             // each has a pair of queues
	Spread      Spread   `json:"spread"`              // how frames reach the workers
	Tags        int      `json:"vlan_tags"`           // VLAN tags that a frame of the port's full MTU may have, of 2
	ServiceTags int      `json:"service_vlan_tags"`   // the same, where the outer tag is an 802.1ad tag
	LinkControl bool     `json:"link_control"`        // the link can be taken down
	Warnings    []string `json:"warnings,omitempty"`  // consequences that an operator should know
}

// Spread is how a device spreads frames over several workers' queues.
type Spread string

// The ways.
const (
	OneWorker    Spread = "one-worker"    // there is only one
	NoSpread     Spread = "none"          // all frames come to the first worker
	SymmetricRSS Spread = "symmetric-rss" // both directions of a flow go to the same worker
	KernelHash   Spread = "kernel-hash"   // the same, by the kernel (PACKET_FANOUT)
)

// tagsOfKernel is the number of tags that the kernel sends and receives on an interface with this MTU, in frames of the port's MTU. A frame
// may exceed the interface's MTU only by a first tag, and only if that is an 802.1Q tag.
func (p *Profile) tagsOfKernel(interfaceMTU, portMTU int) {
	room := interfaceMTU - portMTU
	p.Tags, p.ServiceTags = min((room+tagSize)/tagSize, maxTags), min(room/tagSize, maxTags)
}

// consequences sets the derived fields of the profile.
func (p *Profile) consequences() {
	warn := func(format string, args ...any) { p.Warnings = append(p.Warnings, fmt.Sprintf(format, args...)) }
	if p.Spread == NoSpread {
		warn("%s has no RSS: all frames come to the first worker, the other %d have nothing to do for this port", p.Driver, p.Workers-1)
	}
	if p.Tags == maxTags && p.ServiceTags == maxTags {
		return
	}
	remedy := fmt.Sprintf("lower the hosts' MTU by %d", (maxTags-p.Tags)*tagSize)
	if p.Interface != "" && p.ServiceTags != p.Tags {
		remedy = fmt.Sprintf("raise the interface's MTU by %d above the port's (`ip link set %s mtu ...`), or lower the hosts' by as much", tagRoom, p.Interface)
	}
	warn("frames of the port's full MTU with more than %d VLAN tags (%d where the outer one is an 802.1ad tag) are dropped; where there are such: %s",
		p.Tags, p.ServiceTags, remedy)
}

// String returns the profile in one line.
func (p *Profile) String() string {
	text := []string{p.Driver}
	if p.Interface != "" {
		text = append(text, "interface "+p.Interface)
	}
	if p.Address != "" {
		text = append(text, "MAC "+p.Address)
	}
	text = append(text, fmt.Sprintf("device MTU %d", p.MTU), fmt.Sprintf("buffers of %d bytes", p.Buffer),
		fmt.Sprintf("workers: %d, spread %s", p.Workers, p.Spread))
	if p.LinkControl {
		text = append(text, "takes its link down with the peer's")
	} else {
		text = append(text, "can't take its link down")
	}
	return strings.Join(text, ", ")
}
