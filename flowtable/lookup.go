package flowtable

import "sync/atomic"

// bucket is a cache line of slots. A slot is 0, or the fingerprint of a flow's hash (high half) and the flow's index (low half).
type bucket [slots]atomic.Uint64

// bucketsOf are the two buckets that a flow with this hash can be in, one on each side of the table.
func (t *Table) bucketsOf(h uint64) (left, right *bucket) {
	return &t.buckets[h>>32*t.half>>32], &t.buckets[t.half+h&(1<<32-1)*t.half>>32]
}

// Lookup finds the flow of each key, adding those it doesn't know, and stores their indexes in out, which is at least as long. A
// flow that has been idle for longer than Aging, with nothing queued, begins anew. What it returns stays valid until the next
// Lookup or Sweep, and for longer while Flow.Queued is not 0. An index is None only where there is no room and every flow that
// could make some has frames queued or is in this Lookup too. It works in bursts of up to 64 keys, in three passes, so that the
// memory it needs for one key arrives while it works on the others. It never allocates.
func (t *Table) Lookup(keys []Key, now int64, out []Index) {
	t.burst++
	t.work = burstWork
	out = out[:len(keys)]
	for len(keys) > 0 {
		n := min(len(keys), maxBurst)
		t.touchBuckets(keys[:n])
		t.touchEntries(n)
		t.resolve(keys[:n], now, out[:n])
		keys, out = keys[n:], out[n:]
	}
	t.publish()
}

// touchBuckets hashes the keys and reads a word of each candidate bucket, for the memory to be on its way.
func (t *Table) touchBuckets(keys []Key) {
	for i := range keys {
		h := t.hash(&keys[i])
		t.hashes[i%maxBurst] = h
		left, right := t.bucketsOf(h)
		left[0].Load()
		right[0].Load()
	}
}

// touchEntries finds the likely entries and touches both of their lines. It marks them as part of this burst, so that no key in
// front of theirs can evict them.
func (t *Table) touchEntries(n int) {
	for i, h := range t.hashes[:n] {
		x := t.candidate(h)
		t.candidates[i] = x
		if x != None {
			e := &t.entries[x]
			e.flow.burst = t.burst
			e.state.Load()
		}
	}
}

// candidate is the first entry with the hash's fingerprint.
func (t *Table) candidate(h uint64) Index {
	fp := fingerprint(h)
	left, right := t.bucketsOf(h)
	for i := range left {
		if w := left[i].Load(); uint32(w>>32) == fp {
			return Index(w)
		}
	}
	for i := range right {
		if w := right[i].Load(); uint32(w>>32) == fp {
			return Index(w)
		}
	}
	return None
}

// resolve compares, finds what the first passes could not know of, and adds the rest.
func (t *Table) resolve(keys []Key, now int64, out []Index) {
	for i := range keys {
		k, h, x := &keys[i], t.hashes[i%maxBurst], t.candidates[i%maxBurst]
		if x == None || !t.entries[x].plainKey().same(k) {
			x = t.find(k, h)
		}
		if x == None {
			x = t.insert(k, h, now)
		} else {
			t.seen(x, k, now)
		}
		out[i] = x
	}
}

// find is the entry of a key: the thorough search for what candidate missed, which is an entry that the burst has just added or
// the second of two with one fingerprint.
func (t *Table) find(k *Key, h uint64) Index {
	fp := fingerprint(h)
	left, right := t.bucketsOf(h)
	for _, b := range [...]*bucket{left, right} {
		for i := range b {
			w := b[i].Load()
			if uint32(w>>32) == fp && t.entries[uint32(w)].plainKey().same(k) {
				return Index(w)
			}
		}
	}
	return None
}

// seen notes that a flow goes on, or begins it anew if it had been idle for too long.
func (t *Table) seen(x Index, k *Key, now int64) {
	e := &t.entries[x]
	if t.idle(&e.flow, now) {
		t.aged++
		t.renew(x, k, now, EndedAged)
		return
	}
	if s := state(e.state.Load()); s.ending() != Open && t.over(x, s, now) {
		t.renew(x, k, now, s.ending())
		return
	}
	e.flow.LastSeen = now
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
func (t *Table) idle(f *Flow, now int64) bool {
	return t.aging > 0 && f.Queued == 0 && now-f.LastSeen > t.aging
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
	fp := fingerprint(h)
	left, right := t.bucketsOf(h)
	for _, b := range [...]*bucket{left, right} {
		for i := range b {
			w := b[i].Load()
			if uint32(w>>32) != fp {
				continue
			}
			if v, ok := t.entries[uint32(w)].view(k); ok {
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
