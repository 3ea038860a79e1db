//go:build !nodpdk

package dpdk

/*
#include <stdlib.h>
#include "eal.h"
#include "pool.h"
*/
import "C"

import (
	"fmt"
	"math"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Pool is a mempool of frame buffers (struct rte_mbuf), each with the same space for data after its headroom.
type Pool struct {
	eal    *EAL
	pool   *C.struct_rte_mempool
	frames int
	room   int
	locked error // why its memory isn't locked; nil: it is
}

// poolCache is the number of buffers in each worker's cache.
const poolCache = 256

var poolNumber atomic.Uint32

// newPool makes a mempool, on EAL's thread. socket is a NUMA node, or negative for any.
func newPool(e *EAL, frames, room, socket int) (*Pool, error) {
	if frames <= 0 || frames > math.MaxInt32 {
		return nil, fmt.Errorf("dpdk: a pool of %d frames was asked for, expected 1 to %d", frames, math.MaxInt32)
	}
	if room > maxRoom {
		return nil, fmt.Errorf("dpdk: a frame buffer of %d bytes was asked for, expected at most %d", room, maxRoom)
	}
	room = min(alignRoom(room), maxRoom)
	cache := min(poolCache, frames*2/3)
	name := C.CString(fmt.Sprintf("cnpgate-%d", poolNumber.Add(1)))
	defer C.free(unsafe.Pointer(name))
	C.cnp_log_clear()
	pool := C.cnp_pool_create(name, C.uint(frames), C.uint(cache), C.uint16_t(room+headroom), C.int(max(socket, -1)))
	if pool == nil {
		err := unix.Errno(C.cnp_errno())
		return nil, fmt.Errorf("dpdk: a pool of %d frames of %d bytes needs %d MiB, which the EAL does not have: %w%s",
			frames, room, toMiB(PoolMemory(frames, room)), err, firstLog())
	}
	p := &Pool{eal: e, pool: pool, frames: frames, room: room}
	if error := C.cnp_pool_lock(pool); error != 0 {
		p.locked = unix.Errno(error)
	}
	return p, nil
}

// fits reports whether the pool is as large as a plan wants it.
func (p *Pool) fits(wanted *plan) bool { return p.frames == wanted.frames && p.room >= wanted.room }

// Size is the number of frames.
func (p *Pool) Size() int { return p.frames }

// Room is the maximum number of contiguous bytes of a frame.
func (p *Pool) Room() int { return p.room }

// Locked is nil if the pool's memory can't be swapped out, otherwise the reason.
func (p *Pool) Locked() error { return p.locked }

// Available is the number of free frames, in the pool and in workers' caches. While workers run it is approximate.
func (p *Pool) Available() int { return int(C.cnp_pool_available(p.pool)) }

// InUse is the number of frames in use: in queues, spares, devices.
func (p *Pool) InUse() int { return p.frames - p.Available() }

func (p *Pool) free() {
	C.cnp_pool_free(p.pool)
	p.pool = nil
}
