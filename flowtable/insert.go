package flowtable

import "math/bits"

const (
	// searchWindow is the maximum number of entries checked for a victim outside the candidate buckets.
	searchWindow = 64
	// maxEvictions bounds the evictions in a pass of Lookup. An insertion with an eviction costs several times as much as finding a flow.
	// So packets of forged flows can use only a part of the owner's time.
	maxEvictions = 4
	// keptFor is the time in nanoseconds without packets for which a flow is kept that Config.Keep is about.
	keptFor = 1e9
)

// insert adds a flow that is not in the table to a slot that is empty.
func (t *Table) insert(b *bucket, slot int, k *Key, h uint64, now int64) Index {
	t.dirty = true
	x := t.unused.take(t.entries)
	begin(&t.entries[x], k, now)
	fill(b, slot, tag(h), x)
	if uint32(x) <= t.listed {
		t.twins.list(&t.secret, x, t.Key(x))
	}
	if first := t.firstOf(h); b != first {
		first.moved++
	}
	t.flows++
	t.insertions++
	if t.observer != nil {
		t.observer.Begin(x)
	}
	return x
}

// evictFor evicts a flow for a key with this hash. It returns an empty slot for the key's flow, in b unless b is nil; no bucket if it may not
// evict any.
func (t *Table) evictFor(b *bucket, slot int, h uint64, now int64) (*bucket, int) {
	v := t.victims.choose(&t.Reader, t.unused.high, h, b != nil, now)
	if v == None {
		t.dirty = true
		t.refused++
		return nil, 0
	}
	t.end(v, now)
	if b == nil {
		return t.emptySlot(h)
	}
	return b, slot
}

// victims chooses the flows to evict.
type victims struct {
	hand uint32 // where the next search begins
	left int    // how many more may be evicted in this pass of Lookup
	keep func(Answer) bool
}

// choose returns the flow to evict for a key with this hash; None if there is none. If the key's buckets have a free slot (any), any flow will
// do. Entries from 1 to high have been used.
func (v *victims) choose(r *Reader, high uint32, h uint64, any bool, now int64) Index {
	if v.left == 0 {
		return None
	}
	v.left--
	oldest := None
	first, second := r.bucketsOf(h)
	for _, b := range [...]*bucket{first, second} {
		for used := b.used(); used != 0; used &= used - 1 {
			oldest = v.older(r.entries, oldest, b.at(bits.TrailingZeros64(used)), now)
		}
	}
	if oldest == None && any {
		for range min(searchWindow, high) {
			v.hand = v.hand%high + 1
			oldest = v.older(r.entries, oldest, Index(v.hand), now)
		}
	}
	return oldest
}

// older is x if x is evictable and was seen before oldest, otherwise oldest.
func (v *victims) older(entries []entry, oldest, x Index, now int64) Index {
	e := &entries[x]
	if !e.evictable(now) || oldest != None && e.lastSeen >= entries[oldest].lastSeen || v.keep != nil && now-e.lastSeen < keptFor && v.keep(State(e.state.Load()).Answer()) {
		return oldest
	}
	return x
}

// spare is the number of free slots with which the first bucket is used without checking the second one.
const spare = 3

// emptySlot is the first empty slot for a new flow: in the first bucket while that has enough empty slots, so that lookups find most flows there;
// then in the emptier of the two; no bucket if both are full. That is rare, because the buckets of a full table are half full on average.
func (t *Table) emptySlot(h uint64) (b *bucket, slot int) {
	b = t.firstOf(h)
	empty := b.empty()
	if n := bits.OnesCount64(empty); n < spare {
		_, second := t.bucketsOf(h)
		if others := second.empty(); bits.OnesCount64(others) > n {
			b, empty = second, others
		}
		if empty == 0 {
			return nil, 0
		}
	}
	return b, bits.TrailingZeros64(empty) % slots
}

// unused are the entries without a flow. Entries from 1 to high have been used; those of them that are free are in a list, linked through
// entry.lastSeen, whose first one is free.
type unused struct{ high, free uint32 }

// none reports whether each entry has a flow.
func (u *unused) none(entries []entry) bool { return u.free == 0 && int(u.high) == len(entries)-1 }

// take takes an entry. There must be one.
func (u *unused) take(entries []entry) Index {
	if x := u.free; x != 0 {
		u.free = uint32(entries[x].lastSeen - unseen)
		return Index(x)
	}
	u.high++
	return Index(u.high)
}

// put adds an entry whose flow has ended.
func (u *unused) put(x Index, e *entry) {
	e.lastSeen = unseen + int64(u.free)
	u.free = uint32(x)
}

// end removes a flow.
func (t *Table) end(x Index, now int64) {
	e := &t.entries[x]
	t.dirty = true
	why := Evicted
	if e.idle(t.aging, now) {
		why = Aged
		t.aged++
	} else {
		t.evictions++
	}
	if t.observer != nil {
		t.observer.End(x, why)
	}
	t.unlink(x)
	if uint32(x) <= t.listed {
		t.twins.unlist(&t.secret, x, t.Key(x))
	}
	e.end()
	t.unused.put(x, e)
	t.flows--
}

// unlink clears the slot that leads to an entry.
func (t *Table) unlink(x Index) {
	if first, second := t.bucketsOf(t.hash(t.entries[x].plainKey())); !first.remove(x) {
		first.moved--
		second.remove(x)
	}
}
