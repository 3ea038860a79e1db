package pacing

import "unsafe"

// pool allocates the slots of an array; slot 0 means none. Memory that was never allocated stays untouched.
type pool[T any] struct {
	of   []T
	next []uint32 // of a free slot, the next free one; of one in use, its user's value
	free uint32
	used uint32 // maximum number of slots in use at a time
}

// poolSize is the memory that a pool of this many slots needs, in bytes: a multiple of 8, if T's size is.
func poolSize[T any](places int) int {
	var one T
	return (places + 2) &^ 1 * (int(unsafe.Sizeof(one)) + int(unsafe.Sizeof(uint32(0))))
}

// newPool makes a pool in zeroed memory, 8-byte aligned, and returns the rest of the memory.
func newPool[T any](memory []byte, places int) (p pool[T], rest []byte) {
	n := (places + 2) &^ 1 // even, so that the rest is aligned
	p.of, memory = carve[T](memory, n)
	p.next, memory = carve[uint32](memory, n)
	p.of, p.next = p.of[:places+1], p.next[:places+1]
	return p, memory
}

// carve takes n values from the front of memory.
func carve[T any](memory []byte, n int) (of []T, rest []byte) {
	of = unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(memory))), n)
	return of, memory[n*int(unsafe.Sizeof(of[0])):]
}

// take returns a free slot, cleared; 0 if there is none.
func (p *pool[T]) take() uint32 {
	at := p.free
	switch {
	case at != 0:
		p.free = p.next[at]
	case int(p.used)+1 < len(p.of):
		p.used++
		at = p.used
	default:
		return 0
	}
	var empty T
	p.of[at], p.next[at] = empty, 0
	return at
}

// give frees a slot.
func (p *pool[T]) give(at uint32) {
	p.next[at] = p.free
	p.free = at
}
