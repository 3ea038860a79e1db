package flowtable

import (
	"math/bits"
	"unsafe"
)

// Find looks up a flow without adding it, and returns its index and its state at that time. It is safe for any goroutine, takes no lock and
// tries once. It may miss a flow that the owner begins or ends at this moment, but its result always belongs to this key.
func (t *Table) Find(k *Key) (Index, State, bool) {
	h := t.hash(k)
	tag := tag(h)
	first, second := t.bucketsOf(h)
	for _, b := range [...]*bucket{first, second} {
		for m := b.with(tag); m != 0; m &= m - 1 {
			x := b.at(bits.TrailingZeros64(m))
			if s, ok := t.entries[x].is(k); ok {
				return x, s, true
			}
		}
	}
	return None, 0, false
}

// KeyAt is the key of a flow of any worker, given its state; ok is false if that has changed, but for the answer.
func (t *Table) KeyAt(x Index, s State) (k Key, ok bool) {
	e := t.entryOf(x)
	words := (*[keyWords]uint64)(unsafe.Pointer(&k))
	for i := range words {
		words[i] = e.key[i].Load()
	}
	return k, (s^State(e.state.Load()))&flowMask == 0
}

// is reports whether the entry was the flow with key k during the whole comparison. It returns the flow's state.
func (e *entry) is(k *Key) (State, bool) {
	before := State(e.state.Load())
	if !before.Live() {
		return 0, false
	}
	for i, w := range k.words() {
		if e.key[i].Load() != w {
			return 0, false
		}
	}
	after := State(e.state.Load())
	return after, (before^after)&flowMask == 0
}
