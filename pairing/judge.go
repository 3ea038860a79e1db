package pairing

import "math/bits"

// sureBits is the evidence in bits that a rule needs: it confirms a pair if the probability of an error is below 2^-sureBits.
const sureBits = 20

// judge evaluates the evidence about a flow that has no peer flow, and changes its answer accordingly.
func (s *subject) judge() {
	s.findClaim()
	if s.pl.others() == 0 { // no flow of the opposite direction has a slot
		return
	}
	if !s.compare(s.pl.own() + s.pl.others()) {
		s.faster()
		return
	}
	defer s.pl.g.lock.release()
	// The verdict is about the flows that have the slots now. A flow that ends meanwhile, and one that gets its index, are not touched.
	s.pl.p.id[s.pl.k] = s.identity() // its port may be steady by now
	v := s.l.weigh(&s.pl)
	if v.peer.g == nil {
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
		s.l.pairing.suggest(&s.pl, v.peer.id().qp(), v.why)
		s.l.pairing.suggest(&v.peer, s.p.DestQP, v.why)
		return
	}
	s.l.pair(&s.pl, &v.peer, s.pl.owner(), v.peer.owner(), v.why, v.ownPort)
}

// verdict is the result of a judgement.
type verdict struct {
	peer    Slot // without a group: none
	why     Evidence
	sure    bool
	ownPort bool // the flows' UDP source port is their connection's own, see Pairing.ownPort
}

// weigh compares a flow with the flows of the other side.
func (l *Learner) weigh(pl *Slot) verdict {
	p := l.pairing
	if peer, ok := p.cmRule(pl); ok {
		return verdict{peer, EvidenceCM, enoughResponses(pl, &peer), p.ownPort(pl, &peer)}
	}
	ports, ok := p.portRule(pl)
	switch {
	case ok && ports.formula && p.formulaSure(pl, &ports):
		return verdict{ports.peer, EvidencePort, enoughResponses(pl, &ports.peer), true}
	case ok && !ports.formula && l.equalSure(pl, &ports.peer):
		return verdict{ports.peer, EvidencePort, true, false}
	}
	peer, alone := p.psnRule(pl)
	if alone {
		l.budget -= pl.own() + pl.others() // the cost of the next line
	}
	sure := alone && p.psnSure(&peer, pl)
	if ok && !sure && (ports.formula || !alone) {
		return verdict{ports.peer, EvidencePort, false, false}
	}
	if !alone {
		return verdict{}
	}
	return verdict{peer, EvidencePSN, sure, p.ownPort(pl, &peer)}
}

// enoughResponses reports whether a pair found by RDMA-CM or the port's formula has had enough responses. A pair that was contradicted d times
// needs 2^d in a row to PSNs that some flow of the other side can have sent.
func enoughResponses(pl, peer *Slot) bool {
	a, b := pl.elimination(), peer.elimination()
	contradictions := max(a.contradictions, b.contradictions)
	return contradictions == 0 || pl.id().unreliable() || max(a.plausible, b.plausible) >= 1<<contradictions
}

// enough reports whether this many bits of evidence confirm a pair. Each contradiction adds two to the needed bits, and each time that
// every flow was ruled out adds one.
func enough(pl, peer *Slot, evidence int) bool {
	a, b := pl.elimination(), peer.elimination()
	return evidence >= sureBits+2*int(max(a.contradictions, b.contradictions))+int(min(max(a.retries, b.retries), maxRetries))
}

// chance is -log2 of the probability that two flows agree but are no pair. An unrelated flow agrees with probability 2^-evidence. It is
// countContradiction for the peer flow only if the true peer flows of both flows don't pass through the gateway. The other flows show how likely that is: if
// all of n flows have found a peer flow, a flow's true peer flow is missing with probability 1/n at most, and both true peer flows with 1/n^2. Each flow
// without a peer flow makes it likelier. one and other are the numbers of flows on the two sides. matched is the number of them that have
// exactly one possible peer flow.
func chance(evidence, one, other, matched int) int {
	hidden := (max(one-matched, 0) + 1) * (max(other-matched, 0) + 1)
	return evidence + 2*(bits.Len(uint(max(matched, 1)))-1) - bits.Len(uint(hidden-1))
}
