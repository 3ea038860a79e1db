package pairing

import "github.com/cnpgate/cnpgate/flowtable"

// cnpCost is what a CNP takes from the budget.
const cnpCost = 64

// observeCNP learns from a receiver's CNP (IBTA Annex A17). k is the key that a flow with the CNP's addresses, port and destination QP would
// have. The CNP goes to the QP of a sender, but does not say which flow it is about. If only one flow of the opposite direction has a place,
// that flow may come from this QP. Anyone can send a CNP, so it only makes a candidate, and takes nothing back.
func (l *Learner) observeCNP(k *flowtable.Key) {
	p := l.pairing
	if !l.spend(cnpCost) {
		return
	}
	if !p.allocating.try() {
		l.skipped()
		return
	}
	defer p.allocating.release()
	l.counts.Evidence[EvidenceCNP]++
	l.dirty = true
	key, side := p.groupOf(k)
	x := p.findGroup(&key, p.hashOf(&key))
	if x == 0 {
		return
	}
	g := &p.groups[x]
	if g.flows[1-side].Load() != 1 || !g.learning.try() {
		return
	}
	defer g.learning.release()
	for n := range placesAPage {
		if only, ok := p.occupied(g, 1-side, n); ok {
			p.suggest(&only, k.DestQP, EvidenceCNP)
			return
		}
	}
}
