package flowtable

import "math/bits"

// judge weighs what is known of an unconfirmed flow: once after each of its first packets, then ever more seldom.
func (t *Table) judge(x Index, l subject, now int64) {
	p := t.pairing
	pl := p.placeOf(l.slot)
	if t.work -= int(pl.g.used[1-pl.side].Load()); t.work < 0 {
		t.skipped++
		l.sooner()
		return
	}
	t.refresh(l, &pl, now)
	if n, why, sure := p.verdict(&pl); n >= 0 {
		t.conclude(&pl, n, why, sure)
		return
	}
	if s := state(t.entries[x].state.Load()); s.qpState() == Candidate && s.evidence() != EvidenceCNP {
		t.entries[x].change(s, qpWord(0, Unknown, EvidenceNone))
	}
}

const refreshAfter = 1e9 // ns

// refresh gives a flow that was met in the middle of its traffic, whose first responses were to requests that nobody saw, another
// chance, once.
func (t *Table) refresh(l subject, pl *place, now int64) {
	if l.flags&refreshed != 0 || now-pl.g.born < refreshAfter {
		return
	}
	l.flags |= refreshed
	if l.flags&sure != 0 || pl.p.lost[pl.k].Load() != 0 || !pl.ack().valid() {
		return
	}
	for i := range pl.p.row[pl.k] {
		if pl.p.row[pl.k][i].Load() != 0 && i*64 < int(pl.g.used[1-pl.side].Load()) {
			return
		}
	}
	for i := range pl.p.row[pl.k] {
		pl.p.row[pl.k][i].Store(^uint64(0))
	}
}

// conclude makes two flows a pair, or candidates for one.
func (t *Table) conclude(pl *place, n int, why Evidence, sure bool) {
	t.dirty = true
	if why == EvidencePort {
		t.taken[why]++
	}
	mate, ok := t.pairing.at(pl.g, 1-pl.side, n)
	if !ok {
		return
	}
	a, b := pl.owner(), mate.owner()
	if !sure {
		t.pairing.assert(a, mate.id().qp(), Candidate, why)
		t.pairing.assert(b, pl.id().qp(), Candidate, why)
		return
	}
	t.pair(pl, &mate, why)
}

// pair confirms two flows as each other's reverse, if neither is another's.
func (t *Table) pair(pl, mate *place, why Evidence) {
	p := t.pairing
	if !p.tie(pl, mate) {
		return
	}
	one, first := p.assert(pl.owner(), mate.id().qp(), Confirmed, why)
	other, second := p.assert(mate.owner(), pl.id().qp(), Confirmed, why)
	if !one || !other { // better evidence says otherwise of one of them, and stands
		p.part(pl)
		p.retract(pl, why)
		p.retract(mate, why)
		return
	}
	for _, changed := range [...]bool{first, second} {
		if changed {
			t.confirmed[why]++
		}
	}
}

// verdict is the flow of the other side that the evidence points at, -1 for none, with the evidence and whether that is enough.
func (p *Pairing) verdict(pl *place) (n int, why Evidence, sure bool) {
	pair, ok := p.portRule(pl)
	if ok && (pair.formula && p.formulaSure(pl, &pair) || !pair.formula && p.equalSure(pl, &pair.mate)) {
		return pair.mate.n, EvidencePort, true
	}
	if ok && pair.formula {
		return pair.mate.n, EvidencePort, false
	}
	if m := p.psnRule(pl); m >= 0 {
		mate, _ := p.at(pl.g, 1-pl.side, m)
		return m, EvidencePSN, p.psnSure(&mate, pl)
	}
	if ok {
		return pair.mate.n, EvidencePort, false
	}
	return -1, EvidenceNone, false
}

// A pair is confirmed where the probability that it is wrong is below 2^-sureBits.
const (
	sureBits    = 20
	portBits    = 14      // an equal port says so much: 2^14 are in use
	fewPorts    = 12      // and if so many or fewer, too little
	maxExact    = 40      // ACKs to the rhythm of a flow don't say more than so much
	farApart    = 1 << 16 // PSNs between flows that began with random ones
	minAgreeing = 4       // responses that one flow alone can have asked for
)

// psnRule looks for the one flow of the other side that can have asked for what this one answers, and that no other can answer.
// The number of the place is -1 if there is none.
func (p *Pairing) psnRule(pl *place) int {
	a := pl.ack()
	if a.sole() < 0 || a.agreeing() < minAgreeing {
		return -1
	}
	mate, ok := p.at(pl.g, 1-pl.side, a.sole())
	if !ok || mate.owner() == 0 || !mate.may(pl.n) || !p.columnIs(&mate, pl.n) || !p.bothWays(pl, &mate) {
		return -1
	}
	return mate.n
}

