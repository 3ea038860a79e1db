// Package inmem is the burst backend without a device: frames enter by Inject, leave by a function, and the caller sets the time. The
// replay, the simulator and the race tests run the worker on it. It starts no goroutine and tracks every buffer: it panics if the worker
// frees a buffer twice, or sends one that it doesn't own.
package inmem

import (
	"fmt"
	"unsafe"

	"github.com/cnpgate/cnpgate/internal/burst"
)

// Config has the sizes of a backend.
type Config struct {
	Ports int
	// Burst bounds the frames that one Exchange receives from a port; 1 to burst.MaxSize. It sends burst.TxBursts times as many.
	Burst int
	// BufferSize is the number of bytes of a buffer: the length of the largest frame.
	BufferSize int
	// Memory holds the buffers, as many as fit whole. It may be Go memory or off the heap; the backend keeps it alive.
	Memory []byte
	// Sent is called with each frame that a port sends; nil: frames are discarded.
	Sent func(Sent)
}

// Sent is a frame that was sent.
type Sent struct {
	Port   int
	Octets []byte // valid during the call only
	Length uint32 // on the wire; more than the available bytes for a frame that was injected truncated
	Built  bool   // by the worker, in a spare buffer
	Now    int64
}

// Backend implements burst.Backend for one worker.
type Backend struct {
	batch  burst.Batch
	ports  []port
	free   []uint64 // handles of empty buffers, used last in first out so that few pages are touched
	owned  []bool   // by handle: not in free
	memory []byte
	size   int
	burst  int
	now    int64
	sent   func(Sent)
	built  []bool // by handle: used as a spare
	calls  uint64
}

type port struct {
	inbox []burst.Frame // received, not yet passed to the worker
	head  int
	limit int // frames that the device accepts in one Exchange
	lose  func(burst.Frame) (burst.Cause, bool)
	// unusable counts the frames that the next Exchange reports as dropped.
	unusable   burst.Volume
	unfinished burst.Volume
}

// New makes a backend over the caller's memory.
func New(c Config) (*Backend, error) {
	buffers := 0
	if c.BufferSize > 0 {
		buffers = len(c.Memory) / c.BufferSize
	}
	if c.Ports < 1 || c.Burst < 1 || c.Burst > burst.MaxSize || buffers < 1 {
		return nil, fmt.Errorf("in-memory backend of %d ports, burst %d, %d buffers of %d bytes: expected at least one port and buffer and a burst of 1 to %d",
			c.Ports, c.Burst, buffers, c.BufferSize, burst.MaxSize)
	}
	b := &Backend{
		ports: make([]port, c.Ports), memory: c.Memory, size: c.BufferSize, burst: c.Burst, sent: c.Sent,
		free: make([]uint64, buffers), owned: make([]bool, buffers+1), built: make([]bool, buffers+1),
	}
	for i := range b.free {
		b.free[i] = uint64(buffers - i)
	}
	b.batch = burst.Batch{
		Base:  unsafe.Pointer(unsafe.SliceData(c.Memory)),
		Ports: make([]burst.Port, c.Ports),
		Free:  make([]uint64, 0, burst.MaxSize*(c.Ports+1)),
		Spare: make([]burst.Frame, 0, burst.MaxSize),
	}
	sent := burst.TxBursts * c.Burst
	for i := range b.ports {
		b.ports[i].limit = sent
		b.batch.Ports[i] = burst.Port{Rx: make([]burst.Frame, 0, c.Burst), Tx: make([]burst.Frame, 0, sent), Lost: make([]burst.Loss, 0, sent)}
	}
	return b, nil
}

// Batch is the worker's side.
func (b *Backend) Batch() *burst.Batch { return &b.batch }

// SetTime moves the clock to now, in nanoseconds; it must not go back.
func (b *Backend) SetTime(now int64) { b.now = now }

// Limit sets the number of frames that the port's device accepts in one Exchange, to simulate back-pressure.
func (b *Backend) Limit(port, frames int) { b.ports[port].limit = frames }

// Lose makes the port drop the frames for which lose is true, instead of sending them; nil for none.
func (b *Backend) Lose(port int, lose func(burst.Frame) (burst.Cause, bool)) {
	b.ports[port].lose = lose
}

// Unusable makes the port report at the next Exchange that it received these frames and dropped them.
func (b *Backend) Unusable(port int, v burst.Volume) {
	u := &b.ports[port].unusable
	u.Frames, u.Bytes = u.Frames+v.Frames, u.Bytes+v.Bytes
}

// Unfinished does the same for frames with offloads that it couldn't complete.
func (b *Backend) Unfinished(port int, v burst.Volume) {
	u := &b.ports[port].unfinished
	u.Frames, u.Bytes = u.Frames+v.Frames, u.Bytes+v.Bytes
}

