package dataplane

import (
	"unsafe"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
)

// entry is a frame in a queue and whose it is. Free of pointers, 32 octets: rings of it live off the heap.
type entry struct {
	frame burst.Frame
	flow  flowtable.Index // flowtable.None for a frame of no flow
	kind  uint32          // of a notification: its congestion.Format
}

const entrySize = int(unsafe.Sizeof(entry{}))

// ring is a bounded first-in first-out queue of entries over memory that New took from the caller.
type ring struct {
	slots []entry
	head  int
	n     int
}

// newRing makes a ring over memory of entrySize octets a slot, 8-octet aligned.
func newRing(memory []byte) ring {
	return ring{slots: unsafe.Slice((*entry)(unsafe.Pointer(unsafe.SliceData(memory))), len(memory)/entrySize)}
}

func (r *ring) full() bool { return r.n == len(r.slots) }

// at is the entry i places behind the first.
func (r *ring) at(i int) *entry {
	i += r.head
	if i >= len(r.slots) {
		i -= len(r.slots)
	}
	return &r.slots[i]
}

// push needs a ring that isn't full.
func (r *ring) push(e entry) {
	*r.at(r.n) = e
	r.n++
}

// pop takes the first entry; the ring must not be empty.
func (r *ring) pop() entry {
	e := r.slots[r.head]
	r.head++
	if r.head == len(r.slots) {
		r.head = 0
	}
	r.n--
	return e
}