// columnIs tells whether the flow at place n is the only one of the other side that the flow at pl may be answered by.
func (p *Pairing) columnIs(pl *place, n int) bool {
	for m := range int(pl.g.used[1-pl.side].Load()) {
		o, ok := p.at(pl.g, 1-pl.side, m)
		if m != n && ok && o.owner() != 0 && o.ack().valid() && o.may(pl.n) && pl.may(m) {
			return false
		}
	}
	return true
}

// bothWays tells whether the other direction, if it carries requests too, has responses that agree as well.
func (p *Pairing) bothWays(pl, mate *place) bool {
	return !pl.sent().valid() || mate.ack().valid() && mate.ack().sole() == pl.n
}

// chance is the negative binary logarithm of the probability that two flows are no pair although they agree: an unrelated flow agrees
// with the probability 2^-says, and the true partner of either must be out of sight. How often that is so the other flows show: where
// all of n have found their partners, it is so with one in n at most, and for both partners with one in n squared; each flow that has
// found none makes it likelier.
func chance(says, one, other, matched int) int {
	hidden := (max(one-matched, 0) + 1) * (max(other-matched, 0) + 1)
	return says + 2*(bits.Len(uint(max(matched, 1)))-1) - bits.Len(uint(hidden-1))
}

// equalSure tells whether two flows that have a port in common, which no third has that may be the mate of either, are a pair.
func (p *Pairing) equalSure(pl, mate *place) bool {
	if !pl.may(mate.n) || !mate.may(pl.n) || !pl.sent().valid() && !mate.sent().valid() ||
		pl.sent().valid() && !answered(pl, mate) || mate.sent().valid() && !answered(mate, pl) {
		return false
	}
	one, other := p.matches(pl), p.matches(mate)
	port := min(one.bits(), other.bits())
	if port < fewPorts {
		return false // many share a port: that there is one for a flow does not say that its partner is in sight
	}
	says := port + p.agreement(pl, mate) + p.agreement(mate, pl)
	return chance(says, one.flows, other.flows, min(one.equal, other.equal)) >= sureBits
}

// psnSure tells whether a responder that one requester is left for is its pair.
func (p *Pairing) psnSure(requester, responder *place) bool {
	requesters, _ := p.requesters(requester)
	responders, matched := p.responders(responder)
	says := p.agreement(requester, responder) + p.agreement(responder, requester)
	return chance(says, requesters, responders, matched) >= sureBits
}

// agreement is what the PSNs say for a pair in one direction, if the requester is the only one left for the responder.
func (p *Pairing) agreement(requester, responder *place) int {
	a := responder.ack()
	if !a.valid() || a.sole() != requester.n || a.agreeing() < minAgreeing {
		return 0
	}
	return p.startBits(requester, a)
}

// startBits is what the PSNs say where flows begin with random ones: an unrelated flow agrees if the response falls into what it had
// sent, width in 2^24. If the ACKs were for just the PSNs for which the requester asked for one, then that says as much again as such PSNs
// are rare: once if all flows ask at the same distances, since the one coincidence brings all others about, else each time. Where flows
// begin with equal PSNs they may do everything alike, and nothing of this says anything.
func (p *Pairing) startBits(requester *place, a ackWord) int {
	n, far := p.requesters(requester)
	if n > 1 && 4*far < 3*(n-1) || n == 1 && near0(requester.sent().first()) {
		return 0
	}
	says := 24 - max(int(a.width()), bits.Len(firstSlack))
	if a.exact() < minAgreeing {
		return says
	}
	if p.ownRhythm(requester) {
		return says + min(requester.sparseness()*int(a.exact()), maxExact)
	}
	return says + requester.sparseness()
}

// near0 tells whether a PSN is one that a sender might begin with without having chosen it at random.
func near0(psn uint32) bool { return psn < farApart || psn >= psnMask-farApart }

// requesters counts the flows on pl's side that have sent requests, and those whose PSNs are far from pl's.
func (p *Pairing) requesters(pl *place) (n, far int) {
	high := pl.sent().high()
	for m := range int(pl.g.used[pl.side].Load()) {
		o, ok := p.at(pl.g, pl.side, m)
		if !ok || o.owner() == 0 || !o.sent().valid() {
			continue
		}
		n++
		if d := (o.sent().high() - high) & psnMask; d > farApart && d < psnMask-farApart {
			far++
		}
	}
	return n, far
}

// responders counts the flows on pl's side that have answered, and those to which one requester is left, pl among them.
func (p *Pairing) responders(pl *place) (n, matched int) {
	for m := range int(pl.g.used[pl.side].Load()) {
		o, ok := p.at(pl.g, pl.side, m)
		if !ok || o.owner() == 0 || !o.ack().valid() {
			continue
		}
		n++
		if o.mate() >= 0 || o.ack().sole() >= 0 {
			matched++
		}
	}
	return n, matched
}
