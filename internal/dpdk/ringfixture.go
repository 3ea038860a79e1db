//go:build !nodpdk

package dpdk

/*
#include <stdlib.h>
#include "eal.h"
*/
import "C"

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Ring is a port without hardware whose far end is in a test's hands: what it injects the port receives, what the port sends it
// collects. Both are rte_rings, one each a worker, behind the net_ring PMD; its frames come from a pool of its own.
type Ring struct {
	eal    *EAL
	device string
	pool   *Pool
	in     []*C.struct_rte_ring // far end -> port
	out    []*C.struct_rte_ring // port -> far end
	port   *ethdev
	buffer unsafe.Pointer // for Collect, maxRoom octets
}

// NewRing makes a ring port with one pair of queues a worker, each for size frames (a power of two) of up to room octets.
// The EAL must run; Device goes into a PortConfig.
func (e *EAL) NewRing(name string, workers, size, room int) (*Ring, error) {
	r := &Ring{eal: e, device: "net_ring_" + name, buffer: C.malloc(maxRoom)}
	err := e.do(func() error {
		var err error
		if r.pool, err = newPool(e, workers*size*4, room, -1); err != nil {
			return err
		}
		for w := range workers {
			in, err := newRing(fmt.Sprintf("%s-in%d", name, w), size)
			if err != nil {
				return err
			}
			r.in = append(r.in, in)
			out, err := newRing(fmt.Sprintf("%s-out%d", name, w), size)
			if err != nil {
				return err
			}
			r.out = append(r.out, out)
		}
		n, c := C.uint(workers), C.CString(name)
		defer C.free(unsafe.Pointer(c))
		C.cnp_log_clear()
		if ret := C.cnp_eth_from_rings(c, unsafe.SliceData(r.in), n, unsafe.SliceData(r.out), n); ret < 0 {
			return fmt.Errorf("dpdk: ring port %s: %w%s", name, unix.Errno(-ret), firstLog())
		}
		r.port, err = attach(PortConfig{Name: name, Device: r.device}, device{name: r.device})
		return err
	})
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

func newRing(name string, size int) (*C.struct_rte_ring, error) {
	c := C.CString(name)
	defer C.free(unsafe.Pointer(c))
	ring := C.rte_ring_create(c, C.uint(size), C.SOCKET_ID_ANY, C.RING_F_SP_ENQ|C.RING_F_SC_DEQ|C.RING_F_EXACT_SZ)
	if ring == nil {
		return nil, fmt.Errorf("dpdk: ring of %d frames: %w", size, unix.Errno(C.cnp_errno()))
	}
	return ring, nil
}

// Device is what a PortConfig names the port by.
func (r *Ring) Device() string { return r.device }

// Inject hands the port one frame on a worker's queue; unix.ENOBUFS when that is full.
func (r *Ring) Inject(worker int, frame []byte) error { return r.InjectSegments(worker, frame, 0) }

// InjectSegments does so in several segments of at most so many octets; 0 is one piece.
func (r *Ring) InjectSegments(worker int, frame []byte, segment int) error {
	ret := C.cnp_ring_inject(r.in[worker], r.pool.pool, unsafe.Pointer(unsafe.SliceData(frame)), C.uint32_t(len(frame)), C.uint32_t(segment))
	if ret != 0 {
		return fmt.Errorf("dpdk: injecting %d octets: %w", len(frame), unix.Errno(-ret))
	}
	return nil
}

// Collect takes the next frame that the port sent from a worker's queue, nil when there is none.
func (r *Ring) Collect(worker int) []byte {
	n := C.cnp_ring_collect(r.out[worker], r.buffer, maxRoom)
	if n < 0 {
		return nil
	}
	return C.GoBytes(r.buffer, n)
}

// Pool is the fixture's own pool: what was injected and neither collected nor dropped is in use.
func (r *Ring) Pool() *Pool { return r.pool }

// Close frees what waits at the far end, the rings and the pool. The port must be closed before.
func (r *Ring) Close() error {
	return r.eal.do(func() error {
		var err error
		if r.port != nil {
			r.port.lent = false
			err = r.port.close()
		}
		for w, ring := range r.out {
			for r.Collect(w) != nil {
			}
			C.rte_ring_free(ring)
		}
		for _, ring := range r.in {
			C.rte_ring_free(ring)
		}
		if r.pool != nil {
			r.pool.free()
		}
		C.free(r.buffer)
		r.in, r.out, r.pool, r.port, r.buffer = nil, nil, nil, nil, nil
		return err
	})
}
