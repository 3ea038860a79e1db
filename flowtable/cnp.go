package flowtable

// ObserveCNP learns from a receiver's CNP (IBTA Annex A17). k is the key that Lookup would take for it; its destination QP is one
// of its receiver's source QPs. Anyone who can send to the gateway's port may forge one, so it makes a candidate at most, and
// takes back what was learned if it names another QP than the one flow there is comes from.
func (t *Table) ObserveCNP(k *Key) {
	p := t.pairing
	if p == nil {
		return
	}
	if !p.claim() {
		t.skipped++
		return
	}
	defer p.release()
	t.taken[EvidenceCNP]++
	t.dirty = true
	key, side := p.groupOf(k)
	c := cmMessage{t: t, key: key, h: p.hashOf(&key)}
	var only place
	flows := 0
	g, used := c.flows(1 - side)
	for n := range used {
		if pl, _, ok := p.live(g, 1-side, n); ok {
			only, flows = pl, flows+1
		}
	}
	if flows != 1 {
		return
	}
	switch _, s := p.entryOf(only.owner()); {
	case s.qpState() != Confirmed:
		p.assert(only.owner(), k.DestQP, Candidate, EvidenceCNP)
	case s.qp() != k.DestQP && !s.settled():
		t.contradict(&only)
	}
}
