package flowtable

import (
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// bucketsOf are the two buckets that a flow with this hash can be in.
func (t *Table) bucketsOf(h uint64) (first, second *bucket) {
	n := uint64(len(t.buckets)) // even
	a, b := h>>32*n>>32, h&(1<<32-1)*n>>32
	if a == b {
		b ^= 1
	}
	return &t.buckets[a], &t.buckets[b]
}

// Lookup finds the flow of each key, adding those it doesn't know, and stores their indexes in out, which is at least as long. A
// flow that has been idle for longer than Aging, and may have nothing queued, begins anew. What it returns stays valid until the next
// Lookup or Sweep, and for longer as Hold says. An index is None only where there is no room and every flow that
// could make some may have frames queued or is in this Lookup too. It never allocates.
//
// It works in bursts of up to 64 keys, in passes. A pass that touches memory does little else, and waits for none of it: so as many
// lines are on their way at a time as the processor can ask for, where a pass that also computes has a few at most.
func (t *Table) Lookup(keys []Key, now int64, out []Index) {
	t.work = burstWork
	out = out[:len(keys)]
	for at := 0; at < len(keys); at += maxBurst {
		n := min(len(keys)-at, maxBurst)
		hashAll(&t.secret, keys[at:at+n], t.hashes[:n])
		t.touchBuckets(t.hashes[:n])
		if missed := t.pick(n); missed != 0 {
			t.pickOthers(missed)
		}
		t.touchEntries(n)
		t.resolve(keys[at:at+n], now, out[at:at+n])
	}
	t.publish()
}

// The loops over a burst call nothing and check no bounds: an index that a slot holds is an entry's, and a bucket's number is below how many
// there are on a side.

func (t *Table) firstOf(h uint64) *bucket {
	return (*bucket)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(t.buckets)), h>>32*uint64(len(t.buckets))>>32*lineSize))
}

func (t *Table) entryOf(x Index) *entry {
	return (*entry)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(t.entries)), uint64(x)*uint64(unsafe.Sizeof(entry{}))))
}

func (t *Table) trackOf(x Index) *track {
	return (*track)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(t.tracks)), uint64(x)*uint64(unsafe.Sizeof(track{}))))
}

// touchBuckets reads a word of each key's first bucket. Few flows are in their second one.
func (t *Table) touchBuckets(hashes []uint64) {
	for _, h := range hashes {
		t.firstOf(h).tags[0].Load()
	}
}

// pick finds the likely entries of most keys, in the slot of their first bucket that they prefer. It returns a bit for each of the others.
func (t *Table) pick(n int) (missed uint64) {
	hashes, candidates := t.hashes[:n], t.candidates[:n]
	for i, h := range hashes {
		x, ok := t.firstOf(h).preferred(h)
		candidates[i] = x
		if !ok {
			missed |= 1 << i
		}
	}
	return missed
}

// pickOthers is pick for keys whose flow is anywhere else in its first bucket, or in the second one, where it looks once it has touched those.
func (t *Table) pickOthers(missed uint64) {
	others := uint64(0)
	for ; missed != 0; missed &= missed - 1 {
		i := bits.TrailingZeros64(missed) % maxBurst
		h := t.hashes[i]
		first, second := t.bucketsOf(h)
		if m := first.matches(tag(h)); m != 0 {
			t.candidates[i] = first.first(m)
			continue
		}
		others |= 1 << i
		second.tags[0].Load()
	}
	for ; others != 0; others &= others - 1 {
		i := bits.TrailingZeros64(others) % maxBurst
		h := t.hashes[i]
		_, b := t.bucketsOf(h)
		t.candidates[i] = None
		if m := b.matches(tag(h)); m != 0 {
			t.candidates[i] = b.first(m)
		}
	}
}

// touchEntries reads a word of each likely flow's key.
func (t *Table) touchEntries(n int) {
	for _, x := range t.candidates[:n] {
		t.entryOf(x).state.Load()
	}
}

// Touch reads a word of what Routine works on, for the memory to be on its way when the owner goes over flows that Lookup has found.
func (t *Table) Touch(flows []Index) {
	for _, x := range flows {
		atomic.LoadUint32(&t.trackOf(x).known)
	}
}

// protect has no flow of the burst evicted by a key in front of its own: their time is that of the burst, as if they had been found.
func (t *Table) protect(keys []Key, now int64) {
	for i := range keys {
		x := t.candidates[i%maxBurst]
		if x != None && !t.entries[x].plainKey().same(&keys[i]) {
			x = t.find(&keys[i], t.hashes[i%maxBurst]) // behind another flow with its tag
		}
		if e := &t.entries[x]; x != None && now-e.lastSeen <= t.lasting {
			e.lastSeen = now
		}
	}
}

// resolve compares, finds what the first passes could not know of, and adds the rest.
func (t *Table) resolve(keys []Key, now int64, out []Index) {
	protected := false
	for i := t.agree(keys, now, out, 0); i < len(keys); i = t.agree(keys, now, out, i+1) {
		if !protected {
			protected = true
			t.protect(keys, now)
		}
		out[i] = t.findOrAdd(&keys[i], t.hashes[i%maxBurst], t.candidates[i%maxBurst], now)
	}
}

// agree goes over keys whose likely entry is their flow, which goes on, and returns the number of the first that isn't so, from a number on.
func (t *Table) agree(keys []Key, now int64, out []Index, from int) int {
	candidates := t.candidates[:len(keys)]
	out = out[:len(keys)]
	for i := from; i < len(keys); i++ {
		x := candidates[i]
		e := t.entryOf(x)
		if !e.plainKey().same(&keys[i]) {
			return i
		}
		if now-e.lastSeen > t.lasting {
			return i
		}
		if uint32(e.state.Load())>>endingShift != liveBit>>endingShift {
			return i
		}
		e.lastSeen = now
		out[i] = x
	}
	return len(keys)
}

// findOrAdd is the flow of a key for which x may have been found, and which may have ended.
func (t *Table) findOrAdd(k *Key, h uint64, x Index, now int64) Index {
	if x == None || !t.entries[x].plainKey().same(k) {
		x = t.find(k, h)
	}
	if x == None {
		return t.insert(k, h, now)
	}
	t.seen(x, k, now)
	return x
}

// find is the entry of a key: the thorough search for what likely missed, which is an entry that the burst has just added or
// the second of two with one tag.
func (t *Table) find(k *Key, h uint64) Index {
	tag := tag(h)
	first, second := t.bucketsOf(h)
	for _, b := range [...]*bucket{first, second} {
		for i := range slots {
			if x := b.flow(i, tag); x != None && t.entries[x].plainKey().same(k) {
				return x
			}
		}
	}
	return None
}
