package flowtable

import (
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// bucket is a cache line of slots. A slot has a tag, which is 16 bits of the flow's hash and not 0, and the flow's index. The tag of an
// empty slot is 0. Tags lie side by side, so that four are compared at a time. Only the owner writes. It sets a tag after the index, and
// clears it before the index changes. A reader that follows an index compares the flow's own key with the key that it looks for.
type bucket struct {
	tags  [slots / tagsAWord]atomic.Uint64
	flows [slots]atomic.Uint32
	_     [2]uint64
}

const (
	slots     = 8 // of a bucket
	tagBits   = 16
	tagsAWord = 64 / tagBits
	tagMask   = 1<<tagBits - 1
	ones      = 0x0001_0001_0001_0001 // in each tag
	lows      = 0x7fff_7fff_7fff_7fff // all but the highest bit of each tag
)

// tag is the part of a hash that a slot keeps: low bits, since the highest bits of the hash's two halves choose the buckets.
func tag(h uint64) uint16 { return uint16(h) | 1 }

// slotOf is the slot that a flow prefers, and uses if it is empty: there a lookup finds it by one comparison.
func slotOf(h uint64) uint { return uint(h>>32) % slots }

// preferred returns the flow in the slot that a flow with this hash prefers, and whether that slot has the hash's tag. It reads the tag
// directly from memory, which requires a little-endian processor, like keys and packet.ParsePlain.
func (b *bucket) preferred(h uint64) (Index, bool) {
	at := slotOf(h)
	return Index(b.flows[at].Load()), (*[slots]uint16)(unsafe.Pointer(&b.tags))[at] == tag(h)
}

// zeros sets the highest bit of each of the four tags in a word that is 0.
func zeros(w uint64) uint64 { return ^((w&lows + lows) | w | lows) }

// matches has a bit for each slot with a tag: bits 0, 16, 32 and 48 for the first four, the next bits for the others.
func (b *bucket) matches(tag uint16) uint64 {
	all := uint64(tag) * ones
	return zeros(b.tags[0].Load()^all)>>(tagBits-1) | zeros(b.tags[1].Load()^all)>>(tagBits-2)
}

// first is the flow of the first slot in matches, which must not be 0. In about one of several thousand cases it is another flow with the
// same tag.
func (b *bucket) first(matches uint64) Index {
	at := uint(bits.TrailingZeros64(matches))
	return Index(b.flows[(at/tagBits|at%2*tagsAWord)%slots].Load())
}

// flow is the flow of a slot if the slot has the given tag; None otherwise.
func (b *bucket) flow(slot int, tag uint16) Index {
	if b.tag(slot) != tag {
		return None
	}
	return Index(b.flows[slot].Load())
}

func (b *bucket) tag(slot int) uint16 {
	return uint16(b.tags[slot/tagsAWord].Load() >> (slot % tagsAWord * tagBits))
}

// any is the flow of a slot; None if the slot is empty.
func (b *bucket) any(slot int) Index {
	if b.tag(slot) == 0 {
		return None
	}
	return Index(b.flows[slot].Load())
}

// free counts the empty slots.
func (b *bucket) free() int {
	return bits.OnesCount64(zeros(b.tags[0].Load())) + bits.OnesCount64(zeros(b.tags[1].Load()))
}

// add puts a flow into the slot that it prefers, or into the first empty one if that is taken. The bucket must not be full.
func (b *bucket) add(h uint64, x Index) {
	tag := tag(h)
	if at := slotOf(h); b.tag(int(at)) == 0 {
		b.flows[at].Store(uint32(x))
		w := &b.tags[at/tagsAWord]
		w.Store(w.Load() | uint64(tag)<<(at%tagsAWord*tagBits))
		return
	}
	for i := range b.tags {
		w := b.tags[i].Load()
		empty := zeros(w)
		if empty == 0 {
			continue
		}
		at := bits.TrailingZeros64(empty) / tagBits
		b.flows[i*tagsAWord+at].Store(uint32(x))
		b.tags[i].Store(w | uint64(tag)<<(at*tagBits))
		return
	}
}

// remove empties the slot of a flow, and reports whether the flow had one here.
func (b *bucket) remove(x Index) bool {
	for slot := range slots {
		if b.any(slot) == x {
			w := &b.tags[slot/tagsAWord]
			w.Store(w.Load() &^ (tagMask << (slot % tagsAWord * tagBits)))
			return true
		}
	}
	return false
}
