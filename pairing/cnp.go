package pairing

import "github.com/cnpgate/cnpgate/flowtable"

// cnpCost is the budget that a CNP uses.
const cnpCost = 64

// observeCNP learns from a receiver's CNP (IBTA Annex A17). k is the key that a flow with the CNP's addresses, gateway port and destination QP
// would have. The CNP goes to the QP of a sender, but does not name the flow that it is about. If only one flow of the opposite direction has a slot,
// that flow may come from this QP. Anyone can send a CNP, so it only makes a candidate, and never withdraws a pair.
func (l *Learner) observeCNP(k *flowtable.Key) {
	p, s := l.pairing, l.pairing.store
	if !l.spend(cnpCost) {
		return
	}
	if !s.Lock.Try() {
		l.skipped()
		return
	}
	defer s.Lock.Release()
	l.counts.change().Evidence[EvidenceCNP]++
	key, side := p.groupOf(k)
	g := s.Find(&key, p.hashOf(&key))
	if g == nil || g.Flows(1-side) != 1 {
		return
	}
	if !g.Lock().Try() {
		l.skipped()
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
