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

// Pool is a mempool of frame buffers (struct rte_mbuf), each with the same room for data behind its headroom.
type Pool struct {
	eal    *EAL
	pool   *C.struct_rte_mempool
	frames int
	room   int
	locked error // why its memory isn't locked; nil: it is
}

// poolCache is how many buffers each worker keeps for itself.
const poolCache = 256

var poolNumber atomic.Uint32

// newPool makes a mempool, on EAL's thread. socket is a NUMA node, or negative for any.
func newPool(e *EAL, frames, room, socket int) (*Pool, error) {
	if frames <= 0 || frames > math.MaxInt32 {
		return nil, fmt.Errorf("dpdk: a pool of %d frames was asked for, expected 1 to %d", frames, math.MaxInt32)
	}
	if room > maxRoom {
		return nil, fmt.Errorf("dpdk: a frame buffer of %d octets was asked for, expected at most %d", room, maxRoom)
	}
	room = min(alignRoom(room), maxRoom)
	cache := min(poolCache, frames*2/3)
	name := C.CString(fmt.Sprintf("cnpgate-%d", poolNumber.Add(1)))
	defer C.free(unsafe.Pointer(name))
	C.cnp_log_clear()
	pool := C.cnp_pool_create(name, C.uint(frames), C.uint(cache), C.uint16_t(room+headroom), C.int(max(socket, -1)))
	if pool == nil {
		err := unix.Errno(C.cnp_errno())
		return nil, fmt.Errorf("dpdk: a pool of %d frames of %d octets needs %d MiB, which the EAL does not have: %w%s",
			frames, room, toMiB(PoolMemory(frames, room)), err, firstLog())
	}
	p := &Pool{eal: e, pool: pool, frames: frames, room: room}
	if error := C.cnp_pool_lock(pool); error != 0 {
		p.locked = unix.Errno(error)
	}
	return p, nil
}

// Size is how many frames there are.
func (p *Pool) Size() int { return p.frames }

// Room is how many octets a frame can have in one piece.
func (p *Pool) Room() int { return p.room }

// Locked is nil where the pool's memory can't be swapped out, and otherwise says why it can.
func (p *Pool) Locked() error { return p.locked }

// Available is how many frames are free, in the pool and in workers' caches. While workers run it is a guess.
func (p *Pool) Available() int { return int(C.rte_mempool_avail_count(p.pool)) }

// InUse is how many frames somebody holds: queues, spares, devices.
func (p *Pool) InUse() int { return p.frames - p.Available() }

func (p *Pool) free() {
	C.rte_mempool_free(p.pool)
	p.pool = nil
}
