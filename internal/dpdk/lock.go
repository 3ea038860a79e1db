//go:build !nodpdk

package dpdk

import (
	"errors"
	"fmt"
	"net"

	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/internal/netif"
)

// lock keeps a second gateway from a device that has one. It is a Unix socket of an abstract name, which belongs to a network namespace as
// interfaces do, ends with its process however that ends, and tells who holds it.
type lock struct{ listener *net.UnixListener }

// lockInterface locks a kernel interface, whatever it is called later.
func lockInterface(name string) (*lock, error) {
	n, err := netif.Read(name)
	if err != nil {
		return nil, err
	}
	return takeLock(fmt.Sprintf("interface/%d", n.Index), "interface "+name)
}

// lockPCI locks a PCI device.
func lockPCI(address string) (*lock, error) { return takeLock("pci/"+address, "PCI device "+address) }

func takeLock(name, what string) (*lock, error) {
	address := &net.UnixAddr{Name: "@cnpgate/" + name, Net: "unix"}
	l, err := net.ListenUnix("unix", address)
	if err == nil {
		return &lock{l}, nil
	}
	if !errors.Is(err, unix.EADDRINUSE) {
		return nil, fmt.Errorf("%s can't be locked: %w", what, err)
	}
	if pid := holder(address); pid > 0 {
		return nil, fmt.Errorf("%s is in use by the gateway with process ID %d: stop that one first, or configure another device", what, pid)
	}
	return nil, fmt.Errorf("%s is in use by another gateway: stop that one first, or configure another device", what)
}

// holder is the process that holds a lock; 0 if it can't be seen from here.
func holder(address *net.UnixAddr) int {
	c, err := net.DialUnix("unix", nil, address)
	if err != nil {
		return 0
	}
	defer c.Close()
	raw, err := c.SyscallConn()
	if err != nil {
		return 0
	}
	pid := 0
	_ = raw.Control(func(fd uintptr) {
		if u, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = int(u.Pid)
		}
	})
	return pid
}

// release gives the device free. A nil lock holds nothing.
func (l *lock) release() error {
	if l == nil || l.listener == nil {
		return nil
	}
	err := l.listener.Close()
	l.listener = nil
	return err
}
