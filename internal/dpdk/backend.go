//go:build !nodpdk

package dpdk

/*
#cgo noescape cnp_exchange
#cgo nocallback cnp_exchange
#cgo noescape cnp_release
#cgo nocallback cnp_release
#include <stdlib.h>
#include "crossing.h"
*/
import "C"

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/internal/burst"
)

// Spares is the number of empty buffers that each worker has for notifications.
const Spares = 64

// struct cnp_frame and burst.Frame are the same; a negative constant would not compile. batch.h checks C's side.
const (
	_ = uint(unsafe.Sizeof(burst.Frame{})-C.sizeof_struct_cnp_frame) + uint(C.sizeof_struct_cnp_frame-unsafe.Sizeof(burst.Frame{}))
	_ = uint(unsafe.Offsetof(burst.Frame{}.Data)-8) + uint(8-unsafe.Offsetof(burst.Frame{}.Data))
	_ = uint(unsafe.Offsetof(burst.Frame{}.Len)-16) + uint(16-unsafe.Offsetof(burst.Frame{}.Len))
	_ = uint(unsafe.Offsetof(burst.Frame{}.Head)-20) + uint(20-unsafe.Offsetof(burst.Frame{}.Head))
	_ = uint(unsafe.Sizeof(burst.Loss{})-C.sizeof_struct_cnp_loss) + uint(C.sizeof_struct_cnp_loss-unsafe.Sizeof(burst.Loss{}))
	_ = uint(burst.MaxSize-C.CNP_MAX_BURST) + uint(C.CNP_MAX_BURST-burst.MaxSize) + uint(burst.TxBursts-C.CNP_TX_BURSTS) + uint(C.CNP_TX_BURSTS-burst.TxBursts)
	_ = uint(burst.TooLong-C.CNP_TOO_LONG) + uint(burst.LinkDown-C.CNP_LINK_DOWN) + uint(burst.Refused-C.CNP_REFUSED)
)

// Backend is one worker's burst.Backend: queue number worker of every port. Its batch is in C memory.
type Backend struct {
	batch    burst.Batch
	c        *C.struct_cnp_batch
	queues   []C.struct_cnp_queue
	rx, tx   [][]burst.Frame // by port, at full capacity; tx is the list that a worker may use
	lost     [][]burst.Loss  // by port
	received [][]uint64      // mbufs of rx, by port
	wakers   []unix.PollFd   // sockets whose frames end a Wait
	free     []uint64
	spare    []burst.Frame
}

var (
	_ burst.Backend = (*Backend)(nil)
	_ burst.Waiter  = (*Backend)(nil)
)

// newBackend makes a worker's batch over the ports, in their order.
func newBackend(ports []*Port, pool *Pool, worker, burstSize int) *Backend {
	frees := burst.MaxSize*len(ports) + Spares
	b := &Backend{
		c:      callocOf[C.struct_cnp_batch](1),
		queues: callocSlice[C.struct_cnp_queue](len(ports)),
		free:   callocSlice[uint64](frees),
		spare:  callocSlice[burst.Frame](Spares),
	}
	base := unsafe.Pointer(pool.pool)
	b.c.base = C.uint64_t(uintptr(base))
	b.c.pool = pool.pool
	b.c.queue = unsafe.SliceData(b.queues)
	b.c.free = (*C.uint64_t)(unsafe.SliceData(b.free))
	b.c.spare = (*C.struct_cnp_frame)(unsafe.Pointer(unsafe.SliceData(b.spare)))
	b.c.n_queue = C.uint32_t(len(ports))
	b.c.spares = Spares
	b.c.burst = C.uint32_t(burstSize)
	b.batch = burst.Batch{Base: base, Ports: make([]burst.Port, len(ports)), Free: b.free[:0], Spare: b.spare[:0]}
	for i, p := range ports {
		rx, tx := callocSlice[burst.Frame](burst.MaxSize), callocSlice[burst.Frame](burst.TxBursts*burstSize)
		b.rx, b.tx = append(b.rx, rx), append(b.tx, tx)
		lost := callocSlice[burst.Loss](len(tx))
		b.lost = append(b.lost, lost)
		q := &b.queues[i]
		q.rx = (*C.struct_cnp_frame)(unsafe.Pointer(unsafe.SliceData(rx)))
		received := callocSlice[uint64](burst.MaxSize)
		b.received = append(b.received, received)
		q.received = (**C.struct_rte_mbuf)(unsafe.Pointer(unsafe.SliceData(received)))
		q.lost = (*C.struct_cnp_loss)(unsafe.Pointer(unsafe.SliceData(lost)))
		q.carrier = (*C.int32_t)(p.carrier)
		p.driver.queue(worker, q)
		if k, ok := p.driver.(*kernelInterface); ok {
			b.wakers = append(b.wakers, unix.PollFd{Fd: int32(k.sockets[worker].rx), Events: unix.POLLIN})
		}
		b.batch.Ports[i] = burst.Port{Rx: rx[:0], Tx: b.tx[i][:0]}
	}
	return b
}

