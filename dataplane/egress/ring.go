package egress

import (
	"unsafe"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
)

// Ring is a bounded first-in first-out queue of frames in memory from its maker's caller. Each frame has a tag: its flow, or for a frame
// that the gateway originates a value of its own. Frames and tags are separate arrays, so that a burst of frames is copied to or from a
// backend's list at once, not frame by frame.
type Ring struct {
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
func newRing(memory []byte) Ring {
	slots := len(memory) / entrySize
	return Ring{
		frames: unsafe.Slice((*burst.Frame)(unsafe.Pointer(&memory[0])), slots),
		tags:   unsafe.Slice((*flowtable.Ref)(unsafe.Pointer(&memory[slots*frameSize])), slots),
	}
}

// Len is the number of frames.
func (r *Ring) Len() int { return r.n }

// Full reports whether there is no space for another frame.
func (r *Ring) Full() bool { return r.n == len(r.frames) }

// place returns the slot i slots after the first.
func (r *Ring) place(i int) int {
	i += r.head
	if i >= len(r.frames) {
		i -= len(r.frames)
	}
	return i
}

// pushAll needs a ring with space for all.
func (r *Ring) pushAll(frames []burst.Frame, tags []flowtable.Ref) {
	i := r.place(r.n)
	n := copy(r.frames[i:], frames)
	copy(r.frames, frames[n:])
	copy(r.tags[i:], tags[:n])
	copy(r.tags, tags[n:])
	r.n += len(frames)
}

// Push appends a frame to a ring with space for it.
func (r *Ring) Push(f burst.Frame, tag flowtable.Ref) {
	at := r.place(r.n)
	r.frames[at], r.tags[at] = f, tag
	r.n++
}

// Pop removes the first frame; the ring must not be empty.
func (r *Ring) Pop() (burst.Frame, flowtable.Ref) {
	f, tag := r.frames[r.head], r.tags[r.head]
	r.Drop(1)
	return f, tag
}

// At returns the frame i frames after the first.
func (r *Ring) At(i int) (burst.Frame, flowtable.Ref) {
	at := r.place(i)
	return r.frames[at], r.tags[at]
}

// Front returns the first n frames, or those of them that are contiguous.
func (r *Ring) Front(n int) ([]burst.Frame, []flowtable.Ref) {
	end := min(r.head+n, len(r.frames))
	return r.frames[r.head:end], r.tags[r.head:end]
}

// Drop removes the first n frames. An empty ring begins at its first slot again: so a queue that empties in each step stays in the cache.
func (r *Ring) Drop(n int) {
	r.head = r.place(n)
	if r.n -= n; r.n == 0 {
		r.head = 0
	}
}

// bytes is the total length of the frames of the first n.
func (r *Ring) bytes(n int) uint64 {
	front, _ := r.Front(n)
	return Bytes(front) + Bytes(r.frames[:n-len(front)])
}

// Bytes is the total length of frames. It adds four at a time, which costs half as much as one at a time.
func Bytes(frames []burst.Frame) (bytes uint64) {
	for ; len(frames) >= 4; frames = frames[4:] {
		bytes += uint64(frames[0].Len) + uint64(frames[1].Len) + uint64(frames[2].Len) + uint64(frames[3].Len)
	}
	for i := range frames {
		bytes += uint64(frames[i].Len)
	}
	return bytes
}

// list appends the first frames to tx as far as it has space.
func (r *Ring) list(tx []burst.Frame) []burst.Frame {
	n := min(r.n, cap(tx)-len(tx))
	front, _ := r.Front(n)
	tx = append(tx, front...)
	return append(tx, r.frames[:n-len(front)]...)
}
