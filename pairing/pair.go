package pairing

// This file makes and ends pairs, under the group's lock.

// peerOf returns the slot of the flow's peer flow, if the peer flow still has it.
func (p *Pairing) peerOf(pl *Slot) (peer Slot, ok bool) {
	m := link(pl.p.peer[pl.k].Load())
	if m == 0 {
		return Slot{}, false
	}
	peer, ok = p.at(pl.g, 1-pl.side, m.n())
	return peer, ok && peer.p.lease[peer.k] == m.lease() && peer.owner() != 0
}

// makePair makes two slots each other's peer flow.
func (p *Pairing) makePair(a, b *Slot, ownPort bool) {
	a.p.peer[a.k].Store(uint64(makeLink(b.n, b.p.lease[b.k], ownPort)))
	b.p.peer[b.k].Store(uint64(makeLink(a.n, a.p.lease[a.k], ownPort)))
}

// unlink ends the tie between a slot and its peer flow, if it has one, and returns the peer flow's slot. Their answers stay as they are.
func (p *Pairing) unlink(pl *Slot) (peer Slot, ok bool) {
	peer, ok = p.peerOf(pl)
	pl.p.peer[pl.k].Store(0)
	if ok {
		peer.p.peer[peer.k].Store(0)
	}
	return peer, ok
}

// release handles a flow whose peer flow belongs to another connection now. It withdraws the flow's source QP and frees its slot. If the flow
// continues, it gets another slot.
func (p *Pairing) release(pl *Slot) {
	p.withdraw(pl)
	pl.vacate(pl.owner())
}

// withdraw removes a flow's source QP, if it was learned and the flow record is open.
func (p *Pairing) withdraw(pl *Slot) {
	p.update(pl.owner(), func(a Answer) Answer {
		if fixed(a) || a.Ended() != Open {
			return a
		}
		return 0
	})
}

// maxContradictions is the maximum that counts, so that a flow can always be confirmed again.
const maxContradictions = 5

// contradict ends a pair that is probably wrong. It clears what was learned about both flows, and counts a contradiction for each.
func (p *Pairing) contradict(pl *Slot) {
	peer, ok := p.unlink(pl)
	p.countContradiction(pl)
	if ok {
		p.countContradiction(&peer)
	}
}

func (p *Pairing) countContradiction(pl *Slot) {
	pl.p.allContradictions[pl.k] = min(pl.p.allContradictions[pl.k], 1<<16-2) + 1
	p.withdraw(pl)
	p.unlearn(pl)
	t := pl.elimination()
	t.contradictions = min(t.contradictions+1, maxContradictions)
}

// pair makes two flows peer flows and confirms both. a and b are the flows that had the slots at the judgement. If one of the two has another
// peer flow and is confirmed, nothing changes; if it is suspended, the old pair is withdrawn first. A UD QP gets no peer flow.
func (l *Learner) pair(pl, peer *Slot, a, b flowRef, why Evidence, ownPort bool) {
	p := l.pairing
	for _, end := range [...]struct{ from, to *Slot }{{pl, peer}, {peer, pl}} {
		if ud, busy := p.isUD(&pl.g.key, end.from.side, end.to.id().qp()); ud || busy {
			return
		}
	}
	for _, one := range [...]*Slot{pl, peer} {
		if old, ok := p.peerOf(one); ok && (one != pl || old.n != peer.n) && (one != peer || old.n != pl.n) {
			answer, ok := p.answerOf(one.owner())
			guessed := answer.Evidence() == EvidenceCM && near0(one.claimed().psn()) && why == EvidencePort && ownPort
			if ok && answer.State() == Confirmed && !guessed {
				return
			}
			l.counts.Contradictions++
			p.contradict(one)
			if guessed { // the claim had a PSN that can be guessed, and was probably forged
				one.p.claimed[one.k], old.p.claimed[old.k] = 0, 0
				return
			}
		}
	}
	if !l.confirm(a, peer.id().qp(), why) || !l.confirm(b, pl.id().qp(), why) { // better evidence has given one of them another source QP
		p.retract(pl, why)
		p.retract(peer, why)
		return
	}
	p.makePair(pl, peer, ownPort)
}

// confirm gives a flow a source QP, unless equal or better evidence has confirmed one. It reports whether the flow has that QP now.
func (l *Learner) confirm(r flowRef, qp uint32, why Evidence) bool {
	has := false
	if l.pairing.update(r, func(a Answer) Answer {
		has = a.SourceQP() == qp && a.State() == Confirmed && a.Ended() == Open
		if a.Ended() != Open || a.State() == Confirmed && (a.Evidence() <= why || fixed(a)) {
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

// suggest makes a source QP a flow's candidate, unless the flow has a peer flow or is confirmed.
func (p *Pairing) suggest(pl *Slot, qp uint32, why Evidence) {
	if _, ok := p.peerOf(pl); ok {
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
func (p *Pairing) retract(pl *Slot, why Evidence) {
	p.update(pl.owner(), func(a Answer) Answer {
		if a.State() == Confirmed && a.Evidence() == why && a.Ended() == Open {
			return 0
		}
		return a
	})
}
