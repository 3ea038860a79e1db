// Package virtual provides what virtual time needs: a scheduler of events, random numbers that depend on a seed alone, and memory for a dataplane. The
// replay, the simulator and the tests use it. It reads no clock and starts no goroutine.
package virtual

import (
	"math/bits"
	"unsafe"
)

// Never is the time of an event that isn't scheduled, ns.
const Never = int64(1<<63 - 1)

// Agenda holds at most one scheduled event for each source, and returns them in the order of their times. Events of the same time come in
// the order in which they were scheduled. After New, nothing allocates.
//
// It is a tournament: a binary tree with the sources as leaves, in which each node has the earlier of its children's events.
type Agenda struct {
	tree  []event // the root is 1, the children of n are 2n and 2n+1
	first int     // of the leaves
	count uint64  // events scheduled so far
}

type event struct {
	at     int64
	order  uint64 // ties are ordered by it
	source int
}

// NewAgenda makes an agenda for sources 0 to sources-1.
func NewAgenda(sources int) *Agenda {
	first := 1 << bits.Len(uint(max(sources, 1)-1))
	a := &Agenda{tree: make([]event, 2*first), first: first}
	for i := range a.tree {
		a.tree[i].at = Never
	}
	return a
}

// Next returns the source of the next event, and its time in ns; false if nothing is scheduled. The event stays scheduled.
func (a *Agenda) Next() (source int, at int64, ok bool) {
	e := &a.tree[1]
	return e.source, e.at, e.at != Never
}

// At is the time of the source's event, Never if none is scheduled.
func (a *Agenda) At(source int) int64 { return a.tree[a.first+source].at }

// Set schedules the source's event, replacing an earlier one. An event already scheduled for that time keeps its place in the order. Never
// cancels it.
func (a *Agenda) Set(source int, at int64) {
	n := a.first + source
	if a.tree[n].at == at {
		return
	}
	a.count++
	e := event{at, a.count, source}
	a.tree[n] = e
	for n > 1 {
		other := a.tree[n^1]
		if other.at < e.at || other.at == e.at && other.order < e.order {
			e = other
		}
		n /= 2
		if e == a.tree[n] {
			return // the nodes above are right as well
		}
		a.tree[n] = e
	}
}

// Heap allocates zeroed memory on the Go heap, aligned to 64 bytes, as a dataplane needs it.
func Heap(bytes int) ([]byte, error) {
	const line = 64
	b := make([]byte, bytes+line-1)
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) % line)
	return b[skip : skip+bytes : skip+bytes], nil
}
