//go:build !nodpdk

package dpdk

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/cnpgate/cnpgate/internal/netif"
)

// Notice is a change of a port's device.
type Notice struct {
	Port    int
	Text    string // what happened
	Problem string // why the port doesn't forward all frames now, and what to do; "" if it does
}

// Watch monitors the ports on kernel interfaces until the context ends: it reports changes of an interface since the port was opened, and
// reconnects the port when a deleted interface is back, with as many attempts as needed. It calls report from one goroutine at a time.
func (d *Devices) Watch(ctx context.Context, report func(Notice)) error {
	var watched []int
	for i, p := range d.ports {
		if _, ok := p.driver.(*kernelInterface); ok {
			watched = append(watched, i)
		}
	}
	if len(watched) == 0 {
		return nil
	}
	return netif.Watch(ctx, func() {
		for _, i := range watched {
			p := d.ports[i]
			var n Notice
			news := false
			err := p.do(func() error {
				n, news = p.driver.(*kernelInterface).look(p)
				return nil
			})
			if err == nil && news { // a closed port has no news
				n.Port = i
				report(n)
			}
		}
	})
}

// look checks the interface, on EAL's thread.
func (k *kernelInterface) look(p *Port) (n Notice, news bool) {
	f := &k.follower
	n, news = f.follow(f.iface.Look(f.connected && k.unregistered()))
	if !f.connected {
		p.setCarrier(false)
	}
	return n, news
}

// unregistered reports whether a socket's interface was unregistered: the kernel then detaches the socket, also if a new interface has the
// same index at once.
func (k *kernelInterface) unregistered() bool {
	off := func(fd int) bool { return interfaceOf(fd) <= 0 }
	return slices.ContainsFunc(k.sockets, func(s socketPair) bool { return off(s.rx) || off(s.tx) })
}

// connect locks the interface and opens sockets for it that replace the old ones.
func (k *kernelInterface) connect(n netif.State) (err error) {
	if k.lock == nil {
		if k.lock, err = lockInterface(n.Name); err != nil {
			return err
		}
	}
	return k.open(n.Index)
}

// disconnect releases the lock of an interface that is gone.
func (k *kernelInterface) disconnect() {
	k.endOffer()
	_ = k.lock.release()
	k.lock = nil
}

// follower keeps a port on its interface: it reconnects the port when the interface was replaced, and has the reason if the port doesn't
// forward.
type follower struct {
	iface      *netif.Interface
	mtu        int // the port's, 0: the interface's
	room       int // bytes of a buffer
	connect    func(netif.State) error
	disconnect func()

	connected bool
	problem   string // as last reported
}

// follow processes the changes since the last call, and tries again what failed then. The notice has the resulting state, whichever change
// was the last.
func (f *follower) follow(changes []string, gone bool) (n Notice, news bool) {
	if gone {
		f.connected = false
		f.disconnect()
	}
	before := f.problem
	f.problem = ""
	if err := f.settle(); err != nil {
		f.problem = err.Error()
	}
	text := strings.Join(changes, ", ")
	switch {
	case text != "":
	case f.problem == "":
		text = fmt.Sprintf("interface %s is in use again", f.iface.Name())
	default:
		text = fmt.Sprintf("interface %s still can't be used", f.iface.Name())
	}
	return Notice{Text: text, Problem: f.problem}, len(changes) > 0 || f.problem != before
}

// settle connects the port if necessary and possible, and returns why it doesn't forward all frames.
func (f *follower) settle() error {
	n, there := f.iface.State()
	if !there {
		return fmt.Errorf("interface %s is gone: the port will use the next one of that name", f.iface.Name())
	}
	if err := unusable(n); err != nil {
		return err
	}
	if !f.connected {
		// Some kernels refuse to spread the frames of an interface that is down, so this comes after unusable.
		if err := f.connect(n); err != nil {
			return fmt.Errorf("the port can't use interface %s, and tries again: %w", n.Name, err)
		}
		f.connected = true
	}
	if err := tooSmall(n, f.mtu); err != nil {
		return fmt.Errorf("%w; until then longer frames are dropped (longer-than-mtu)", err)
	}
	if n.MTU+frameHead > f.room {
		return fmt.Errorf("interface %s has MTU %d, and buffers have %d bytes: `ip link set %s mtu %d`, or start the gateway again; until then longer frames are dropped (longer-than-buffer)",
			n.Name, n.MTU, f.room, n.Name, f.room-frameHead)
	}
	return nil
}

// unusable returns why no port can use an interface in its present state.
func unusable(n netif.State) error {
	switch {
	case n.Loopback:
		return fmt.Errorf("interface %s is the loopback interface: expected one that leads to another host", n.Name)
	case !n.Ethernet:
		return fmt.Errorf("interface %s carries no Ethernet frames (a tunnel, or a tun device?): expected one that does", n.Name)
	case !n.On:
		return fmt.Errorf("interface %s is down: switch it on with `ip link set %s up`", n.Name, n.Name)
	}
	return nil
}

// tooSmall returns an error if an interface doesn't accept frames of a port's MTU.
func tooSmall(n netif.State, mtu int) error {
	if mtu <= n.MTU {
		return nil
	}
	return fmt.Errorf("interface %s has MTU %d, but the port is configured for %d: `ip link set %s mtu %d`, or lower the port's mtu", n.Name, n.MTU, mtu, n.Name, mtu)
}
