package flowtable

import "sync/atomic"

// bucketsOf are the two buckets that a flow with this hash can be in, one on each side of the table.
func (t *Table) bucketsOf(h uint64) (left, right *bucket) {
	return &t.buckets[h>>32*t.half>>32], &t.buckets[t.half+h&(1<<32-1)*t.half>>32]
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
		t.hashAndTouch(keys[at : at+n])
		t.pick(n)
		t.touchEntries(n)
		t.protected = false
		t.resolve(keys[at:at+n], now, out[at:at+n])
	}
	t.publish()
}

// hashAndTouch hashes the keys and reads a word of each one's left bucket. Few flows are in a right one.
func (t *Table) hashAndTouch(keys []Key) {
	buckets, half, hashes := t.buckets, t.half, t.hashes[:len(keys)]
	for i := range keys {
		h := hash(&t.secret, &keys[i])
		hashes[i] = h
		buckets[h>>32*half>>32].tags[0].Load()
	}
}

// pick finds the likely entries: of most keys in the slot of their left bucket that they prefer, of the others anywhere in it or, having
// touched those, in the right one.
func (t *Table) pick(n int) {
	missed := t.missed[:0]
	buckets, half, candidates := t.buckets, t.half, t.candidates[:n]
	for i, h := range t.hashes[:n] {
		b := &buckets[h>>32*half>>32]
		if x, ok := b.preferred(h); ok {
			candidates[i] = x
		} else if m := b.matches(tag(h)); m != 0 {
			candidates[i] = b.first(m)
		} else {
			missed = append(missed, uint8(i))
		}
	}
	if len(missed) > 0 {
		t.pickRight(missed)
	}
}

// pickRight is pick for flows that are not in their left bucket.
func (t *Table) pickRight(missed []uint8) {
	for _, i := range missed {
		_, right := t.bucketsOf(t.hashes[i%maxBurst])
		right.tags[0].Load()
	}
	for _, i := range missed {
		h := t.hashes[i%maxBurst]
		_, right := t.bucketsOf(h)
		t.candidates[i%maxBurst] = None
		if m := right.matches(tag(h)); m != 0 {
			t.candidates[i%maxBurst] = right.first(m)
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

// Touch reads a word of what Routine works on, for the memory to be on its way when the owner goes over flows that Lookup has found.
func (t *Table) Touch(flows []Index) {
	tracks := t.tracks
	for _, x := range flows {
		atomic.LoadUint32(&tracks[x].known)
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
	candidates, out := t.candidates[:len(keys)], out[:len(keys)]
	for i := range keys {
		k, x := &keys[i], candidates[i]
		e := &t.entries[x]
		if e.plainKey().same(k) && now-e.lastSeen <= t.lasting && e.state.Load()&(liveBit|endingMask) == liveBit {
			e.lastSeen = now
			out[i] = x
			continue
		}
		if !t.protected {
			t.protected = true
			t.protect(keys, now)
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
	return View{SourceQP: s.qp(), State: s.qpState(), Evidence: s.evidence(), Notified: a.of(s.generation()), Ended: s.ending()}
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
