package pairing

import "github.com/cnpgate/cnpgate/pairing/store"

// pair pairs two flows and confirms both, under their group's lock. a and b are the flows that had the slots at the judgement. If one of the
// two has another peer flow and is confirmed, nothing changes; if it is suspended, the old pair is withdrawn first. A UD QP gets no peer.
func (l *Learner) pair(slot, peer *store.Slot, a, b store.Ref, why Evidence, ownPort bool) {
	p := l.pairing
	for _, end := range [...]struct{ from, to *store.Slot }{{slot, peer}, {peer, slot}} {
		if ud, busy := p.isUD(slot.Group().Key(), end.from.Side(), end.to.Identity().QP()); ud || busy {
			return
		}
	}
	for _, end := range [...]struct{ one, other *store.Slot }{{slot, peer}, {peer, slot}} {
		one := end.one
		view, ok := one.Peer()
		if !ok || view.Number() == end.other.Number() {
			continue
		}
		answer, ok := p.answers.of(one.Ref())
		guessed := answer.Evidence() == EvidenceCM && near0(one.Claim().PSN()) && why == EvidencePort && ownPort
		if ok && answer.State() == Confirmed && !guessed {
			return
		}
		l.counts.Contradictions++
		old, _ := one.Opposite(view.Number())
		p.contradict(one)
		if guessed { // the claim had a PSN that can be guessed, and was probably forged
			one.SetClaim(0)
			old.SetClaim(0)
			return
		}
	}
	if !l.confirm(a, peer.Identity().QP(), why) || !l.confirm(b, slot.Identity().QP(), why) { // better evidence has given one of them another source QP
		p.answers.retract(slot.Ref(), why)
		p.answers.retract(peer.Ref(), why)
		return
	}
	slot.Pair(peer, ownPort)
}

// confirm gives a flow a source QP, unless equal or better evidence has confirmed one. It reports whether the flow has that QP now.
func (l *Learner) confirm(r store.Ref, qp uint32, why Evidence) bool {
	has, changed := l.pairing.answers.confirm(r, qp, why)
	if changed {
		l.counts.change().Confirmed[why]++
	}
	return has
}
