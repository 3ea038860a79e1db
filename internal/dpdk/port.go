//go:build !nodpdk

package dpdk

/*
#include <stdlib.h>
#include "batch.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"
)

// Port is one device with a pair of queues for each worker: a DPDK ethdev, or a kernel interface with packet sockets.
type Port struct {
	eal     *EAL
	cfg     PortConfig
	driver  driver
	carrier *int32 // in C memory, read by every worker's Exchange; 0 while the link is known to be down
	held    bool   // SetLink has taken the link down; on EAL's thread
	stopped bool   // on EAL's thread
}

// driver is the implementation of a port. Everything but queue's result is used on EAL's thread only.
type driver interface {
	// buffer is how many bytes a buffer must have so that frames of an MTU, with two tags, come in one piece.
	buffer(mtu int) int
	// setup configures the device for the plan, starts it, and returns the resulting profile.
	setup(pool *Pool, workers int) (Profile, error)
	// queue completes the parameters of a worker's Exchange.
	queue(worker int, q *C.struct_cnp_queue)
	linkUp() (bool, error)
	// speed is the link's, bit/s; 0: not known.
	speed() uint64
	// setLink returns errors.ErrUnsupported if the device can't.
	setLink(up bool) error
	stats() (Stats, error)
	// numa is the device's memory node; negative: any.
	numa() int
	// stop ends the traffic and discards waiting frames; close releases the device.
	stop() error
	// stopped is the number of frames that stop discarded.
	stopped() uint64
	close() error
}

// Stats has the device's counts since it was opened. A virtual device counts the frames that it accepted, not those that arrived at the
// other end.
type Stats struct {
	RxPackets, RxBytes uint64
	TxPackets, TxBytes uint64
	RxMissed           uint64 // frames dropped because the device's, or the socket's, queue was full: the worker was too slow
	RxNoBuffer         uint64 // frames for which the pool had no buffer
	RxErrors           uint64 // frames that arrived damaged, or with a length that the device doesn't accept
	RxOversized        uint64 // frames longer than the device accepts; some devices also count them in RxErrors
	TxErrors           uint64 // frames that the device failed to send
}

// maxDiscarded bounds the frames that a queue discards when a port is stopped: a device that generates frames would never run out.
const maxDiscarded = 1 << 16

// newPort opens the device, as far as that is possible without a pool.
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

// Name is the operator's name of the port.
func (p *Port) Name() string { return p.cfg.Name }

// setup gets the port ready to move frames of the pool.
func (p *Port) setup(pool *Pool, workers int) (Profile, error) { return p.driver.setup(pool, workers) }

// LinkUp reports whether the port has a link now. Without a link, its outgoing frames are dropped: a device would keep them and send them
// when the link is back. An error means that the device can't report it; the state of the link is unknown.
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

// Speed is that of the port's link, bit/s; 0 if it isn't known.
func (p *Port) Speed() (bps uint64) {
	_ = p.do(func() error { // an error: the device is closed
		bps = p.driver.speed()
		return nil
	})
	return bps
}

// SetLink switches the port's link on or off; errors.ErrUnsupported if the device can't.
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

// Stats reads the device's counts.
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
	return p.eal.Do(func() error {
		if p.stopped {
			return portError(p.cfg, errors.New("the device is closed"))
		}
		return f()
	})
}

// free ends the port; after that nobody may use it or its queues.
func (p *Port) free() {
	p.stopped = true
	C.free(unsafe.Pointer(p.carrier))
	p.carrier = nil
}
