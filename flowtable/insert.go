package flowtable

// searchWindow bounds how many entries are looked at for a victim outside the candidate buckets.
const searchWindow = 64

// insert adds a flow that is not in the table, evicting another if there is no room.
func (t *Table) insert(k *Key, h uint64, now int64) Index {
	t.dirty = true
	b := t.roomy(h)
	if b == nil || t.full() {
		v := t.oldestCandidate(h, now)
		if v == None && b != nil {
			v = t.searchVictim(now)
		}
		if v == None {
			t.refused++
			return None
		}
		t.end(v, now)
		if b == nil {
			b = t.roomy(h)
		}
	}
	x := t.take()
	t.entries[x].begin(k, t.firstQP(k), now)
	t.tracks[x] = track{exact: unsettled}
	b.add(h, x)
	t.flows++
	t.insertions++
	return x
}

// spare is the number of free slots below which the first bucket isn't the first choice any more.
const spare = 3

// roomy is the bucket for a new flow: the first one while it has slots to spare, so that lookups find most flows there, then the
// emptier one; nil if both are full. Where they hold half of what they could, which is what a full table's do, hardly any does.
func (t *Table) roomy(h uint64) *bucket {
	first, second := t.bucketsOf(h)
	a := first.free()
	if a >= spare {
		return first
	}
	switch b := second.free(); {
	case b > a:
		return second
	case a > 0:
		return first
	}
	return nil
}

func (t *Table) full() bool { return t.free == 0 && int(t.high) == len(t.entries)-1 }

// take removes an entry from the unused ones; there is one.
func (t *Table) take() Index {
	if x := t.free; x != 0 {
		t.free = t.tracks[x].exact
		return Index(x)
	}
	t.high++
	return Index(t.high)
}

// evictable leaves out flows that may have frames queued, whose index the queue holds, and those whose index this Lookup has given out
// or is about to, which were seen at this moment. What is no flow was never seen.
func (t *Table) evictable(e *entry, now int64) bool { return e.lastSeen < t.held && e.lastSeen != now }

// oldestCandidate is the evictable flow of the candidate buckets that was seen longest ago.
func (t *Table) oldestCandidate(h uint64, now int64) Index {
	v := None
	first, second := t.bucketsOf(h)
	for _, b := range [...]*bucket{first, second} {
		for i := range slots {
			v = t.older(v, b.any(i), now)
		}
	}
	return v
}

// searchVictim is the oldest evictable flow among the next few of the table.
func (t *Table) searchVictim(now int64) Index {
	v := None
	for range min(searchWindow, t.high) {
		t.hand = t.hand%t.high + 1
		v = t.older(v, Index(t.hand), now)
	}
	return v
}

// older is x if it is evictable and was seen before v, else v.
func (t *Table) older(v, x Index, now int64) Index {
	e := &t.entries[x]
	if t.evictable(e, now) && (v == None || e.lastSeen < t.entries[v].lastSeen) {
		return x
	}
	return v
}

// end removes a flow.
func (t *Table) end(x Index, now int64) {
	e := &t.entries[x]
	t.dirty = true
	why := EndedEviction
	if t.idle(e, now) {
		why = EndedAged
		t.aged++
	} else {
		t.evictions++
	}
	t.report(x, why)
	t.leave(x)
	t.unlink(x)
	e.end()
	t.tracks[x].exact = t.free
	t.free = uint32(x)
	t.flows--
}

// unlink clears the slot that leads to an entry.
func (t *Table) unlink(x Index) {
	if first, second := t.bucketsOf(t.hash(t.entries[x].plainKey())); !first.remove(x) {
		second.remove(x)
	}
}

// initialQP is what is known of a flow's source QP when it begins. UD packets carry it, and there it is part of the key, so no
// map can say otherwise.
func (t *Table) initialQP(k *Key) uint64 {
	if k.SourceQP != 0 {
		return qpWord(k.SourceQP, Confirmed, EvidenceDETH)
	}
	if qp, ok := t.static.Lookup(k.Src, k.Dst, k.DestQP); ok {
		return qpWord(qp, Confirmed, EvidenceStatic)
	}
	if qp, ok := t.hints.Lookup(k.Src, k.Dst, k.DestQP); ok {
		return qpWord(qp, Confirmed, EvidenceHint)
	}
	return qpWord(0, Unknown, EvidenceNone)
}

// firstQP is initialQP, counted.
func (t *Table) firstQP(k *Key) uint64 {
	qp := t.initialQP(k)
	if why := state(qp).evidence(); why != EvidenceNone {
		t.count(why)
	}
	return qp
}

// count counts evidence that confirms by itself.
func (t *Table) count(why Evidence) {
	t.taken[why]++
	t.confirmed[why]++
	t.dirty = true
}
