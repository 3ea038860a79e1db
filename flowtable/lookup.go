package flowtable

import "sync/atomic"

// bucketsOf are the two buckets that a flow with this hash can be in, one on each side of the table.
func (t *Table) bucketsOf(h uint64) (left, right *bucket) {
	return &t.buckets[h>>32*t.half>>32], &t.buckets[t.half+h&(1<<32-1)*t.half>>32]
}

// Lookup finds the flow of each key, adding those it doesn't know, and stores their indexes in out, which is at least as long. A
// flow that has been idle for longer than Aging, with nothing queued, begins anew. What it returns stays valid until the next
// Lookup or Sweep, and for longer while Flow.Queued is not 0. An index is None only where there is no room and every flow that
// could make some has frames queued or is in this Lookup too. It never allocates.
//
// It works in bursts of up to 64 keys, in passes. A pass that touches memory does nothing else, and waits for none of it: so as many
// lines are on their way at a time as the processor can ask for, where a pass that also computes has a few at most.
func (t *Table) Lookup(keys []Key, now int64, out []Index) {
	t.burst++
	t.work = burstWork
	out = out[:len(keys)]
	for at := 0; at < len(keys); at += maxBurst {
		n := min(len(keys)-at, maxBurst)
		hashes := t.hashes[:n]
		hashAll(&t.secret, keys[at:at+n], hashes)
		t.touchBuckets(hashes)
		t.pick(hashes, &t.candidates)
		t.touchEntries(n)
		t.protected = false
		if at > 0 {
			t.protect(out[:at])
		}
		t.resolve(keys[at:at+n], now, out[at:at+n])
	}
	t.publish()
}

// touchBuckets reads a word of each key's left bucket. Few flows are in a right one.
func (t *Table) touchBuckets(hashes []uint64) {
	buckets, half := t.buckets, t.half
	for _, h := range hashes {
		buckets[h>>32*half>>32].tags[0].Load()
	}
}

// pick finds the likely entries: of most keys in their left bucket, of the others, having touched those, in the right one.
func (t *Table) pick(hashes []uint64, candidates *[maxBurst]Index) {
	missed := t.missed[:0]
	buckets, half := t.buckets, t.half
	for i, h := range hashes {
		b := &buckets[h>>32*half>>32]
		m := b.matches(tag(h))
		if m == 0 {
			missed = append(missed, uint8(i))
			continue
		}
		candidates[i%maxBurst] = b.first(m)
	}
	for _, i := range missed {
		buckets[half+hashes[i]&(1<<32-1)*half>>32].tags[0].Load()
	}
	for _, i := range missed {
		h := hashes[i]
		b := &buckets[half+h&(1<<32-1)*half>>32]
		candidates[i%maxBurst] = None
		if m := b.matches(tag(h)); m != 0 {
			candidates[i%maxBurst] = b.first(m)
		}
	}
}

// touchEntries reads a word of each likely flow's key.
func (t *Table) touchEntries(n int) {
	entries := t.entries
	for _, x := range t.candidates[:n] {
		entries[x].state.Load()
	}
}

// Touch reads a word of each line of what Flow and Observe work on, for the memory to be on its way when the owner goes over flows that
// Lookup has found.
func (t *Table) Touch(flows []Index) {
	entries, learners := t.entries, t.learners
	for _, x := range flows {
		atomic.LoadUint64(&entries[x].flow.Packets)
		atomic.LoadUint32(&learners[x].slot)
	}
}

// protect marks flows as part of this Lookup, so that no key in front of theirs can evict them.
func (t *Table) protect(flows []Index) {
	for _, x := range flows {
		if x != None {
			t.entries[x].flow.burst = t.burst
		}
	}
}

// protectLikely is protect for the flows of the keys, as far as they have been found.
func (t *Table) protectLikely(keys []Key) {
	for i := range keys {
		x := t.candidates[i%maxBurst]
		if x != None && !t.entries[x].plainKey().same(&keys[i]) {
			x = t.find(&keys[i], t.hashes[i%maxBurst]) // behind another flow with its tag
		}
		if x != None {
			t.entries[x].flow.burst = t.burst
		}
	}
}

