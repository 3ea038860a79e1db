// Package burst is the interface between a worker and the backend that moves its frames: a DPDK device in internal/dpdk, memory in
// internal/burst/inmem. One call an iteration frees buffers, sends offered frames, receives the next bursts, and
// refills the spare buffers for notifications. A backend makes no decisions about frames.
package burst

import "unsafe"

// MaxSize bounds the frames that one Exchange receives from a port.
const MaxSize = 64

// TxBursts is the number of bursts that one Exchange may send to a port. When frames arrive at an idle line, one of them starts and the others
// wait. With a list of one burst, a queue that then gets a burst a step would never be empty again.
const TxBursts = 2

// Frame identifies a frame in a backend's memory. It has 24 bytes, no pointers and a C layout, so that queues of frames can be off the heap
// and C can read an array of them.
type Frame struct {
	Buf  uint64 // the backend's handle of the buffer; never 0 for a frame
	Data uint64 // distance of the frame's first byte from Batch.Base, modulo 2^64
	Len  uint32 // bytes of the frame, without FCS
	Head uint32 // contiguous bytes at Data: Len, or less for a frame in several segments or truncated by a capture
}

// Port is one worker's pair of queues on one port.
type Port struct {
	// Rx holds the frames that the last Exchange received, in order; Exchange resets it. The worker owns their buffers, and doesn't change the list.
	Rx []Frame
	// Tx holds the frames that the next Exchange sends, in order, at most its initial capacity, which is TxBursts bursts. The worker may
	// replace it by a list of its own, off the Go heap, that stays unchanged until the Exchange. Exchange doesn't change it, and sets Sent to
	// the number of its first frames that the device accepted; the device owns their buffers from then on. If the worker has built a frame or
	// changed its length, Len counts.
	Tx   []Frame
	Sent int
	// Lost lists those of the first Sent frames that the backend dropped, in their order.
	// Usually empty; Exchange resets it.
	Lost []Loss
	// Unusable counts the frames that the last Exchange received and dropped because they don't fit into one buffer. They are not in Rx.
	Unusable Volume
	// Unfinished counts those that it dropped because their sender left an offload that the backend can't complete: a large packet that it
	// can't segment, a checksum that isn't at the sender's offset. Bytes doesn't include frames of unknown length.
	Unfinished Volume
}

// Loss is a frame that a backend dropped instead of sending it.
type Loss struct {
	Place uint32 // index in Tx
	Cause Cause
}

// Cause is why a backend dropped a frame instead of sending it.
type Cause uint32

const (
	TooLong  Cause  = iota // longer than the port or its link allows
	LinkDown               // the port has no link, or its interface is gone
	Refused                // the device always refuses this frame
	Causes   = iota        // number of causes
)

// Volume is a number of frames and of their bytes, without FCS.
type Volume struct{ Frames, Bytes uint64 }

// Batch is the data that one worker and its backend exchange. The backend makes it; its slices are in the backend's memory.
type Batch struct {
	// Base is the base address of Frame.Data.
	Base  unsafe.Pointer
	Ports []Port // by port number
	// Free lists buffers to free; Exchange empties it. Its capacity covers every frame that one Exchange can receive
	// and every spare.
	Free []uint64
	// Spare lists empty buffers in which the worker may build notifications; the worker takes from its end, Exchange refills it. It can
	// stay short if the pool is empty. Data and Head of a spare give its space, Len is 0.
	Spare []Frame
	// Drain stops reception: Exchange sends and frees, and neither receives nor refills Spare.
	Drain bool
}

// Bytes returns the contiguous part of a frame, in the backend's memory. It is valid while the worker owns the frame's buffer.
func (b *Batch) Bytes(f Frame) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(b.Base, int(f.Data))), f.Head)
}

// Backend moves one worker's frames. It is used by one goroutine at a time.
type Backend interface {
	// Batch is the worker's batch, the same one for the life of the backend.
	Batch() *Batch
	// Exchange frees, sends, receives and refills, and returns the time in nanoseconds on the backend's own monotonic clock, taken after
	// reception.
	Exchange() int64
}

// Waiter is a Backend on which an idle worker can wait.
type Waiter interface {
	// Wait returns when a frame may have arrived, at the latest after the given time in nanoseconds.
	Wait(nanoseconds int64)
	// Wakes reports whether a frame at any port ends a Wait; otherwise frames of some ports are received only after it.
	Wakes() bool
}
