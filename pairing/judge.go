package pairing

import "math/bits"

// sureBits is the evidence in bits that a rule needs: it confirms a pair if the probability of an error is below 2^-sureBits.
const sureBits = 20

// judge evaluates the evidence about a flow that has no mate, and changes its answer accordingly.
func (s *subject) judge() {
	s.heedClaim()
	if s.pl.others() == 0 { // no flow of the opposite direction has a place
		return
	}
	if !s.compare(s.pl.own() + s.pl.others()) {
		s.sooner()
		return
	}
	defer s.pl.g.lock.release()
	// The verdict is about the flows that have the places now. A flow that ends meanwhile, and one that gets its index, are not touched.
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

// verdict is the result of a judgement.
type verdict struct {
	mate    place // without a group: none
	why     Evidence
	sure    bool
	ownPort bool // the flows' UDP source port is their connection's own, see Pairing.ownPort
}

// weigh compares a flow with the flows of the other side.
func (l *Learner) weigh(pl *place) verdict {
	p := l.pairing
	if mate, ok := p.cmRule(pl); ok {
		return verdict{mate, EvidenceCM, trusted(pl, &mate), p.ownPort(pl, &mate)}
	}
	ports, ok := p.portRule(pl)
	switch {
	case ok && ports.formula && p.formulaSure(pl, &ports):
		return verdict{ports.mate, EvidencePort, trusted(pl, &ports.mate), true}
	case ok && !ports.formula && l.equalSure(pl, &ports.mate):
		return verdict{ports.mate, EvidencePort, true, false}
	}
	mate, alone := p.psnRule(pl)
	if alone {
		l.budget -= pl.own() + pl.others() // the cost of the next line
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

// trusted reports whether a pair found by RDMA-CM or the port's formula has had enough responses. A pair that was contradicted d times
// needs 2^d in a row to PSNs that some flow of the other side can have sent.
func trusted(pl, mate *place) bool {
	a, b := pl.trial(), mate.trial()
	contradictions := max(a.contradictions, b.contradictions)
	return contradictions == 0 || pl.id().unreliable() || max(a.trusted, b.trusted) >= 1<<contradictions
}

// enough reports whether this many bits of evidence confirm a pair. Each contradiction adds two to the needed bits, and each time that
// every flow was ruled out adds one.
func enough(pl, mate *place, evidence int) bool {
	a, b := pl.trial(), mate.trial()
	return evidence >= sureBits+2*int(max(a.contradictions, b.contradictions))+int(min(max(a.retries, b.retries), maxRetries))
}

// chance is -log2 of the probability that two flows agree but are no pair. An unrelated flow agrees with probability 2^-evidence. It is
// mistaken for the mate only if the true mates of both flows don't pass through the gateway. The other flows show how likely that is: if
// all of n flows have found a mate, a flow's true mate is missing with probability 1/n at most, and both true mates with 1/n^2. Each flow
// without a mate makes it likelier. one and other are the numbers of flows on the two sides. matched is the number of them that have
// exactly one possible mate.
func chance(evidence, one, other, matched int) int {
	hidden := (max(one-matched, 0) + 1) * (max(other-matched, 0) + 1)
	return evidence + 2*(bits.Len(uint(max(matched, 1)))-1) - bits.Len(uint(hidden-1))
}