// Inject gives the port a frame of the given length on the wire, of which octets are available. It returns false, and keeps nothing, if no
// buffer is free or the octets don't fit into one.
func (b *Backend) Inject(port int, octets []byte, length uint32) bool {
	if len(b.free) == 0 || len(octets) > b.size {
		return false
	}
	f := b.take()
	f.Len, f.Head = length, uint32(len(octets))
	copy(b.batch.Bytes(f), octets)
	p := &b.ports[port]
	if p.head == len(p.inbox) {
		p.inbox, p.head = p.inbox[:0], 0
	}
	p.inbox = append(p.inbox, f)
	return true
}

// Waiting is the number of injected frames that the worker has not received.
func (b *Backend) Waiting() int {
	n := 0
	for i := range b.ports {
		n += len(b.ports[i].inbox) - b.ports[i].head
	}
	return n
}

// Idle reports whether the next Exchange has nothing to do: no frame waits for the worker, and the worker sends and frees none.
func (b *Backend) Idle() bool {
	for i := range b.ports {
		if len(b.ports[i].inbox) > b.ports[i].head || len(b.batch.Ports[i].Tx) > 0 {
			return false
		}
	}
	return len(b.batch.Free) == 0
}

// InUse is the number of buffers that are not free, including the worker's spares.
func (b *Backend) InUse() int { return len(b.owned) - 1 - len(b.free) }

// Exchanges is the number of the worker's calls.
func (b *Backend) Exchanges() uint64 { return b.calls }

// Exchange implements burst.Backend.
func (b *Backend) Exchange() int64 {
	b.calls++
	for i := range b.ports {
		b.batch.Ports[i].Rx, b.batch.Ports[i].Unusable = b.batch.Ports[i].Rx[:0], burst.Volume{}
		b.batch.Ports[i].Unfinished = burst.Volume{}
		b.transmit(i)
	}
	for _, h := range b.batch.Free {
		b.release(h)
	}
	b.batch.Free = b.batch.Free[:0]
	if !b.batch.Drain {
		b.refill()
		for i := range b.ports {
			b.receive(i)
		}
	}
	return b.now
}

func (b *Backend) transmit(i int) {
	p := &b.batch.Ports[i]
	p.Sent, p.Lost = min(len(p.Tx), b.ports[i].limit), p.Lost[:0]
	for place, f := range p.Tx[:p.Sent] {
		if cause, lost := b.loses(i, f); lost {
			p.Lost = append(p.Lost, burst.Loss{Place: uint32(place), Cause: cause})
		} else if b.sent != nil {
			f.Head = min(f.Head, f.Len)
			b.sent(Sent{i, b.batch.Bytes(f), f.Len, b.built[f.Buf], b.now})
		}
		b.release(f.Buf)
	}
}

func (b *Backend) loses(i int, f burst.Frame) (burst.Cause, bool) {
	if lose := b.ports[i].lose; lose != nil {
		return lose(f)
	}
	return 0, false
}

func (b *Backend) receive(i int) {
	rx := &b.batch.Ports[i].Rx
	p := &b.ports[i]
	b.batch.Ports[i].Unusable, p.unusable = p.unusable, burst.Volume{}
	b.batch.Ports[i].Unfinished, p.unfinished = p.unfinished, burst.Volume{}
	n := min(b.burst, len(p.inbox)-p.head)
	*rx = append(*rx, p.inbox[p.head:p.head+n]...)
	p.head += n
}

// refill reserves a burst for each port's reception, so that notifications can't starve it. A pool with buffers for full queues, for a
// burst in each direction on every port and for the spares always has that burst free, so the reserve doesn't restrict notifications. A
// pool too small for that reserves a quarter of its buffers, otherwise the worker would never get a spare.
func (b *Backend) refill() {
	reserve := min(b.burst*len(b.ports), len(b.owned)/4)
	for len(b.batch.Spare) < cap(b.batch.Spare) && len(b.free) > reserve {
		f := b.take()
		b.built[f.Buf] = true
		b.batch.Spare = append(b.batch.Spare, f)
	}
}

func (b *Backend) take() burst.Frame {
	h := b.free[len(b.free)-1]
	b.free = b.free[:len(b.free)-1]
	b.owned[h] = true
	return burst.Frame{Buf: h, Data: (h - 1) * uint64(b.size), Head: uint32(b.size)}
}

func (b *Backend) release(h uint64) {
	if h == 0 || h >= uint64(len(b.owned)) || !b.owned[h] {
		panic(fmt.Sprintf("in-memory backend: buffer %d freed without being owned", h))
	}
	b.owned[h], b.built[h] = false, false
	b.free = append(b.free, h)
}
