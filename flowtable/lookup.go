package flowtable

import (
	"math/bits"
	"unsafe"

	"github.com/cnpgate/cnpgate/internal/packet"
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

// Lookup finds the flow of each key, adds flows that are not in the table, and stores the flows in out, which must be at least as long as
// keys. A flow that has been idle for longer than Aging ends, and another one begins. The flows live at least until the next Lookup or
// Sweep; after that, check Live. A Ref is zero if the table is full and no flow may be evicted: the candidates are in this burst too, or 4
// flows were already evicted for these 64 keys. Lookup never allocates.
//
// now is the time in nanoseconds, by the caller's clock. Sweep and Renew need times by the same clock.
//
// It works on up to 64 keys at a time, in passes. A pass that touches memory does little else and doesn't wait for it. So the processor
// fetches as many cache lines in parallel as it can. If the pass also computed, the processor would fetch only a few.
func (t *Table) Lookup(packets []packet.Record, now int64, out []Ref) {
	var keys [maxBurst]Key
	for i := range packets {
		keys[i] = *KeyOf(&packets[i])
	}
	t.lookup(keys[:len(packets)], now, out)
	for i := range packets {
		if packets[i].Flow == packet.NoFlow {
			out[i] = Ref{}
		}
	}
}

func (t *Table) lookup(keys []Key, now int64, out []Ref) {
	out = out[:len(keys)]
	for at := 0; at < len(keys); at += maxBurst {
		n := min(len(keys)-at, maxBurst)
		t.evictionsLeft = maxEvictions
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

// The loops over a burst make no calls and check no bounds. The checks aren't needed: an index in a slot is always that of an entry, and a
// bucket's number is always below the number of buckets.

func (t *Table) firstOf(h uint64) *bucket {
	return (*bucket)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(t.buckets)), h>>32*uint64(len(t.buckets))>>32*lineSize))
}

func (t *Table) entryOf(x Index) *entry {
	return (*entry)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(t.entries)), uint64(x)*uint64(unsafe.Sizeof(entry{}))))
}

// touchBuckets reads a word of each key's first bucket. Few flows are in their second one.
func (t *Table) touchBuckets(hashes []uint64) {
	for _, h := range hashes {
		t.firstOf(h).tags[0].Load()
	}
}

// pick finds the likely entry of each key whose flow is in its preferred slot, as most flows are. It returns a bit for each other key.
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

// pickOthers does the same for keys whose flow is in another slot of the first bucket, or in the second bucket. It touches all second
// buckets before it reads one.
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

// protect prevents that a flow of the burst is evicted for an earlier key of the burst. It sets their times to that of the burst, as if
// they had been found already.
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

// resolve compares keys with their likely entries, finds the flows that the first passes missed, and adds those that are not in the table.
func (t *Table) resolve(keys []Key, now int64, out []Ref) {
	protected := false
	for i := t.agree(keys, now, out, 0); i < len(keys); i = t.agree(keys, now, out, i+1) {
		if !protected {
			protected = true
			t.protect(keys, now)
		}
		out[i] = t.Ref(t.findOrAdd(&keys[i], t.hashes[i%maxBurst], t.candidates[i%maxBurst], now))
	}
}

// agree checks keys, beginning at number from, while each key's likely entry is its flow and the flow has not aged. It returns the number
// of the first other key, or len(keys).
func (t *Table) agree(keys []Key, now int64, out []Ref, from int) int {
	candidates := t.candidates[:len(keys)]
	out = out[:len(keys)]
	aged := now - t.lasting
	for i := from; i < len(keys); i++ {
		x := candidates[i]
		e := t.entryOf(x)
		if !e.plainKey().same(&keys[i]) {
			return i
		}
		if e.lastSeen < aged {
			return i
		}
		e.lastSeen = now
		out[i] = Ref{x, State(e.state.Load()).Generation()}
	}
	return len(keys)
}

// findOrAdd finds or adds the flow of a key whose likely entry is x.
func (t *Table) findOrAdd(k *Key, h uint64, x Index, now int64) Index {
	if x == None || !t.entries[x].plainKey().same(k) {
		x = t.find(k, h)
	}
	if x == None {
		return t.insert(k, h, now)
	}
	t.seen(x, now)
	return x
}

// find returns the entry of a key after a search of both buckets. It finds flows that the likely entry missed: a flow that this burst has
// just added, or the second of two flows with the same tag.
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
