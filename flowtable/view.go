package flowtable

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

// View is what a reader would learn of a flow, and what only the owner knows.
func (t *Table) View(i Index) View {
	v := t.entries[i].now(&t.accounts[i])
	k := &t.tracks[i]
	switch {
	case v.State != Confirmed:
	case v.Evidence < EvidenceCM || v.Evidence == EvidenceDETH:
		v.Took = 1
	case k.slot == 0:
	case state(k.known).qpState() == Confirmed:
		v.Took = uint64(t.learners[i].took)
	default: // since the flow's last packet
		v.Took = uint64(max(k.packets, t.learners[i].took))
	}
	if pl, ok := t.placeOf(i); ok {
		v.Contradictions = pl.p.lost[pl.k].Load()
	}
	return v
}
