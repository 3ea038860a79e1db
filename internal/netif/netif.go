//go:build linux

// Package netif reads and watches the kernel's network interfaces, in the network namespace of the calling thread. It changes nothing.
package netif

import (
	"errors"
	"fmt"
	"net"

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
	ifr, err := unix.NewIfreq(name)
	if err != nil {
		return State{}, fmt.Errorf("interface %q: the name is longer than %d characters", name, unix.IFNAMSIZ-1)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return State{}, fmt.Errorf("interface %s: socket: %w", name, err)
	}
	defer unix.Close(fd)
	ask := func(request uint, what string) {
		if err != nil {
			return
		}
		if err = unix.IoctlIfreq(fd, request, ifr); errors.Is(err, ErrNone) {
			err = fmt.Errorf("interface %s: there is none of that name in this network namespace (see `ip link`): %w", name, err)
		} else if err != nil {
			err = fmt.Errorf("interface %s: reading its %s: %w", name, what, err)
		}
	}
	s := State{Name: name}
	ask(unix.SIOCGIFMTU, "MTU")
	s.MTU = int(ifr.Uint32())
	ask(unix.SIOCGIFINDEX, "index")
	s.Index = int(ifr.Uint32())
	ask(unix.SIOCGIFHWADDR, "type")
	s.Ethernet = ifr.Uint16() == unix.ARPHRD_ETHER
	ask(unix.SIOCGIFFLAGS, "flags")
	s.setFlags(uint32(ifr.Uint16()))
	if err != nil {
		return State{}, err
	}
	return s, nil
}

func (s *State) setFlags(flags uint32) {
	s.On, s.Running, s.Loopback = flags&unix.IFF_UP != 0, flags&unix.IFF_RUNNING != 0, flags&unix.IFF_LOOPBACK != 0
}

// MAC is an interface's address, "" if it has none.
func MAC(name string) string {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return ""
	}
	return i.HardwareAddr.String()
}
