//go:build !nodpdk

package dpdk

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// netif is what the kernel says of one of its interfaces.
type netif struct {
	mtu   int
	flags uint16 // IFF_UP, IFF_RUNNING, IFF_PROMISC ...
}

// readNetif asks the kernel, in the network namespace of the calling thread.
func readNetif(name string) (netif, error) {
	ifr, err := unix.NewIfreq(name)
	if err != nil {
		return netif{}, fmt.Errorf("interface %q: the name is longer than %d characters", name, unix.IFNAMSIZ-1)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return netif{}, fmt.Errorf("interface %s: socket: %w", name, err)
	}
	defer unix.Close(fd)
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFMTU, ifr); err != nil {
		if errors.Is(err, unix.ENODEV) {
			return netif{}, fmt.Errorf("interface %s: there is none of that name in this network namespace (see `ip link`)", name)
		}
		return netif{}, fmt.Errorf("interface %s: reading its MTU: %w", name, err)
	}
	n := netif{mtu: int(ifr.Uint32())}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, ifr); err != nil {
		return netif{}, fmt.Errorf("interface %s: reading its flags: %w", name, err)
	}
	n.flags = ifr.Uint16()
	return n, nil
}

// up is the link as the kernel sees it: switched on, and with a carrier.
func (n netif) up() bool { return n.flags&unix.IFF_UP != 0 && n.flags&unix.IFF_RUNNING != 0 }

// checkInterface refuses an af_packet interface that is missing, down, or whose frames the ring would cut short.
func checkInterface(d device, mtu int) error {
	n, err := readNetif(d.iface)
	switch {
	case err != nil:
		return err
	case n.flags&unix.IFF_UP == 0:
		return fmt.Errorf("interface %s is down: switch it on with `ip link set %s up`", d.iface, d.iface)
	case n.mtu > d.largestMTU():
		return fmt.Errorf("interface %s has MTU %d, but framesz=%d takes whole frames of MTU %d at most: lower the MTU or raise framesz",
			d.iface, n.mtu, d.frame, d.largestMTU())
	case mtu > n.mtu:
		return fmt.Errorf("interface %s has MTU %d, but the port is configured for %d: `ip link set %s mtu %d`",
			d.iface, n.mtu, mtu, d.iface, mtu)
	}
	return nil
}
