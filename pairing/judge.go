package pairing

import (
	"math/bits"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing/store"
)

// sureBits is the evidence in bits that a rule needs: it confirms a pair if the probability of an error is below 2^-sureBits.
const sureBits = 20

// judge evaluates the evidence about a flow that has no peer flow, and changes its answer accordingly.
func (f *flow) judge(p *arrival) {
	f.findClaim(p.now)
	if f.slot.Group().Flows(1-f.slot.Side()) == 0 { // no flow of the opposite direction has a slot
		if f.rejoin(); f.slot.Group() == nil { // with its next packet it gets another slot
			return
		}
	}
	if f.slot.Others() == 0 || !f.judgeInGroup(p) {
		way{f, p}.regroup()
	}
}

// judgeInGroup judges a flow by those of its group, and reports whether one of these may be its peer flow, or if that isn't known.
func (f *flow) judgeInGroup(p *arrival) (any bool) {
	if !f.compare(f.slot.Own() + f.slot.Others()) {
		f.faster()
		return true
	}
	defer f.unlock()
	// The verdict is about the flows that have the slots now. A flow that ends meanwhile, and one that gets its index, are not touched.
	f.slot.SetIdentity(f.identity(p.DestQP)) // its port may be steady by now
	v := f.l.weigh(&f.slot)
	if v.why == EvidenceNone {
		f.l.pairing.answers.clear(f.l.ref(f.index), func(a Answer) bool { return a.State() == Candidate && a.Evidence() != EvidenceCNP })
		return false
	}
	if v.why == EvidencePort {
		f.l.counts.change().Evidence[EvidencePort]++
	}
	if v.sure && !f.l.pairing.scopes.provedBy(f.l, &f.slot, &v.peer) {
		v.sure = false
		f.faster()
	}
	if !v.sure {
		f.l.pairing.answers.suggest(&f.slot.View, v.peer.Identity().QP(), v.why)
		f.l.pairing.answers.suggest(&v.peer, p.DestQP, v.why)
		return true
	}
	if peer, ok := f.slot.Opposite(v.peer.Number()); ok {
		f.l.pair(&f.slot, &peer, f.slot.Ref(), peer.Ref(), v.why, v.ownPort)
	}
	return true
}

// verdict is the result of a judgement.
type verdict struct {
	peer    store.View
	why     Evidence // EvidenceNone: no peer flow was found
	sure    bool
	ownPort bool // the flows' UDP source port is their connection's own, see ownPort
}

// weigh applies the rules to a flow, under its group's lock. What it writes are port marks; and it withdraws a pair that is disputed.
func (l *Learner) weigh(slot *store.Slot) verdict { return l.byRules(slot).ofPeers(&slot.View) }

func (l *Learner) byRules(slot *store.Slot) verdict {
	f, all := &slot.View, l.pairing.answers
	if peer, ok := cmRule(f); ok {
		return verdict{peer, EvidenceCM, enoughResponses(f, &peer), ownPort(f, &peer)}
	}
	ports := portRule(all, f)
	ports.mark(slot, l.pairing)
	switch {
	case ports.formula && formulaSure(f, &ports):
		return verdict{ports.peer, EvidencePort, enoughResponses(f, &ports.peer), true}
	case ports.equal && equalSure(f, &ports.peer, &l.ports):
		return verdict{ports.peer, EvidencePort, true, false}
	}
	peer, alone := psnRule(all, f)
	if alone {
		l.budget -= f.Own() + f.Others() // the cost of the next line
	}
	sure := alone && psnSure(&peer, f)
	switch {
	case !sure && (ports.formula || ports.equal && !alone):
		return verdict{ports.peer, EvidencePort, false, false}
	case alone:
		return verdict{peer, EvidencePSN, sure, ownPort(f, &peer)}
	}
	return verdict{}
}

// mark records in the slots what portRule has found.
func (p *portPair) mark(slot *store.Slot, with *Pairing) {
	p.match.mark(slot)
	if p.match.n < 0 {
		return
	}
	peer, ok := slot.Opposite(p.match.n)
	if !ok {
		return
	}
	p.back.mark(&peer)
	if p.disputed {
		with.contradict(&peer)
	}
}

