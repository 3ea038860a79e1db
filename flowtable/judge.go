package flowtable

import "math/bits"

// judge weighs what is known of an unconfirmed flow: once after each of its first packets, then ever more seldom.
func (t *Table) judge(x Index, l *learner, now int64) {
	p := t.pairing
	pl := p.placeOf(l.slot)
	if t.work -= int(pl.g.used[1-pl.side].Load()); t.work < 0 {
		t.skipped++
		l.wait, l.step = 1, max(l.step/2, 1)
		return
	}
	t.refresh(l, &pl, now)
	n, sure := p.portRule(&pl)
	if n >= 0 {
		t.conclude(&pl, n, EvidencePort, sure)
		return
	}
	if n, sure = p.psnRule(&pl); n >= 0 {
		t.conclude(&pl, n, EvidencePSN, sure)
		return
	}
	if s := state(t.entries[x].state.Load()); s.qpState() == Candidate && s.evidence() != EvidenceCNP {
		t.entries[x].change(s, qpWord(0, Unknown, EvidenceNone))
	}
}

const refreshAfter = 1e9 // ns

// refresh gives a flow that was met in the middle of its traffic, whose first responses were to requests that nobody saw, another
// chance, once.
func (t *Table) refresh(l *learner, pl *place, now int64) {
	if l.flags&refreshed != 0 || now-pl.g.born < refreshAfter {
		return
	}
	l.flags |= refreshed
	if l.took != 0 || pl.p.lost[pl.k].Load() != 0 || !pl.ack().valid() {
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
	one, other := p.assert(pl.owner(), mate.id().qp(), Confirmed, why), p.assert(mate.owner(), pl.id().qp(), Confirmed, why)
	if !one || !other { // better evidence says otherwise of one of them
		p.part(pl)
		p.withdraw(pl)
		p.withdraw(mate)
		return
	}
	t.confirmed[why] += 2
}

// The psn rule confirms where the probability that an unrelated flow would have agreed as well is below 2^-sureBits.
const (
	sureBits    = 20
	farApart    = 1 << 16 // PSNs between flows that began with random ones
	minAgreeing = 8       // responses that one flow alone can have asked for
)

// psnRule looks for the one flow of the other side that can have asked for what this one answers, and that no other can answer.
// The number of the place is -1 if there is none; sure is false if the pair is only a candidate.
func (p *Pairing) psnRule(pl *place) (n int, sure bool) {
	a := pl.ack()
	if a.sole() < 0 || a.agreeing() < minAgreeing {
		return -1, false
	}
	mate, ok := p.at(pl.g, 1-pl.side, a.sole())
	if !ok || mate.owner() == 0 || !mate.may(pl.n) || !p.columnIs(&mate, pl.n) || !p.bothWays(pl, &mate) {
		return -1, false
	}
	return mate.n, p.chance(pl, &mate) >= sureBits
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

// bothWays tells whether the other direction, if it carries requests and responses too, agrees as well.
func (p *Pairing) bothWays(pl, mate *place) bool {
	return !pl.sent().valid() || !mate.ack().valid() || mate.ack().sole() == pl.n
}

// chance is the negative binary logarithm of the probability that the pair is wrong. Among flows that began with random PSNs an
// unrelated one agrees where the response falls into what it had sent: width in 2^24. It is the only one left for the pair to be
// wrong if both true partners are out of sight, of which the flows that have found no partner tell. Where flows began with
// equal PSNs an agreement says nothing, and the probability is 1.
func (p *Pairing) chance(pl, mate *place) int {
	requesters, far := p.requesters(mate)
	responders, matched := p.responders(pl)
	if requesters > 1 && 4*far < 3*(requesters-1) || requesters == 1 && near0(mate.sent().first()) {
		return 0
	}
	hidden := (max(requesters-matched, 0) + 1) * (max(responders-matched, 0) + 1)
	return 24 - int(pl.ack().width()) + bits.Len(uint(matched+1)) - 1 - bits.Len(uint(hidden))
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
