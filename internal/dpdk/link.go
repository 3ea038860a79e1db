//go:build !nodpdk

package dpdk

/*
#include "eal.h"
*/
import "C"

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// LinkUp tells whether the port has a link now. An error means that the device can't be asked, and says nothing of the link.
func (p *Port) LinkUp() (up bool, err error) {
	err = p.eal.do(func() error {
		if p.device.iface != "" {
			n, err := readNetif(p.device.iface)
			up = err == nil && n.up()
			return err
		}
		ret := C.cnp_link(p.id)
		if ret < 0 {
			return portError(p.cfg, fmt.Errorf("reading the link: %w", unix.Errno(-ret)))
		}
		up = ret == 1
		return nil
	})
	return up, err
}

// SetLink switches the port's link on or off; errors.ErrUnsupported where the device can't. The kernel's interface under
// net_af_packet is the operator's and stays as it is.
func (p *Port) SetLink(up bool) error {
	return p.eal.do(func() error {
		ret := C.int(0)
		if up {
			ret = C.rte_eth_dev_set_link_up(p.id)
		} else {
			ret = C.rte_eth_dev_set_link_down(p.id)
		}
		switch err := unix.Errno(-ret); {
		case ret == 0:
			return nil
		case err == unix.ENOTSUP:
			return portError(p.cfg, fmt.Errorf("switching the link: %w", errors.ErrUnsupported))
		default:
			return portError(p.cfg, fmt.Errorf("switching the link: %w", err))
		}
	})
}