// enoughResponses reports whether a pair found by RDMA-CM or the port's formula has had enough responses. A pair that was contradicted d
// times needs 2^d in a row to PSNs that some flow of the other side can have sent.
func enoughResponses(f, peer *store.View) bool {
	a, b := f.Elimination(), peer.Elimination()
	contradictions := max(a.Contradictions, b.Contradictions)
	return contradictions == 0 || f.Identity().Unreliable() || max(a.Plausible, b.Plausible) >= 1<<contradictions
}

// enough reports whether this many bits of evidence confirm a pair. Each contradiction adds two to the needed bits, and each time that
// every flow was ruled out adds one.
func enough(f, peer *store.View, evidence int) bool {
	a, b := f.Elimination(), peer.Elimination()
	return evidence >= sureBits+2*int(max(a.Contradictions, b.Contradictions))+int(min(max(a.Retries, b.Retries), maxRetries))
}

// chance is -log2 of the probability that two flows agree but are no pair. An unrelated flow agrees with probability 2^-evidence. It is
// mistaken for the peer flow only if the true peer flows of both don't pass through the gateway. The other flows show how likely that is:
// if all of n flows have found a peer flow, a flow's true one is missing with probability 1/n at most, and both true ones with 1/n^2. Each
// flow without a peer flow makes it likelier. one and other are the numbers of flows on the two sides. matched is the number of them that
// have exactly one possible peer flow.
func chance(evidence, one, other, matched int) int {
	hidden := (max(one-matched, 0) + 1) * (max(other-matched, 0) + 1)
	return evidence + 2*(bits.Len(uint(max(matched, 1)))-1) - bits.Len(uint(hidden-1))
}

// begun reports whether the flow's requests began where RDMA-CM claims, or up to firstSlack PSNs later. If first PSNs are random, an
// unrelated flow does so with probability 2^-18.
func begun(f *store.View) bool {
	c, sent := f.Claim(), f.Sent()
	return c != 0 && sent.Valid() && (sent.First()-c.PSN())&packet.PSNMask <= firstSlack
}

// cmRule finds the peer flow that RDMA-CM claims for a flow: the claims about the two flows name each other, and their data agrees with the
// claims.
func cmRule(f *store.View) (peer store.View, ok bool) {
	c := f.Claim()
	if c == 0 {
		return peer, false
	}
	for n := range f.Others() {
		o, ok := f.Other(n)
		if ok && o.Identity().QP() == c.SourceQP() && (claimNames(&o, f) || begun(f) && !o.Sent().Valid() && !f.Identity().Unreliable()) {
			return o, asClaimed(f, &o)
		}
	}
	return peer, false
}

// claimNames reports whether RDMA-CM's claim about the flow names the destination QP of another flow.
func claimNames(f, o *store.View) bool {
	return f.Claim() != 0 && f.Claim().SourceQP() == o.Identity().QP()
}

// asClaimed reports whether the data of two flows agrees with RDMA-CM's claims: at least one flow has sent requests, each that has began at
// the PSN of its claim, and one flow has responded to the other. UC flows have no responses, so both must have begun, or the UDP source
// port must be the one that results from RDMA-CM's flow label. If the first PSNs can be guessed, the port must also be the connection's
// own.
func asClaimed(a, b *store.View) bool {
	if !begun(a) && !begun(b) || a.Sent().Valid() && !begun(a) || b.Sent().Valid() && !begun(b) {
		return false
	}
	if a.Identity().Unreliable() { // UC has no responses
		if (near0(a.Claim().PSN()) || near0(b.Claim().PSN())) && !ownPort(a, b) {
			return false // anyone might guess where the two flows begin
		}
		return begun(a) && begun(b) || a.Claim().Port() != 0 && a.Claim().Port() == a.Identity().Port()
	}
	return respondedAsClaimed(a, b) || respondedAsClaimed(b, a)
}

// respondedAsClaimed reports whether the responses of b to a are evidence for RDMA-CM's claim. If the connection begins at a PSN that can
// be guessed, there must be several such responses in a row, and the UDP source port must be the one that results from RDMA-CM's flow label
// or the formula.
func respondedAsClaimed(a, b *store.View) bool {
	if !responded(a, b) {
		return false
	}
	return !near0(a.Claim().PSN()) || ownPort(a, b) && b.Elimination().Plausible >= minAgreeing
}
