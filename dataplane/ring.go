package dataplane

import (
	"unsafe"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
)

// entry is a frame in a queue.
type entry struct {
	frame burst.Frame
	tag   flowtable.Ref // the frame's flow; for frames that the gateway originates, Index is a tag, see Worker.push
}

// ring is a bounded first-in first-out queue of entries in memory from New's caller. Frames and tags are separate arrays, so that a burst
// of frames is copied to or from a backend's list at once, not frame by frame.
type ring struct {
	frames []burst.Frame
	tags   []flowtable.Ref
	head   int
	n      int
}

const (
	frameSize = int(unsafe.Sizeof(burst.Frame{}))
	entrySize = frameSize + int(unsafe.Sizeof(flowtable.Ref{}))
)

// newRing makes a ring in memory of entrySize bytes a slot, 8-byte aligned.
func newRing(memory []byte) ring {
	slots := len(memory) / entrySize
	return ring{
		frames: unsafe.Slice((*burst.Frame)(unsafe.Pointer(&memory[0])), slots),
		tags:   unsafe.Slice((*flowtable.Ref)(unsafe.Pointer(&memory[slots*frameSize])), slots),
	}
}

func (r *ring) full() bool { return r.n == len(r.frames) }

// place returns the slot i slots after the first.
func (r *ring) place(i int) int {
	i += r.head
	if i >= len(r.frames) {
		i -= len(r.frames)
	}
	return i
}

// pushAll needs a ring with space for all.
func (r *ring) pushAll(frames []burst.Frame, tags []flowtable.Ref) {
	i := r.place(r.n)
	n := copy(r.frames[i:], frames)
	copy(r.frames, frames[n:])
	copy(r.tags[i:], tags[:n])
	copy(r.tags, tags[n:])
	r.n += len(frames)
}

// pop removes the first entry; the ring must not be empty.
func (r *ring) pop() entry {
	e := entry{r.frames[r.head], r.tags[r.head]}
	r.drop(1)
	return e
}

// front returns the first n entries, or those of them that are contiguous.
func (r *ring) front(n int) ([]burst.Frame, []flowtable.Ref) {
	end := min(r.head+n, len(r.frames))
	return r.frames[r.head:end], r.tags[r.head:end]
}

// drop removes the first n entries. An empty ring begins at its first slot again: so a queue that empties in each step stays in the cache.
func (r *ring) drop(n int) {
	r.head = r.place(n)
	if r.n -= n; r.n == 0 {
		r.head = 0
	}
}

// bytes is the total length of the frames of the first n entries.
func (r *ring) bytes(n int) uint64 {
	front, _ := r.front(n)
	return bytesOf(front) + bytesOf(r.frames[:n-len(front)])
}

// bytesOf is the total length of frames. It adds four at a time, which costs half as much as one at a time.
func bytesOf(frames []burst.Frame) (bytes uint64) {
	for ; len(frames) >= 4; frames = frames[4:] {
		bytes += uint64(frames[0].Len) + uint64(frames[1].Len) + uint64(frames[2].Len) + uint64(frames[3].Len)
	}
	for i := range frames {
		bytes += uint64(frames[i].Len)
	}
	return bytes
}

// list appends the first frames to tx as far as it has space.
func (r *ring) list(tx []burst.Frame) []burst.Frame {
	n := min(r.n, cap(tx)-len(tx))
	front, _ := r.front(n)
	tx = append(tx, front...)
	return append(tx, r.frames[:n-len(front)]...)
}
