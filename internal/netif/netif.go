//go:build linux

// Package netif reads and watches the kernel's network interfaces, in the network namespace of the calling thread. It changes nothing.
package netif

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// State is the kernel's state of an interface.
type State struct {
	Index    int // the kernel's number; an interface that is created again gets another one
	Name     string
	MTU      int  // bytes of an IP packet
	On       bool // switched on (IFF_UP)
	Running  bool // with a carrier (IFF_RUNNING)
	Loopback bool
	Ethernet bool // its frames have Ethernet headers
}

// Up is the link: switched on, and with a carrier.
func (s State) Up() bool { return s.On && s.Running }

// ErrNone is the error that errors wrap if there is no interface of that name.
var ErrNone = unix.ENODEV

// Read reads the state of an interface by its name. The error wraps ErrNone if there is none.
func Read(name string) (State, error) {
	if name == "" || len(name) >= unix.IFNAMSIZ { // the kernel would look for an alternative name
		return State{}, fmt.Errorf("interface %q: expected a name of 1 to %d characters", name, unix.IFNAMSIZ-1)
	}
	s, err := stateOf(netlink.LinkByName(name))
	switch {
	case errors.Is(err, ErrNone):
		return s, fmt.Errorf("interface %s: there is none of that name in this network namespace (see `ip link`): %w", name, err)
	case err != nil:
		return s, fmt.Errorf("interface %s: reading its state: %w", name, err)
	}
	return s, nil
}

// stateOf is the state of an interface that was asked for. The error wraps ErrNone if there is none.
func stateOf(l netlink.Link, err error) (State, error) {
	if missing := (netlink.LinkNotFoundError{}); errors.As(err, &missing) {
		return State{}, ErrNone
	} else if err != nil {
		return State{}, err
	}
	a := l.Attrs()
	return State{
		Index: a.Index, Name: a.Name, MTU: a.MTU, Ethernet: a.EncapType == "ether", On: a.RawFlags&unix.IFF_UP != 0, Running: a.RawFlags&unix.IFF_RUNNING != 0,
		Loopback: a.RawFlags&unix.IFF_LOOPBACK != 0,
	}, nil
}

// MAC is an interface's address, "" if it has none.
func MAC(name string) string {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return ""
	}
	return i.HardwareAddr.String()
}

// sshPort is the port of this machine's SSH server.
const sshPort = 22

// Uses lists what this machine's own network uses an interface for: default routes, and SSH sessions. peers are the clients of SSH sessions that the caller
// knows. The interface is also used if a bridge or bond that it belongs to is, or a VLAN on it.
func Uses(name string, peers []netip.Addr) (uses []string, err error) {
	all, err := netlink.LinkList()
	if err != nil {
		return nil, fmt.Errorf("listing the interfaces: %w", err)
	}
	names := stackOf(all, name)
	routes, err := netlink.RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_TABLE)
	if err != nil {
		return nil, fmt.Errorf("listing the routes: %w", err)
	}
	for i := range routes {
		r := &routes[i]
		if p, ok := prefixOf(r.Dst); r.Type != unix.RTN_UNICAST || ok && p.Bits() > 0 {
			continue
		}
		indices := []int{r.LinkIndex}
		for _, hop := range r.MultiPath {
			indices = append(indices, hop.LinkIndex)
		}
		for _, index := range indices {
			if through := names[index]; through != "" {
				uses = append(uses, "the default route is by "+through)
			}
		}
	}
	for _, peer := range slices.Concat(peers, sshClients()) {
		routes, err := netlink.RouteGet(peer.AsSlice())
		if err != nil {
			continue // there is no way to it, so none by the interface
		}
		for i := range routes {
			if through := names[routes[i].LinkIndex]; through != "" {
				uses = append(uses, fmt.Sprintf("an SSH session from %v is by %s", peer, through))
			}
		}
	}
	slices.Sort(uses)
	return slices.Compact(uses), nil
}

// stackOf are the interface and those above it, by index: the bridge or bond that it belongs to, and VLANs and the like on them.
func stackOf(all []netlink.Link, name string) map[int]string {
	stack := map[int]string{}
	for {
		before := len(stack)
		for _, l := range all {
			above := l.Type() != "veth" && l.Attrs().NetNsID < 0 && stack[l.Attrs().ParentIndex] != "" // the parent of a veth is its other end
			if l.Attrs().Name == name || above {
				stack[l.Attrs().Index] = l.Attrs().Name
			}
			if master := l.Attrs().MasterIndex; stack[l.Attrs().Index] != "" && master != 0 {
				for _, m := range all {
					if m.Attrs().Index == master {
						stack[master] = m.Attrs().Name
					}
				}
			}
		}
		if len(stack) == before {
			return stack
		}
	}
}

// sshClients are the other ends of this machine's SSH sessions. SSH_CONNECTION is not enough: sudo removes it.
func sshClients() (clients []netip.Addr) {
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		sockets, err := netlink.SocketDiagTCP(family)
		if err != nil {
			continue // a kernel without it
		}
		for _, s := range sockets {
			client, ok := netip.AddrFromSlice(s.ID.Destination)
			if ok && s.State == netlink.TCP_ESTABLISHED && s.ID.SourcePort == sshPort && !client.Unmap().IsLoopback() {
				clients = append(clients, client.Unmap())
			}
		}
	}
	return clients
}

// prefixOf is an address with the length of its network's prefix.
func prefixOf(n *net.IPNet) (netip.Prefix, bool) {
	if n == nil {
		return netip.Prefix{}, false
	}
	a, ok := netip.AddrFromSlice(n.IP)
	ones, _ := n.Mask.Size()
	return netip.PrefixFrom(a.Unmap(), ones), ok
}
