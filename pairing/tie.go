package pairing

// This file makes and ends pairs, under the group's lock.

// tied returns the place of the flow's mate, if the mate still has it.
func (p *Pairing) tied(pl *place) (mate place, ok bool) {
	m := mateWord(pl.p.mate[pl.k].Load())
	if m == 0 {
		return place{}, false
	}
	mate, ok = p.at(pl.g, 1-pl.side, m.n())
	return mate, ok && mate.p.lease[mate.k] == m.lease() && mate.owner() != 0
}

// tie makes two places each other's mate.
func (p *Pairing) tie(a, b *place, ownPort bool) {
	a.p.mate[a.k].Store(uint64(makeMate(b.n, b.p.lease[b.k], ownPort)))
	b.p.mate[b.k].Store(uint64(makeMate(a.n, a.p.lease[a.k], ownPort)))
}

// part ends the tie between a place and its mate, if it has one, and returns the mate's place. Their answers stay as they are.
func (p *Pairing) part(pl *place) (mate place, ok bool) {
	mate, ok = p.tied(pl)
	pl.p.mate[pl.k].Store(0)
	if ok {
		mate.p.mate[mate.k].Store(0)
	}
	return mate, ok
}

// abandon handles a flow whose mate belongs to another connection now. It withdraws the flow's source QP and frees its place. If the flow
// continues, it gets another place.
func (p *Pairing) abandon(pl *place) {
	p.withdraw(pl)
	pl.vacate(pl.owner())
}

// withdraw removes a flow's source QP, if it was learned and the flow record is open.
func (p *Pairing) withdraw(pl *place) {
	p.update(pl.owner(), func(a Answer) Answer {
		if settled(a) || a.Ended() != Open {
			return a
		}
		return 0
	})
}

// maxContradictions is the maximum that counts, so that a flow can always be confirmed again.
const maxContradictions = 5

// dissolve ends a pair that is probably wrong. It clears what was learned about both flows, and counts a contradiction for each.
func (p *Pairing) dissolve(pl *place) {
	mate, ok := p.part(pl)
	p.mistaken(pl)
	if ok {
		p.mistaken(&mate)
	}
}

func (p *Pairing) mistaken(pl *place) {
	pl.p.allContradictions[pl.k] = min(pl.p.allContradictions[pl.k], 1<<16-2) + 1
	p.withdraw(pl)
	p.unlearn(pl)
	t := pl.trial()
	t.contradictions = min(t.contradictions+1, maxContradictions)
}

// pair makes two flows mates and confirms both. a and b are the flows that had the places at the judgement. If one of the two has another
// mate and is confirmed, nothing changes; if it is in doubt, the old pair is withdrawn first. A UD QP gets no mate.
func (l *Learner) pair(pl, mate *place, a, b flowRef, why Evidence, ownPort bool) {
	p := l.pairing
	for _, end := range [...]struct{ from, to *place }{{pl, mate}, {mate, pl}} {
		if ud, busy := p.isUD(&pl.g.key, end.from.side, end.to.id().qp()); ud || busy {
			return
		}
	}
	for _, one := range [...]*place{pl, mate} {
		if old, ok := p.tied(one); ok && (one != pl || old.n != mate.n) && (one != mate || old.n != pl.n) {
			answer, ok := p.answerOf(one.owner())
			guessed := answer.Evidence() == EvidenceCM && near0(one.claimed().psn()) && why == EvidencePort && ownPort
			if ok && answer.State() == Confirmed && !guessed {
				return
			}
			l.counts.Contradictions++
			p.dissolve(one)
			if guessed { // the claim had a PSN that can be guessed, and was probably forged
				one.p.claimed[one.k], old.p.claimed[old.k] = 0, 0
				return
			}
		}
	}
	if !l.confirm(a, mate.id().qp(), why) || !l.confirm(b, pl.id().qp(), why) { // better evidence has given one of them another source QP
		p.retract(pl, why)
		p.retract(mate, why)
		return
	}
	p.tie(pl, mate, ownPort)
}

// confirm gives a flow a source QP, unless equal or better evidence has confirmed one. It reports whether the flow has that QP now.
func (l *Learner) confirm(r flowRef, qp uint32, why Evidence) bool {
	has := false
	if l.pairing.update(r, func(a Answer) Answer {
		has = a.SourceQP() == qp && a.State() == Confirmed && a.Ended() == Open
		if a.Ended() != Open || a.State() == Confirmed && (a.Evidence() <= why || settled(a)) {
			return a
		}
		has = true
		return makeAnswer(qp, Confirmed, why)
	}) {
		l.counts.Confirmed[why]++
		l.dirty = true
	}
	return has
}

// suggest makes a source QP a flow's candidate, unless the flow has a mate or is confirmed.
func (p *Pairing) suggest(pl *place, qp uint32, why Evidence) {
	if _, ok := p.tied(pl); ok {
		return
	}
	p.update(pl.owner(), func(a Answer) Answer {
		if a.State() == Confirmed || a.Ended() != Open {
			return a
		}
		return makeAnswer(qp, Candidate, why)
	})
}

// retract removes a flow's source QP, if this evidence has confirmed it.
func (p *Pairing) retract(pl *place, why Evidence) {
	p.update(pl.owner(), func(a Answer) Answer {
		if a.State() == Confirmed && a.Evidence() == why && a.Ended() == Open {
			return 0
		}
		return a
	})
}
