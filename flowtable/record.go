package flowtable

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

// Keep keeps a flow as if it had been seen now, since it has frames queued.
func (t *Table) Keep(x Index, now int64) { t.entries[x].lastSeen = now }
