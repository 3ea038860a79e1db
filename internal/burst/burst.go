// Package burst is the contract between a worker and whatever moves its frames: a DPDK device in internal/dpdk, memory in
// internal/burst/inmem. One call an iteration sends what is due, frees what is done, refills the spare buffers that
// notifications are built in, and receives the next bursts. It never looks into a frame, holds no policy and starts nothing.
package burst

import "unsafe"

// MaxSize bounds the frames that one Exchange moves a port and direction.
const MaxSize = 64

// Frame names one frame in a backend's memory. It is 24 octets, free of pointers and laid out for C, so that queues of frames
// can live off the heap and an array of them crosses to C in one piece.
type Frame struct {
	Buf  uint64 // the backend's handle of the buffer; never 0 for a frame
	Data uint64 // distance of the frame's first octet from Batch.Base, modulo 2^64
	Len  uint32 // octets of the frame, without FCS
	Head uint32 // octets that lie in one piece at Data: Len, or less for a frame in several segments or cut short by a capture
}

// Port is one worker's pair of queues on one port.
type Port struct {
	// Rx holds what the last Exchange received, in order; Exchange resets it. Whoever took a frame from it owns its buffer.
	Rx []Frame
	// Tx holds what the next Exchange is to send, in order; at most the capacity it comes with. Exchange leaves it as it is
	// and says in Sent how many of its first frames the device took; those buffers are the device's from then on.
	// A frame that was built or changed in length by the worker is sent with the Len given here.
	Tx   []Frame
	Sent int
	// Lost names those of the first Sent frames that the backend dropped, in their order: nobody receives them.
	// Usually empty; Exchange resets it.
	Lost []Loss
	// Unusable counts the frames that the last Exchange received and had to drop, because they don't lie in one buffer.
	// They are not in Rx.
	Unusable Volume
}

// Loss is a frame that a backend dropped instead of sending it.
type Loss struct {
	Place uint32 // index in Tx
	Cause Cause
}

// Cause is why a backend dropped a frame instead of sending it.
type Cause uint32

const (
	TooLong  Cause  = iota // longer than the port, or the link behind it, carries
	LinkDown               // the port has no link, or its interface is gone
	Refused                // the device refuses this frame for ever
	Causes   = iota        // how many there are
)

// Volume is a number of frames and of their bytes, without FCS.
type Volume struct{ Frames, Bytes uint64 }

// Batch is what one worker and its backend exchange. The backend makes it; its slices have backend memory behind them.
type Batch struct {
	// Base is what Frame.Data counts from.
	Base  unsafe.Pointer
	Ports []Port // by port number
	// Free lists buffers to give back; Exchange empties it. Its capacity covers every frame that one Exchange can receive
	// and every spare.
	Free []uint64
	// Spare lists empty buffers the worker may build notifications in; the worker takes from its end, Exchange refills it.
	// It can stay short when the pool is empty. Data and Head of a spare give its room, Len is 0.
	Spare []Frame
	// Drain stops reception: Exchange sends and frees, and neither receives nor refills Spare.
	Drain bool
}

// Bytes is the part of a frame that lies in one piece, in the backend's memory. It is valid while the frame's buffer is owned.
func (b *Batch) Bytes(f Frame) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(b.Base, int(f.Data))), f.Head)
}

// Backend moves one worker's frames. It is used by one goroutine at a time.
type Backend interface {
	// Batch is the worker's batch, the same one for the life of the backend.
	Batch() *Batch
	// Exchange sends, frees, refills and receives, in this order, and returns the time in nanoseconds on the backend's own
	// monotonic clock, taken after reception.
	Exchange() int64
}

// Waiter is a Backend that a worker with nothing to do can wait at.
type Waiter interface {
	// Wait returns when a frame may have arrived, and no later than after the given time, in nanoseconds.
	Wait(nanoseconds int64)
	// Wakes tells whether a frame at any port ends a Wait; otherwise those of some ports are seen after it only.
	Wakes() bool
}
