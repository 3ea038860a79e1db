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

// seen notes that a flow goes on, or begins it anew if it had been idle for too long.
func (t *Table) seen(x Index, k *Key, now int64) {
	e := &t.entries[x]
	if t.idle(e, now) {
		t.aged++
		t.renew(x, k, now, EndedAged)
		return
	}
	if s := state(e.state.Load()); s.ending() != Open && t.over(x, s, now) {
		t.renew(x, k, now, s.ending())
		return
	}
	e.lastSeen = now
}

// renew ends the record of a flow and begins another in its place. What is queued stays the flow's.
func (t *Table) renew(x Index, k *Key, now int64, why Ending) {
	e := &t.entries[x]
	t.dirty = true
	t.insertions++
	t.report(x, why)
	t.leave(x)
	var queued, rank uint32
	var class uint8
	if e.lastSeen >= t.held {
		queued, rank, class = t.accounts[x].share(e)
	}
	e.begin(k, t.firstQP(k), now)
	t.tracks[x] = track{exact: unsettled}
	if queued != 0 {
		a := t.Account(x)
		a.Queued, a.Rank, a.Class = queued, rank, class
	}
}

// report tells the caller of a flow's end.
func (t *Table) report(x Index, why Ending) {
	if t.ended == nil {
		return
	}
	v := t.View(x)
	if v.Ended == Open {
		v.Ended = why
	}
	t.last = t.Flow(x)
	t.ended(t.entries[x].plainKey(), &t.last, v)
}

// over tells whether a closed record takes no packets any more.
func (t *Table) over(x Index, s state, now int64) bool {
	pl, ok := t.placeOf(x)
	return s.ending() != EndedDREQ || !ok || now-pl.p.ended[pl.k].Load() > dreqLinger
}

// idle tells whether a flow is over.
func (t *Table) idle(e *entry, now int64) bool {
	return t.aging > 0 && now-e.lastSeen > t.aging && e.lastSeen < t.held
}

// Hold keeps flows that were seen at the time since or later from being removed, until it is called again: they may have frames queued,
// which name them by their index.
func (t *Table) Hold(since int64) { t.held = since }

// View is what a reader learns of a flow.
type View struct {
	SourceQP uint32 // sure only if State is Confirmed
	State    QPState
	Evidence Evidence
	Notified int64 // time of the last notification in nanoseconds, 0 for never
	Ended    Ending
	// Took is how many of the flow's packets it took to confirm the source QP, 0 if nobody counted since it has no place; Contradictions how
	// often that was wrong to all appearances.
	// Find does not tell these two.
	Took           uint64
	Contradictions uint32
}

// Find looks a flow up without adding it. It is safe for any goroutine, takes no lock and tries once: a flow that the owner
// begins or ends at this moment may be missed, but what it returns belongs to this key.
func (t *Table) Find(k *Key) (View, bool) {
	h := t.hash(k)
	tag := tag(h)
	first, second := t.bucketsOf(h)
	for _, b := range [...]*bucket{first, second} {
		for i := range slots {
			x := b.flow(i, tag)
			if x == None {
				continue
			}
			if v, ok := t.entries[x].view(k, &t.accounts[x]); ok {
				return v, true
			}
		}
	}
	return View{}, false
}

// now is the owner's own look at an entry.
func (e *entry) now(a *Account) View {
	s := state(e.state.Load())
	v := View{SourceQP: s.qp(), State: s.qpState(), Evidence: s.evidence(), Ended: s.ending()}
	if a.generation.Load() == s.generation() {
		v.Notified = a.told
	}
	return v
}

// view reads the entry if it is the flow k and stays it meanwhile.
func (e *entry) view(k *Key, a *Account) (View, bool) {
	before := e.state.Load()
	if !state(before).live() {
		return View{}, false
	}
	for i, w := range k.words() {
		if e.key[i].Load() != w {
			return View{}, false
		}
	}
	notified := a.of(state(before).generation())
	after := e.state.Load()
	if (before^after)&flowMask != 0 {
		return View{}, false
	}
	s := state(after)
	return View{SourceQP: s.qp(), State: s.qpState(), Evidence: s.evidence(), Notified: notified, Ended: s.ending()}, true
}
