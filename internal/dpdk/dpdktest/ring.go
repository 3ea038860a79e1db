//go:build !nodpdk

package dpdktest

/*
#cgo pkg-config: libdpdk
#cgo LDFLAGS: -ldl
#include <stdlib.h>
#include "ring.h"
*/
import "C"

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// largest is how many bytes of a frame Collect can return.
const largest = 1 << 16

// Ring is a port without hardware whose far end is in a test's hands: what it injects the port receives, what the port sends it
// collects. Both are rte_rings, one each a worker, behind the net_ring PMD; its frames come from a pool of its own.
type Ring struct {
	do     func(func() error) error
	name   string
	pool   *C.struct_rte_mempool
	size   int                  // frames in the pool
	in     []*C.struct_rte_ring // far end -> port
	out    []*C.struct_rte_ring // port -> far end
	port   C.int                // negative: none
	buffer unsafe.Pointer       // for Collect
}

// NewRing makes a ring port with one pair of queues a worker, each for size frames (a power of two) of up to room bytes. The EAL
// must run, and do be its Do; Device goes into a PortConfig.
func NewRing(do func(func() error) error, name string, workers, size, room int) (*Ring, error) {
	r := &Ring{do: do, name: name, size: workers * size * 4, port: -1, buffer: C.malloc(largest)}
	if err := do(func() error { return r.open(workers, size, room) }); err != nil {
		r.Close()
		return nil, fmt.Errorf("dpdktest: ring port %s: %w", name, err)
	}
	return r, nil
}

func (r *Ring) open(workers, size, room int) error {
	pool := C.CString("dpdktest-" + r.name)
	defer C.free(unsafe.Pointer(pool))
	cache := min(256, r.size*2/3)
	r.pool = C.rte_pktmbuf_pool_create(pool, C.uint(r.size), C.uint(cache), 0, C.uint16_t(room+C.RTE_PKTMBUF_HEADROOM), C.SOCKET_ID_ANY)
	if r.pool == nil {
		return fmt.Errorf("a pool of %d frames of %d bytes: %w", r.size, room, unix.Errno(C.ring_errno()))
	}
	for w := range workers {
		for _, end := range []struct {
			name  string
			rings *[]*C.struct_rte_ring
		}{{"in", &r.in}, {"out", &r.out}} {
			ring, err := newRing(fmt.Sprintf("%s-%s%d", r.name, end.name, w), size)
			if err != nil {
				return err
			}
			*end.rings = append(*end.rings, ring)
		}
	}
	name := C.CString(r.name)
	defer C.free(unsafe.Pointer(name))
	r.port = C.ring_port(name, unsafe.SliceData(r.in), C.uint(workers), unsafe.SliceData(r.out), C.uint(workers))
	if r.port < 0 {
		return unix.Errno(-r.port)
	}
	return nil
}

func newRing(name string, size int) (*C.struct_rte_ring, error) {
	c := C.CString(name)
	defer C.free(unsafe.Pointer(c))
	ring := C.rte_ring_create(c, C.uint(size), C.SOCKET_ID_ANY, C.RING_F_SP_ENQ|C.RING_F_SC_DEQ|C.RING_F_EXACT_SZ)
	if ring == nil {
		return nil, fmt.Errorf("a ring of %d frames: %w", size, unix.Errno(C.ring_errno()))
	}
	return ring, nil
}

// Device is what a PortConfig names the port by.
func (r *Ring) Device() string { return "net_ring_" + r.name }

// Inject hands the port one frame on a worker's queue. The error is unix.ENOBUFS when that is full, unix.EMSGSIZE for a frame that the
// pool's buffers have no room for.
func (r *Ring) Inject(worker int, frame []byte) error { return r.InjectSegments(worker, frame, 0) }

// InjectSegments does so in several segments of at most so many bytes; 0 is one piece.
func (r *Ring) InjectSegments(worker int, frame []byte, segment int) error {
	ret := C.ring_inject(r.in[worker], r.pool, unsafe.Pointer(unsafe.SliceData(frame)), C.uint32_t(len(frame)), C.uint32_t(segment))
	if ret != 0 {
		return fmt.Errorf("dpdktest: injecting %d bytes: %w", len(frame), unix.Errno(-ret))
	}
	return nil
}

// Collect takes the next frame that the port sent from a worker's queue, nil when there is none.
func (r *Ring) Collect(worker int) []byte {
	n := C.ring_collect(r.out[worker], r.buffer, largest)
	if n < 0 {
		return nil
	}
	return C.GoBytes(r.buffer, n)
}

// InUse is how many frames of the ring's own pool were injected and neither collected nor freed by the port's user.
func (r *Ring) InUse() int { return r.size - int(C.rte_mempool_avail_count(r.pool)) }

// Close closes the port, and frees what waits at the far end, the rings and the pool. Who opened the port must have closed it before.
func (r *Ring) Close() error {
	return r.do(func() error {
		var err error
		if r.port >= 0 {
			if ret := C.ring_port_close(C.uint16_t(r.port)); ret != 0 {
				err = fmt.Errorf("dpdktest: closing ring port %s: %w", r.name, unix.Errno(-ret))
			}
		}
		for w, ring := range r.out {
			for r.Collect(w) != nil {
			}
			C.rte_ring_free(ring)
		}
		for _, ring := range r.in {
			C.rte_ring_free(ring)
		}
		C.rte_mempool_free(r.pool)
		C.free(r.buffer)
		*r = Ring{do: r.do, name: r.name, port: -1}
		return err
	})
}
