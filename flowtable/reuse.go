package flowtable

// portChanged notes that a flow's UDP source port is not what it was. What was learned of the flow is over: another connection has
// its QP, or its sender changes ports all the time, and then the port says nothing. Where RDMA-CM or a human has said more than the
// port could, PSNs tell whether it is another.
func (t *Table) portChanged(x Index, l subject) {
	s := state(t.entries[x].state.Load())
	if l.flags&varies != 0 {
		return
	}
	if s.usable() && s.evidence() >= EvidencePort {
		t.reused(x)
		return
	}
	l.flags |= varies
	if !t.holds(x, l.slot) {
		return
	}
	pl := t.pairing.placeOf(l.slot)
	pl.p.id[pl.k].Store(uint64(l.identity(pl.id().qp(), pl.id().port())))
}

// reused ends the record of a flow whose QP serves another connection now, and what was learned from it about its mate.
func (t *Table) reused(x Index) {
	t.entries[x].close(state(t.entries[x].state.Load()), EndedReuse)
	t.reuses++
	t.dirty = true
	t.unlearn(x)
	pl, ok := t.placeOf(x)
	if !ok {
		return
	}
	if mate, tied := t.pairing.part(&pl); tied {
		t.pairing.withdraw(&mate)
		t.pairing.vacate(&mate)
	}
}

// unlearn forgets what RDMA-CM has said of a connection that is over, in both directions: its QPs may serve again without it.
func (t *Table) unlearn(x Index) {
	p := t.pairing
	if !p.claimSoon() {
		t.skipped++
		return
	}
	defer p.release()
	k := t.entries[x].plainKey()
	from, to := state(t.entries[x].state.Load()).qp(), k.DestQP
	key, side := p.groupOf(k)
	h := p.hashOf(&key)
	p.forgetKnown(knownHash(h, side, to), from)
	p.forgetKnown(knownHash(h, 1-side, from), to)
}

// restart forgets what was learned about an unconfirmed flow whose PSNs are far from all it had sent: another connection has its QP.
func (t *Table) restart(x Index, l subject) {
	if l.slot == 0 || !t.holds(x, l.slot) {
		return
	}
	pl := t.pairing.placeOf(l.slot)
	pl.p.ack[pl.k].Store(0)
	t.pairing.forget(&pl)
	for n := range int(pl.g.used[1-pl.side].Load()) {
		o, ok := t.pairing.at(pl.g, 1-pl.side, n)
		if !ok {
			break
		}
		if a := o.ack(); a.sole() == pl.n {
			o.p.ack[o.k].CompareAndSwap(uint64(a), uint64(makeAck(a.last(), -1, 0, 0, 0)))
		}
	}
	t.tell(x, l)
}

// reconsider takes back a pair that PSNs or equal ports have made, where there is a sign that one of its QPs serves a new connection: a
// flow that had only answered so far begins to send requests, or one goes back to what was acknowledged. If it is the old connection,
// the responses to come will confirm the pair again.
func (t *Table) reconsider(x Index, l subject) {
	pl, ok := t.placeOf(x)
	s := state(t.entries[x].state.Load())
	if !ok || s.evidence() < EvidencePort || s.evidence() == EvidencePort && pl.p.match[pl.k].Load()&matchFormula != 0 {
		return
	}
	mate, tied := t.pairing.part(&pl)
	t.pairing.withdraw(&pl)
	if tied {
		t.pairing.withdraw(&mate)
	}
	l.soon()
}

// withdraw takes back what was learned of a flow.
func (p *Pairing) withdraw(pl *place) {
	for {
		e, was := p.entryOf(pl.owner())
		if e == nil || was.settled() && was.evidence() != EvidenceCM || was.qpState() == Unknown || e.change(was, qpWord(0, Unknown, EvidenceNone)) {
			return
		}
	}
}

// retract takes back what some evidence has said of a flow, if it was that.
func (p *Pairing) retract(pl *place, why Evidence) {
	if e, s := p.entryOf(pl.owner()); e != nil && s.qpState() == Confirmed && s.evidence() == why {
		e.change(s, qpWord(0, Unknown, EvidenceNone))
	}
}
