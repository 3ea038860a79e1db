//go:build !nodpdk

package dpdk

import (
	"context"
	"fmt"

	"github.com/cnpgate/cnpgate/internal/netif"
)

// Notice is something that happened to a port's device.
type Notice struct {
	Port    int
	Healthy bool // the port forwards
	Text    string
}

// Watch looks after the ports on kernel interfaces until the context ends: it reports what has happened to an interface since the port was
// opened, and connects the port again when one that was deleted is back. report is called one call at a time.
func (d *Devices) Watch(ctx context.Context, report func(Notice)) error {
	var ports []int
	var interfaces []netif.State
	for i, p := range d.ports {
		if k, ok := p.driver.(*kernelInterface); ok {
			ports, interfaces = append(ports, i), append(interfaces, k.opened)
		}
	}
	if len(ports) == 0 {
		return nil
	}
	return netif.Watch(ctx, interfaces, func(i int, c netif.Change) {
		n := Notice{Port: ports[i], Healthy: c.Kind != netif.Gone && c.Now.On, Text: c.String()}
		p := d.ports[ports[i]]
		err := p.do(func() error {
			return p.driver.(*kernelInterface).changed(p, c)
		})
		if err != nil {
			n.Healthy, n.Text = false, fmt.Sprintf("%s, but the port can't use it: %v", n.Text, err)
		}
		report(n)
	})
}

// changed follows a change of the interface, on EAL's thread.
func (k *kernelInterface) changed(p *Port, c netif.Change) error {
	switch c.Kind {
	case netif.Gone:
		p.setCarrier(false)
	case netif.Renamed:
		k.name = c.Now.Name
	case netif.Back:
		k.name = c.Name
		return k.reopen(c.Now)
	case netif.MTUChanged:
		if c.Now.MTU < k.cfg.MTU {
			return fmt.Errorf("the port's mtu is %d: longer frames are dropped (longer-than-mtu)", k.cfg.MTU)
		}
		if need := c.Now.MTU + frameHead; need > k.room {
			return fmt.Errorf("frames of more than %d bytes are dropped (longer-than-buffer): start the gateway again", k.room)
		}
	}
	return nil
}

// reopen connects the port with another interface of the same name.
func (k *kernelInterface) reopen(n netif.State) error {
	_ = k.lock.release() // of an interface that is no more
	var err error
	if k.lock, err = lockInterface(n.Name); err != nil {
		return err
	}
	if k.cfg.MTU > n.MTU {
		err = fmt.Errorf("it has MTU %d and the port's mtu is %d: longer frames are dropped (longer-than-mtu)", n.MTU, k.cfg.MTU)
	}
	if e := k.open(n.Index); e != nil {
		return e
	}
	return err
}
