package dataplane

import (
	"unsafe"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
)

// entry is a frame in a queue.
type entry struct {
	frame burst.Frame
	tag   flowtable.Index // whose it is, flowtable.None for a frame of no flow; of a notification, its congestion.Format
}

// ring is a bounded first-in first-out queue of entries over memory that New took from the caller. Frames and tags lie apart, so that
// bursts of frames come and go as they are in the backends' lists: one move, not one a frame.
type ring struct {
	frames []burst.Frame
	tags   []flowtable.Index
	head   int
	n      int
}

const (
	frameSize = int(unsafe.Sizeof(burst.Frame{}))
	entrySize = frameSize + int(unsafe.Sizeof(flowtable.None))
)

// newRing makes a ring over memory of entrySize octets a slot, 8-octet aligned.
func newRing(memory []byte) ring {
	slots := len(memory) / entrySize
	return ring{
		frames: unsafe.Slice((*burst.Frame)(unsafe.Pointer(&memory[0])), slots),
		tags:   unsafe.Slice((*flowtable.Index)(unsafe.Pointer(&memory[slots*frameSize])), slots),
	}
}

func (r *ring) full() bool { return r.n == len(r.frames) }

// place is the slot i places behind the first.
func (r *ring) place(i int) int {
	i += r.head
	if i >= len(r.frames) {
		i -= len(r.frames)
	}
	return i
}

// push needs a ring that isn't full.
func (r *ring) push(e entry) {
	i := r.place(r.n)
	r.frames[i], r.tags[i] = e.frame, e.tag
	r.n++
}

// pushAll needs a ring with room for all.
func (r *ring) pushAll(frames []burst.Frame, tags []flowtable.Index) {
	i := r.place(r.n)
	n := copy(r.frames[i:], frames)
	copy(r.frames, frames[n:])
	copy(r.tags[i:], tags[:n])
	copy(r.tags, tags[n:])
	r.n += len(frames)
}

// pop takes the first entry; the ring must not be empty.
func (r *ring) pop() entry {
	e := entry{r.frames[r.head], r.tags[r.head]}
	r.drop(1)
	return e
}

// front are the first n entries, or those of them that lie in one piece.
func (r *ring) front(n int) ([]burst.Frame, []flowtable.Index) {
	end := min(r.head+n, len(r.frames))
	return r.frames[r.head:end], r.tags[r.head:end]
}

// drop takes the first n entries out.
func (r *ring) drop(n int) {
	r.head = r.place(n)
	r.n -= n
}

// leave takes the first n entries out and returns the octets of their frames.
func (r *ring) leave(n int) (octets uint64) {
	for n > 0 {
		frames, _ := r.front(n)
		for i := range frames {
			octets += uint64(frames[i].Len)
		}
		n -= len(frames)
		r.drop(len(frames))
	}
	return octets
}

// list appends the first frames to tx as far as it has room.
func (r *ring) list(tx []burst.Frame) []burst.Frame {
	n := min(r.n, cap(tx)-len(tx))
	front, _ := r.front(n)
	tx = append(tx, front...)
	return append(tx, r.frames[:n-len(front)]...)
}