// resolve compares, finds what the first passes could not know of, and adds the rest.
func (t *Table) resolve(keys []Key, now int64, out []Index) {
	for i := range keys {
		k, x := &keys[i], t.candidates[i%maxBurst]
		e := &t.entries[x]
		if x != None && e.plainKey().same(k) && now-e.lastSeen <= t.lasting && state(e.state.Load())&endingMask == 0 {
			e.lastSeen = now
			out[i] = x
			continue
		}
		if !t.protected {
			t.protected = true
			t.protectLikely(keys)
		}
		out[i] = t.findOrAdd(k, t.hashes[i%maxBurst], x, now)
	}
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
	left, right := t.bucketsOf(h)
	for _, b := range [...]*bucket{left, right} {
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
	e.flow.burst = t.burst
}

// renew ends the record of a flow and begins another in its place. What is queued stays the flow's.
func (t *Table) renew(x Index, k *Key, now int64, why Ending) {
	e := &t.entries[x]
	t.dirty = true
	t.insertions++
	t.report(x, why)
	t.leave(x)
	queued, rank := e.flow.Queued, e.flow.Rank
	e.begin(k, t.firstQP(k), now, t.burst)
	if queued != 0 {
		e.flow.Queued, e.flow.Rank = queued, rank
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
	e := &t.entries[x]
	t.ended(e.plainKey(), &e.flow, v)
}

// over tells whether a closed record takes no packets any more.
func (t *Table) over(x Index, s state, now int64) bool {
	pl, ok := t.placeOf(x)
	return s.ending() != EndedDREQ || !ok || now-pl.p.ended[pl.k].Load() > dreqLinger
}

// idle tells whether a flow is over.
func (t *Table) idle(e *entry, now int64) bool {
	return t.aging > 0 && now-e.lastSeen > t.aging && e.flow.Queued == 0
}

// View is what a reader learns of a flow.
type View struct {
	SourceQP uint32 // sure only if State is Confirmed
	State    QPState
	Evidence Evidence
	Notified int64 // time of the last notification in nanoseconds, 0 for never
	Ended    Ending
	// Took is how many of the flow's packets it took to confirm the source QP, Contradictions how often it was wrong to all appearances.
	// Find does not tell these two.
	Took           uint64
	Contradictions uint32
}

// Find looks a flow up without adding it. It is safe for any goroutine, takes no lock and tries once: a flow that the owner
// begins or ends at this moment may be missed, but what it returns belongs to this key.
func (t *Table) Find(k *Key) (View, bool) {
	h := t.hash(k)
	tag := tag(h)
	left, right := t.bucketsOf(h)
	for _, b := range [...]*bucket{left, right} {
		for i := range slots {
			x := b.flow(i, tag)
			if x == None {
				continue
			}
			if v, ok := t.entries[x].view(k); ok {
				return v, true
			}
		}
	}
	return View{}, false
}

// now is the owner's own look at an entry.
func (e *entry) now() View {
	s := state(e.state.Load())
	return View{SourceQP: s.qp(), State: s.qpState(), Evidence: s.evidence(), Notified: e.notified.Load(), Ended: s.ending()}
}

// view reads the entry if it is the flow k and stays it meanwhile.
func (e *entry) view(k *Key) (View, bool) {
	before := e.state.Load()
	if !state(before).live() {
		return View{}, false
	}
	for i, w := range k.words() {
		if e.key[i].Load() != w {
			return View{}, false
		}
	}
	notified := e.notified.Load()
	after := e.state.Load()
	if (before^after)&flowMask != 0 {
		return View{}, false
	}
	s := state(after)
	return View{SourceQP: s.qp(), State: s.qpState(), Evidence: s.evidence(), Notified: notified, Ended: s.ending()}, true
}
