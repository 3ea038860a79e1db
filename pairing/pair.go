package pairing

import (
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/pairing/store"
)

// answers gives access to the answers of all workers' flows, in the workers' flow tables by the number of their learners.
type answers []*flowtable.Reader

// find returns the table, index and state of a flow; ok is false if the flow has ended.
func (all answers) find(r store.Ref) (t *flowtable.Reader, x flowtable.Index, s flowtable.State, ok bool) {
	if r == 0 {
		return nil, 0, 0, false
	}
	t, x = all[r.Worker()], flowtable.Index(r.Index())
	s = t.State(x)
	return t, x, s, s.Live() && r.Is(s.Generation())
}

// ended reports whether a flow has ended, or its record is closed.
func (all answers) ended(r store.Ref) bool {
	a, live := all.of(r)
	return !live || a.Ended() != Open
}

// of returns the flow's answer.
func (all answers) of(r store.Ref) (Answer, bool) {
	_, _, s, ok := all.find(r)
	return Answer(s.Answer()), ok
}

// change replaces a flow's answer by the result of a function, and reports whether the answer has changed. The flow may be another
// worker's, and that worker may change the answer at the same time. Then the function is called again, with the new answer.
func (all answers) change(r store.Ref, to func(Answer) Answer) bool {
	for {
		t, x, s, ok := all.find(r)
		if !ok {
			return false
		}
		now := to(Answer(s.Answer()))
		if now == Answer(s.Answer()) {
			return false
		}
		if t.SetAnswer(x, s, flowtable.Answer(now)) {
			return true
		}
	}
}

// withdraw removes a flow's source QP, if it was learned and the flow record is open.
func (all answers) withdraw(r store.Ref) {
	all.clear(r, func(a Answer) bool { return !a.fixed() && a.Ended() == Open })
}

// clear removes a flow's answer if a condition holds for it.
func (all answers) clear(r store.Ref, when func(Answer) bool) {
	all.change(r, func(a Answer) Answer {
		if when(a) {
			return 0
		}
		return a
	})
}

// confirm gives a flow a source QP, unless equal or better evidence has confirmed one. has: the flow has that QP now; changed: it had not
// before.
func (all answers) confirm(r store.Ref, qp uint32, why Evidence) (has, changed bool) {
	changed = all.change(r, func(a Answer) Answer {
		has = a.SourceQP() == qp && a.State() == Confirmed && a.Ended() == Open
		if a.Ended() != Open || a.State() == Confirmed && (a.Evidence() <= why || a.fixed()) {
			return a
		}
		has = true
		return makeAnswer(qp, Confirmed, why)
	})
	return has, changed
}

// suggest makes a source QP the candidate of the flow in a slot, unless the flow has a peer flow or is confirmed.
func (all answers) suggest(v *store.View, qp uint32, why Evidence) {
	all.change(v.Ref(), func(a Answer) Answer {
		if a.State() == Confirmed || a.Ended() != Open {
			return a
		}
		if _, ok := v.Peer(); ok {
			return a
		}
		return makeAnswer(qp, Candidate, why)
	})
}

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
		weaker := answer.Evidence() == EvidencePeer && why != EvidencePeer // own evidence replaces another gateway's
		if why == EvidencePeer {
			return
		}
		if ok && answer.State() == Confirmed && !guessed {
			if !weaker {
				return
			}
		}
		l.counts.change().Contradictions++
		old, _ := one.Opposite(view.Number())
		p.contradict(one)
		if guessed { // the claim had a PSN that can be guessed, and was probably forged
			one.SetClaim(0)
			old.SetClaim(0)
			return
		}
	}
	if !l.confirm(a, peer.Identity().QP(), why) || !l.confirm(b, slot.Identity().QP(), why) { // better evidence has given one of them another source QP
		for _, r := range [...]store.Ref{slot.Ref(), peer.Ref()} {
			p.answers.clear(r, func(a Answer) bool { return a.State() == Confirmed && a.Evidence() == why && a.Ended() == Open })
		}
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

// cnpCost is the budget that a CNP uses.
const cnpCost = 64

// observeCNP learns from a receiver's CNP (IBTA Annex A17). k is the key that a flow with the CNP's addresses, gateway port and destination
// QP would have. The CNP goes to the QP of a sender, but does not name the flow that it is about. If only one flow of the opposite
// direction has a slot, that flow may come from this QP. Anyone can send a CNP, so it only makes a candidate, and never withdraws a pair.
func (l *Learner) observeCNP(k *flowtable.Key) {
	p, s := l.pairing, l.pairing.store
	if !l.spend(cnpCost) {
		return
	}
	if !s.Lock.Try() {
		l.counts.skipped()
		return
	}
	defer s.Lock.Release()
	l.counts.change().Evidence[EvidenceCNP]++
	key, side := p.groupOf(k)
	g := s.Find(&key, p.hashOf(&key))
	if g == nil || g.Flows(1-side) != 1 || g.Divided() {
		return
	}
	if !g.Lock().Try() {
		l.counts.skipped()
		return
	}
	defer g.Lock().Release()
	used := g.Used(1 - side)
	l.budget -= used
	for n := range used {
		if only, ok := s.Occupied(g, 1-side, n); ok {
			p.answers.suggest(&only.View, k.DestQP, EvidenceCNP)
			return
		}
	}
}
