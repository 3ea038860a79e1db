package pairing

import "math/bits"

// sureBits is how sure a rule must be: a pair is confirmed if the probability that it is wrong is below 2^-sureBits.
const sureBits = 20

// judge weighs the evidence about a flow that has no mate, and changes its answer accordingly.
func (s *subject) judge() {
	s.heedClaim()
	if s.pl.others() == 0 { // no flow of the opposite direction has a place
		return
	}
	if !s.l.spend(s.pl.own() + s.pl.others()) {
		s.sooner()
		return
	}
	if !s.pl.g.learning.try() {
		s.l.skipped()
		s.sooner()
		return
	}
	defer s.pl.g.learning.release()
	// The verdict is about the flows that have the places now. A flow that ends meanwhile, and one that gets its index, are not touched.
	if _, ok := s.l.place(s.x); !ok {
		return
	}
	s.pl.p.id[s.pl.k] = s.identity() // its port may be steady by now
	v := s.l.weigh(&s.pl)
	if v.mate.g == nil {
		s.change(func(a Answer) Answer {
			if a.State() == Candidate && a.Evidence() != EvidenceCNP {
				return 0
			}
			return a
		})
		return
	}
	if v.why == EvidencePort {
		s.l.counts.Evidence[EvidencePort]++
		s.l.dirty = true
	}
	if !v.sure {
		s.l.pairing.suggest(&s.pl, v.mate.id().qp(), v.why)
		s.l.pairing.suggest(&v.mate, s.p.DestQP, v.why)
		return
	}
	s.l.pair(&s.pl, &v.mate, s.pl.owner(), v.mate.owner(), v.why, v.ownPort)
}

// verdict is what the evidence says of a flow.
type verdict struct {
	mate    place // without a group: nothing
	why     Evidence
	sure    bool
	ownPort bool // the flows' UDP port tells their connection from others, see Pairing.ownPort
}

// weigh compares a flow with those of the other side.
func (l *Learner) weigh(pl *place) verdict {
	p := l.pairing
	if mate, ok := p.cmRule(pl); ok {
		return verdict{mate, EvidenceCM, trusted(pl, &mate), p.ownPort(pl, &mate)}
	}
	ports, ok := p.portRule(pl)
	switch {
	case ok && ports.formula && p.formulaSure(pl, &ports):
		return verdict{ports.mate, EvidencePort, trusted(pl, &ports.mate), true}
	case ok && !ports.formula && p.equalSure(pl, &ports.mate):
		return verdict{ports.mate, EvidencePort, true, false}
	}
	mate, alone := p.psnRule(pl)
	if alone {
		l.budget -= pl.own() + pl.others() // what the next line takes
	}
	sure := alone && p.psnSure(&mate, pl)
	if ok && !sure && (ports.formula || !alone) {
		return verdict{ports.mate, EvidencePort, false, false}
	}
	if !alone {
		return verdict{}
	}
	return verdict{mate, EvidencePSN, sure, p.ownPort(pl, &mate)}
}

// trusted reports whether a pair that RDMA-CM or the port's formula points at has had enough responses. A pair that was contradicted d times
// needs 2^d in a row that somebody can have asked for.
func trusted(pl, mate *place) bool {
	a, b := pl.trial(), mate.trial()
	doubts := max(a.doubts, b.doubts)
	return doubts == 0 || pl.id().unreliable() || max(a.trusted, b.trusted) >= 1<<doubts
}

// enough reports whether so many bits of evidence confirm a pair. Each contradiction asks for two bits more, and each time that everything was
// ruled out, for one.
func enough(pl, mate *place, evidence int) bool {
	a, b := pl.trial(), mate.trial()
	return evidence >= sureBits+2*int(max(a.doubts, b.doubts))+int(min(max(a.retries, b.retries), maxRetries))
}

// chance is -log2 of the probability that two flows are no pair although they agree. An unrelated flow agrees with the probability 2^-says. It
// is mistaken for the mate only if the true mates of both flows are out of sight. The other flows show how often that is so: if all of n have
// found a mate, it is true of one flow in n at most, and for both mates of one in n squared. Each flow without a mate makes it likelier. one
// and other are the numbers of flows on the two sides, and matched is how many have found one flow that is left for them.
func chance(says, one, other, matched int) int {
	hidden := (max(one-matched, 0) + 1) * (max(other-matched, 0) + 1)
	return says + 2*(bits.Len(uint(max(matched, 1)))-1) - bits.Len(uint(hidden-1))
}
