package pacing

import (
	"unsafe"
)

// flowHeaps are the flows with held frames. Those of a host are a leftist heap, with the least served flow on top.
type flowHeaps struct{ pool[pacedFlow] }

// merge merges two leftist heaps, with the least served flow on top. Its depth of recursion is the number of right levels of the heaps: at
// most the logarithm of their flows.
func (f *flowHeaps) merge(a, b uint32) uint32 {
	if a == 0 || b == 0 {
		return a + b
	}
	if f.of[b].served < f.of[a].served {
		a, b = b, a
	}
	top := &f.of[a]
	top.right = f.merge(top.right, b)
	if f.of[top.left].distance < f.of[top.right].distance {
		top.left, top.right = top.right, top.left
	}
	top.distance = f.of[top.right].distance + 1
	return a
}

// dueHeap has the hosts with held frames, a binary heap by dueAt.
type dueHeap struct {
	of    []uint32    // place 0 is unused
	hosts []pacedHost // of the hostTable
}

// before reports whether a host is ready before another one.
func (d *dueHeap) before(a, b uint32) bool { return d.hosts[a].dueAt() < d.hosts[b].dueAt() }

func (d *dueHeap) put(place, at uint32) {
	d.of[place] = at
	d.hosts[at].rank = place
}

// up moves a host from a place in due towards the root as far as it belongs.
func (d *dueHeap) up(place, at uint32) {
	for place > 1 && d.before(at, d.of[place/2]) {
		d.put(place, d.of[place/2])
		place /= 2
	}
	d.put(place, at)
}

// down moves a host from a place in due towards the leaves.
func (d *dueHeap) down(place, at uint32) {
	for {
		child := 2 * place
		if int(child) >= len(d.of) {
			break
		}
		if int(child)+1 < len(d.of) && d.before(d.of[child+1], d.of[child]) {
			child++
		}
		if !d.before(d.of[child], at) {
			break
		}
		d.put(place, d.of[child])
		place = child
	}
	d.put(place, at)
}

// move restores the order after the time at which a host is due has changed.
func (d *dueHeap) move(at uint32) {
	if rank := d.hosts[at].rank; rank != 0 {
		d.up(rank, at)
		d.down(d.hosts[at].rank, at)
	}
}

// add adds a host.
func (d *dueHeap) add(at uint32) {
	d.of = append(d.of, at) // within its capacity: each host is in it once
	d.up(uint32(len(d.of)-1), at)
}

// remove removes the host at a place from due.
func (d *dueHeap) remove(place uint32) {
	end := uint32(len(d.of) - 1)
	last := d.of[end]
	d.of = d.of[:end]
	if place != end {
		d.up(place, last)
		d.down(d.hosts[last].rank, last)
	}
}

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
