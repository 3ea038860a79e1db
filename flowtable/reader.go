package flowtable

import (
	"math/bits"
	"unsafe"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// Ref names a flow for as long as it lives: another flow that gets its index has another generation. The zero Ref names none.
type Ref struct {
	Index      Index
	Generation uint32
}

// Reader is the part of a Table that any goroutine may use at any time. Its methods take no lock and never delay the owner.
type Reader struct { // set by New and never changed
	secret  [secrets]uint64
	buckets []bucket
	entries []entry        // entry 0 is never a flow: it has the key of packets without a flow, so that lookups need no exception for them
	beside  unsafe.Pointer // see Table.Beside
	twins   twins
}

var _ [0]byte = [unsafe.Offsetof(Table{}.Reader)]byte{} // where the assembly expects it

// Capacity is the largest number of flows of the table.
func (r *Reader) Capacity() int { return len(r.entries) - 1 }

// State is a flow's state. The state of an index without a flow is not Live.
func (r *Reader) State(x Index) State { return State(r.entryOf(x).state.Load()) }

// States is where the State of index 0 lies. The State of each next index lies StateStride bytes further. It is for assembly; others call State.
func (r *Reader) States() unsafe.Pointer { return unsafe.Pointer(&r.entries[None].state) }

// StateStride is the distance of two States, in bytes.
const StateStride = lineSize

// SetAnswer replaces a flow's answer if its state is still was, and reports whether it did.
func (r *Reader) SetAnswer(x Index, was State, a Answer) bool {
	return r.entryOf(x).state.CompareAndSwap(uint64(was), uint64(was.with(a)))
}

// Ref names the flow that has an index now; the zero Ref for None.
func (r *Reader) Ref(x Index) Ref { return Ref{x, r.State(x).Generation()} }

// Live reports whether the flow that f names has not ended.
func (r *Reader) Live(f Ref) bool {
	s := r.State(f.Index)
	return s.Live() && s.Generation() == f.Generation
}

// Find looks up a flow without adding it, and returns its index and its state at that time. It tries once. It may miss a flow that the owner
// begins or ends at this moment, but its result always belongs to this key.
func (r *Reader) Find(k *Key) (Index, State, bool) {
	h := r.hash(k)
	tag := tag(h)
	first, second := r.bucketsOf(h)
	for _, b := range [...]*bucket{first, second} {
		for m := b.with(tag); m != 0; m &= m - 1 {
			x := b.at(bits.TrailingZeros64(m))
			if s, ok := r.entries[x].is(k); ok {
				return x, s, true
			}
		}
	}
	return None, 0, false
}

// KeyAt is the key of a flow of any worker, given its state; ok is false if that has changed, but for the answer.
func (r *Reader) KeyAt(x Index, s State) (k Key, ok bool) {
	e := r.entryOf(x)
	words := (*[keyWords]uint64)(unsafe.Pointer(&k))
	for i := range words {
		words[i] = e.key[i].Load()
	}
	return k, (s^State(e.state.Load()))&flowMask == 0
}

// bucketsOf are the two buckets that a flow with this hash can be in.
func (r *Reader) bucketsOf(h uint64) (first, second *bucket) {
	n := uint64(len(r.buckets)) // even
	a, b := h>>32*n>>32, h&(1<<32-1)*n>>32
	if a == b {
		b ^= 1
	}
	return &r.buckets[a], &r.buckets[b]
}

func (r *Reader) firstOf(h uint64) *bucket {
	return (*bucket)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(r.buckets)), h>>32*uint64(len(r.buckets))>>32*lineSize))
}

func (r *Reader) entryOf(x Index) *entry {
	return (*entry)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(r.entries)), uint64(x)*uint64(unsafe.Sizeof(entry{}))))
}

func (r *Reader) hash(k *Key) uint64 {
	var h [1]uint64
	hashAll(&r.secret, []packet.Record{{Flow: k.Words()}}, h[:])
	return h[0]
}
