//go:build !nodpdk

package dpdk

/*
#include <stdlib.h>
#include "crossing.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"
)

// Port is one device with a pair of queues a worker: an ethdev of DPDK's, or a kernel interface by packet sockets.
type Port struct {
	eal     *EAL
	cfg     PortConfig
	driver  driver
	carrier *int32 // in C memory, read by every worker's Exchange; 0 while it is known that there is no link
	held    bool   // SetLink has taken the link down; on EAL's thread
	stopped bool   // on EAL's thread
}

// driver is what a port's frames go through. Everything but queue's result is used on EAL's thread only.
type driver interface {
	// buffer is how many bytes a buffer must have so that frames of an MTU, with two tags, come in one piece.
	buffer(mtu int) int
	// setup asks the device for what the plan needs, starts it, and says what came of it.
	setup(pool *Pool, workers int) (Profile, error)
	// queue completes what a worker's Exchange has to know.
	queue(worker int, q *C.struct_cnp_queue)
	linkUp() (bool, error)
	// setLink is errors.ErrUnsupported where the device can't.
	setLink(up bool) error
	stats() (Stats, error)
	// numa is the memory node that the device is attached to; negative: any.
	numa() int
	// stop ends the traffic and throws away what waits; close gives the device back.
	stop() error
	close() error
}

// Stats is what the device counted since it was opened. A virtual device counts what it took, not what arrived at the other end.
type Stats struct {
	RxPackets, RxBytes uint64
	TxPackets, TxBytes uint64
	RxMissed           uint64 // frames for which the device, or the socket's queue, had no place: the worker was too slow
	RxNoBuffer         uint64 // frames for which the pool had no buffer
	RxErrors           uint64 // frames that arrived damaged, or of a length that the device doesn't take
	RxOversized        uint64 // frames longer than the device takes; some devices count them among RxErrors too
	TxErrors           uint64 // frames that the device failed to send
}

// newPort opens the device, as far as that is possible before there is a pool.
func newPort(e *EAL, cfg PortConfig, d device) (*Port, error) {
	p := &Port{eal: e, cfg: cfg, carrier: callocOf[int32](1)}
	*p.carrier = 1
	var err error
	if d.iface != "" {
		p.driver, err = newInterface(cfg, d)
	} else {
		p.driver, err = attach(cfg, d)
	}
	if err != nil {
		p.free()
		return nil, err
	}
	return p, nil
}

// Name is the operator's.
func (p *Port) Name() string { return p.cfg.Name }

// setup gets the port ready to move frames of the pool.
func (p *Port) setup(pool *Pool, workers int) (Profile, error) { return p.driver.setup(pool, workers) }

// LinkUp tells whether the port has a link now. While it has none, what is to leave by the port is dropped: a device would keep it and
// send it when the link comes back. An error means that the device can't tell, and says nothing of the link.
func (p *Port) LinkUp() (up bool, err error) {
	err = p.do(func() (err error) {
		if up, err = p.driver.linkUp(); err != nil {
			return portError(p.cfg, fmt.Errorf("reading the link: %w", err))
		}
		p.setCarrier(up && !p.held)
		return nil
	})
	return up, err
}

// SetLink switches the port's link on or off; errors.ErrUnsupported where the device can't.
func (p *Port) SetLink(up bool) error {
	return p.do(func() error {
		if err := p.driver.setLink(up); err != nil {
			return portError(p.cfg, fmt.Errorf("switching the link: %w", err))
		}
		if p.held = !up; p.held {
			p.setCarrier(false)
		}
		return nil
	})
}

func (p *Port) setCarrier(up bool) {
	value := int32(0)
	if up {
		value = 1
	}
	atomic.StoreInt32(p.carrier, value)
}

// Stats asks the device.
func (p *Port) Stats() (s Stats, err error) {
	err = p.do(func() (err error) {
		if s, err = p.driver.stats(); err != nil {
			return portError(p.cfg, fmt.Errorf("reading statistics: %w", err))
		}
		return nil
	})
	return s, err
}

// do runs f on EAL's thread, while the port is open.
func (p *Port) do(f func() error) error {
	return p.eal.do(func() error {
		if p.stopped {
			return portError(p.cfg, errors.New("the device is closed"))
		}
		return f()
	})
}

// free ends the port; nobody may use it or its queues any more.
func (p *Port) free() {
	p.stopped = true
	C.free(unsafe.Pointer(p.carrier))
	p.carrier = nil
}
