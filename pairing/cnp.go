package pairing

import "github.com/cnpgate/cnpgate/flowtable"

// cnpCost is the budget that a CNP uses.
const cnpCost = 64

// observeCNP learns from a receiver's CNP (IBTA Annex A17). k is the key that a flow with the CNP's addresses, gateway port and destination QP
// would have. The CNP goes to the QP of a sender, but does not name the flow that it is about. If only one flow of the opposite direction has a slot,
// that flow may come from this QP. Anyone can send a CNP, so it only makes a candidate, and never withdraws a pair.
func (l *Learner) observeCNP(k *flowtable.Key) {
	p := l.pairing
	if !l.spend(cnpCost) {
		return
	}
	if !p.allocation.try() {
		l.skipped()
		return
	}
	defer p.allocation.release()
	l.counts.Evidence[EvidenceCNP]++
	l.dirty = true
	key, side := p.groupOf(k)
	x := p.findGroup(&key, p.hashOf(&key))
	if x == 0 {
		return
	}
	g := &p.groups[x]
	if g.flows[1-side].Load() != 1 {
		return
	}
	if !g.lock.try() {
		l.skipped()
		return
	}
	defer g.lock.release()
	used := int(g.used[1-side].Load())
	l.budget -= used
	for n := range used {
		if only, ok := p.occupied(g, 1-side, n); ok {
			p.suggest(&only, k.DestQP, EvidenceCNP)
			return
		}
	}
}
