// Package ring is a first-in first-out queue.
package ring

// Ring is a queue that grows and never shrinks. Its zero value is empty.
type Ring[T any] struct {
	items []T // the length is a power of two
	head  int
	count int
}

// Len is the number of items in the queue.
func (r *Ring[T]) Len() int { return r.count }

// At returns the i-th item from the front, which must exist.
func (r *Ring[T]) At(i int) *T { return &r.items[(r.head+i)&(len(r.items)-1)] }

// Push adds an item at the end.
func (r *Ring[T]) Push(item T) {
	if r.count == len(r.items) {
		r.grow()
	}
	r.count++
	*r.At(r.count - 1) = item
}

// Pop removes and returns the front item, which must exist.
func (r *Ring[T]) Pop() T {
	var zero T
	front := r.At(0)
	item := *front
	*front = zero
	r.head = (r.head + 1) & (len(r.items) - 1)
	r.count--
	return item
}

// Clear removes all items and keeps their memory.
func (r *Ring[T]) Clear() {
	clear(r.items)
	r.head, r.count = 0, 0
}

func (r *Ring[T]) grow() {
	const smallest = 4
	items := make([]T, max(smallest, 2*len(r.items)))
	for i := range r.count {
		items[i] = *r.At(i)
	}
	r.items, r.head = items, 0
}
