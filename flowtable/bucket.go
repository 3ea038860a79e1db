package flowtable

import (
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// bucket is a cache line of slots. A slot has a tag, which is 16 bits of the flow's hash and not 0, and the flow's index. The tag of an
// empty slot is 0. Tags lie side by side, so that all are compared at a time. Only the owner writes. It sets a tag after the index, and
// clears it before the index changes. A reader that follows an index compares the flow's own key with the key that it looks for.
type bucket struct {
	tags  [slots / tagsAWord]atomic.Uint64
	flows [slots + 1]atomic.Uint32 // the last one is None: the flow of a tag that no slot has
	_     [3]uint32
}

var _ [lineSize]byte = [unsafe.Sizeof(bucket{})]byte{}

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

// zeros has a bit for each of the four tags in a word that is 0: bit 0 for the lowest.
func zeros(w uint64) uint64 {
	const gather = 1<<48 | 1<<33 | 1<<18 | 1<<3 // moves bits 0, 16, 32 and 48 to 48, 49, 50 and 51
	highest := ^((w&lows + lows) | w | lows)
	return highest >> (tagBits - 1) * gather >> 48
}

// with has a bit for each slot that has a tag: bit 0 for the first slot.
func (b *bucket) with(tag uint16) uint64 {
	all := uint64(tag) * ones
	return zeros(b.tags[0].Load()^all) | zeros(b.tags[1].Load()^all)<<tagsAWord
}

// flow is the flow of the first slot with a tag, None if there is no such slot. In about one of several thousand cases it is another flow
// with the same tag.
func (b *bucket) flow(tag uint16) Index { return b.at(bits.TrailingZeros64(b.with(tag) | 1<<slots)) }

// at is the flow of a slot that isn't empty.
func (b *bucket) at(slot int) Index { return Index(b.flows[slot].Load()) }

func (b *bucket) empty() uint64 { return b.with(0) }

func (b *bucket) used() uint64 { return b.with(0) ^ (1<<slots - 1) }

// free counts the empty slots.
func (b *bucket) free() int { return bits.OnesCount64(b.empty()) }

// add puts a flow into the first empty slot. The bucket must not be full.
func (b *bucket) add(tag uint16, x Index) {
	at := bits.TrailingZeros64(b.empty()) % slots
	b.flows[at].Store(uint32(x))
	w := &b.tags[at/tagsAWord]
	w.Store(w.Load() | uint64(tag)<<(at%tagsAWord*tagBits))
}

// remove empties the slot of a flow, and reports whether the flow had one here.
func (b *bucket) remove(x Index) bool {
	for used := b.used(); used != 0; used &= used - 1 {
		slot := bits.TrailingZeros64(used)
		if b.at(slot) == x {
			w := &b.tags[slot/tagsAWord]
			w.Store(w.Load() &^ (tagMask << (slot % tagsAWord * tagBits)))
			return true
		}
	}
	return false
}
