//go:build linux

package netif

import (
	"testing"

	"github.com/vishvananda/netlink"
)

// TestStack: a route by a VLAN on a bridge uses the bridge's ports. It doesn't use the other end of a veth, nor an interface whose parent is in another
// namespace, where indices are others.
func TestStack(t *testing.T) {
	link := func(name string, index, parent, master, namespace int) netlink.LinkAttrs {
		return netlink.LinkAttrs{Name: name, Index: index, ParentIndex: parent, MasterIndex: master, NetNsID: namespace}
	}
	all := []netlink.Link{
		&netlink.Vlan{LinkAttrs: link("br0.5", 9, 8, 0, -1)}, &netlink.Bridge{LinkAttrs: link("br0", 8, 0, 0, -1)}, &netlink.Veth{LinkAttrs: link("eth0", 2, 3, 8, -1)},
		&netlink.Veth{LinkAttrs: link("peer", 3, 2, 0, -1)}, &netlink.Macvlan{LinkAttrs: link("foreign", 4, 2, 0, 0)}, &netlink.Dummy{LinkAttrs: link("eth1", 5, 0, 0, -1)},
	}
	for name, want := range map[string][]string{"eth0": {"eth0", "br0", "br0.5"}, "eth1": {"eth1"}, "peer": {"peer"}, "none": {}} {
		stack := stackOf(all, name)
		got := map[string]bool{}
		for _, n := range stack {
			got[n] = true
		}
		if len(stack) != len(want) {
			t.Errorf("the stack of %s is %v, want %v", name, stack, want)
		}
		for _, n := range want {
			if !got[n] {
				t.Errorf("the stack of %s is %v, want %v", name, stack, want)
			}
		}
	}
}
