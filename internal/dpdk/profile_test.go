//go:build !nodpdk

package dpdk

import (
	"fmt"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// TestTagsOfKernel: what an interface's MTU leaves for tags, and what is said of it.
func TestTagsOfKernel(t *testing.T) {
	for _, c := range []struct{ device, port, tags, service int }{
		{1500, 1500, 1, 0}, {1503, 1500, 1, 0}, {1504, 1500, 2, 1}, {1508, 1500, 2, 2}, {9000, 1500, 2, 2},
	} {
		p := Profile{Driver: "net_af_packet", Interface: "eth0"}
		p.tagsOfKernel(c.device, c.port)
		p.consequences()
		if p.Tags != c.tags || p.ServiceTags != c.service || (len(p.Warnings) == 0) != (c.service == maxTags) {
			t.Errorf("interface MTU %d, port MTU %d: %d tags, %d behind 802.1ad, warnings %q", c.device, c.port, p.Tags, p.ServiceTags, p.Warnings)
		}
	}
}

// TestConsequences: what an operator reads for a device without RSS that knows of one tag.
func TestConsequences(t *testing.T) {
	p := Profile{Driver: "net_x", Workers: 2, Spread: NoSpread, Tags: 1, ServiceTags: 1}
	p.consequences()
	want := []string{
		"net_x has no RSS: all frames come to the first worker, the other 1 have nothing to do for this port",
		"frames of the port's full MTU with more than 1 VLAN tags (1 where the outer one is an 802.1ad tag) are dropped; where there are such: lower the hosts' MTU by 4",
	}
	if !slices.Equal(p.Warnings, want) {
		t.Errorf("warnings %q", p.Warnings)
	}
}

// TestCapabilities: they are named for errors that they would mend, and no others.
func TestCapabilities(t *testing.T) {
	for _, err := range []error{unix.EPERM, unix.EACCES, fmt.Errorf("socket: %w", unix.EPERM)} {
		says(t, fmt.Errorf("%w%s", err, capabilities(err)), "CAP_NET_RAW and CAP_NET_ADMIN are needed")
	}
	for _, err := range []error{unix.EINVAL, unix.ENODEV, unix.ENOMEM} {
		if got := capabilities(err); got != "" {
			t.Errorf("%v: %s", err, got)
		}
	}
}