// Batch is the worker's batch.
func (b *Backend) Batch() *burst.Batch { return &b.batch }

// Wait returns when a frame waits at a kernel interface, and after the given time at the latest. A NIC doesn't end it.
func (b *Backend) Wait(nanoseconds int64) {
	timeout := unix.NsecToTimespec(max(nanoseconds, 0))
	if len(b.wakers) == 0 {
		time.Sleep(time.Duration(nanoseconds))
		return
	}
	// A raw system call: for this short time, releasing and reacquiring the place in Go's scheduler costs more than the poll.
	// The only possible error is EINTR, which counts as a wake-up.
	_, _, _ = unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(unsafe.SliceData(b.wakers))), uintptr(len(b.wakers)),
		uintptr(unsafe.Pointer(&timeout)), 0, 0, 0)
}

// Wakes reports whether all ports are kernel interfaces.
func (b *Backend) Wakes() bool { return len(b.wakers) == len(b.queues) }

// Exchange frees, sends, receives and refills the spares, with one cgo call. The time is CLOCK_MONOTONIC's.
func (b *Backend) Exchange() int64 {
	for i := range b.queues {
		p, q := &b.batch.Ports[i], &b.queues[i]
		q.tx, q.n_tx = (*C.struct_cnp_frame)(unsafe.Pointer(unsafe.SliceData(p.Tx))), C.uint32_t(min(len(p.Tx), len(b.tx[i])))
	}
	for len(b.batch.Free) > len(b.free) {
		b.releaseSome()
	}
	b.c.n_free = C.uint32_t(settle(b.free, b.batch.Free))
	b.c.n_spare = C.uint32_t(settle(b.spare, b.batch.Spare))
	b.c.drain = 0
	if b.batch.Drain {
		b.c.drain = 1
	}
	now := int64(C.cnp_exchange(C.uintptr_t(uintptr(unsafe.Pointer(b.c)))))
	for i := range b.queues {
		p, q := &b.batch.Ports[i], &b.queues[i]
		p.Rx, p.Sent = b.rx[i][:q.n_rx], int(q.sent)
		p.Lost = b.lost[i][:q.n_lost]
		p.Unusable, p.Unfinished = volume(q.unusable), volume(q.unfinished)
	}
	b.batch.Free = b.free[:0]
	b.batch.Spare = b.spare[:b.c.n_spare]
	return now
}

func volume(v C.struct_cnp_volume) burst.Volume {
	return burst.Volume{Frames: uint64(v.frames), Bytes: uint64(v.bytes)}
}

// settle makes sure that a slice is in the batch's own memory, also if the worker replaced it, and returns its length.
func settle[T any](own, given []T) int {
	if len(given) == 0 || unsafe.SliceData(given) == unsafe.SliceData(own) && len(given) <= len(own) {
		return len(given)
	}
	return copy(own, given)
}

// releaseSome frees one batch of a list that outgrew its capacity. That never happens if the worker keeps to the contract.
func (b *Backend) releaseSome() {
	n := copy(b.free, b.batch.Free[len(b.batch.Free)-len(b.free):])
	b.c.n_free = C.uint32_t(n)
	C.cnp_release(C.uintptr_t(uintptr(unsafe.Pointer(b.c))))
	b.batch.Free = b.batch.Free[:len(b.batch.Free)-n]
}

// close frees the spares and the C memory. The worker keeps the frames that it holds; it must not call Exchange again.
func (b *Backend) close() {
	for _, f := range b.batch.Spare {
		b.batch.Free = append(b.batch.Free, f.Buf)
	}
	for len(b.batch.Free) > len(b.free) {
		b.releaseSome()
	}
	b.c.n_free = C.uint32_t(settle(b.free, b.batch.Free))
	C.cnp_release(C.uintptr_t(uintptr(unsafe.Pointer(b.c))))
	for i := range b.rx {
		freeSlice(b.rx[i])
		freeSlice(b.tx[i])
		freeSlice(b.lost[i])
		freeSlice(b.received[i])
	}
	freeSlice(b.free)
	freeSlice(b.spare)
	freeSlice(b.queues)
	C.free(unsafe.Pointer(b.c))
	*b = Backend{}
}

// callocOf allocates zeroed C memory. cgo's malloc, unlike its calloc, never returns nil.
func callocOf[T any](n int) *T {
	var t T
	size := max(n, 1) * int(unsafe.Sizeof(t))
	p := C.malloc(C.size_t(size))
	clear(unsafe.Slice((*byte)(p), size))
	return (*T)(p)
}

func callocSlice[T any](n int) []T { return unsafe.Slice(callocOf[T](n), n) }

func freeSlice[T any](s []T) { C.free(unsafe.Pointer(unsafe.SliceData(s))) }
