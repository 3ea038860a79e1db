package pairing

import "math/bits"

// In this file "port" is the UDP source port.

// symmetricPort is the formula's port: the UDP source port that Linux gives to the packets of a connection without a flow label, in both
// directions (rdma_calc_flow_label and rdma_flow_label_to_udp_sport in include/rdma/ib_verbs.h). It depends on the product of the two QP numbers.
func symmetricPort(a, b uint32) uint16 {
	v := uint64(a) * uint64(b)
	v ^= v >> 20
	v ^= v >> 40
	return labelPort(uint32(v) & 0xfffff)
}

// labelPort is Linux's UDP source port for a flow label of 20 bits (rdma_flow_label_to_udp_sport in include/rdma/ib_verbs.h).
func labelPort(label uint32) uint16 { return uint16(label&0x3fff^label>>14) | 0xc000 }

// portMark shows which flows have the same port as this one, at the last judgement of this flow or one of those.
type portMark uint8

const (
	matchEqual   portMark = 1 << iota // a flow of the other side
	matchFormula                      // a flow of the other side, and the port is the formula's for the two
)

const (
	portBits   = 14 // bits that an equal port counts if all 2^14 ports are in use
	fewPorts   = 12 // bits below which an equal port counts nothing
	smallGroup = 16 // number of flows of a side from which on two flows may fit the formula, or share a port, by chance
	manyFit    = 16 // number of flows of a side that must fit the formula if a third flow has the port
)

// portMatch is the result of comparing a flow's port with the flows of the other side.
type portMatch struct {
	n       int  // slot of the only flow that fits the port, -1 for none
	formula bool // that flow fits by the formula; otherwise it only has the same port
	equal   int  // flows with the same port, ruled out or not
	left    int  // those that have no peer flow yet and are not ruled out
}

// slots is a set of slots of one side, a bit for each.
type slotSet [rowWords]uint64

// withPort is the set of flows of a side that have the given UDP source port.
func (p *Pairing) withPort(g *group, side int, port uint16) (set slotSet) {
	for i := range (int(g.used[side].Load()) + slotsAPage - 1) / slotsAPage {
		pg := &p.pages[g.pages[side][i].Load()]
		for k := range pg.id {
			if pg.id[k].port() == port && pg.owner[k].Load() != 0 {
				n := i*slotsAPage + k
				set[n/64%rowWords] |= 1 << (n % 64)
			}
		}
	}
	return set
}

// match finds the only flow of the other side that fits by the formula: both have the port that it makes of their destination QPs. If none
// fits, it finds the only flow that has the same port and may be the peer flow.
func (p *Pairing) match(pl *Slot) portMatch {
	id := pl.id()
	m := portMatch{n: -1}
	if !id.steady() {
		return m
	}
	last, fit, fits, possible, possibles := -1, -1, 0, -1, 0
	for w, set := range p.withPort(pl.g, 1-pl.side, id.port()) {
		for ; set != 0; set &= set - 1 {
			n := w*64 + bits.TrailingZeros64(set)
			o, _ := p.at(pl.g, 1-pl.side, n)
			i := o.id()
			if !i.steady() || i.unreliable() != id.unreliable() {
				continue
			}
			m.equal++
			o.mark(matchEqual)
			formula, ruledOut := symmetricPort(id.qp(), i.qp()) == id.port(), !pl.may(n) || !o.may(pl.n)
			if formula {
				fit, fits = n, fits+1
			}
			if ruledOut {
				continue
			}
			if formula {
				possible, possibles = n, possibles+1
			}
			if _, peerOf := p.peerOf(&o); !peerOf {
				last, m.left = n, m.left+1
			}
		}
	}
	switch {
	case fits == 1: // even if PSNs have ruled it out: that may be due to a forged response
		m.n, m.formula = fit, true
	case possibles == 1:
		m.n, m.formula = possible, true
	case fits == 0 && m.left == 1:
		m.n = last
	}
	return m
}

// mark adds to a flow's portMark.
func (pl *Slot) mark(m portMark) { pl.p.match[pl.k] |= m }

// shared reports whether other flows of the same side have the same port.
func (p *Pairing) shared(pl *Slot) bool {
	all := p.withPort(pl.g, pl.side, pl.id().port())
	all[pl.n/64] &^= 1 << (pl.n % 64)
	return all != slotSet{}
}

// portPair is two flows that fit each other by their ports.
type portPair struct {
	peer    Slot
	formula bool
	alone   bool // no third flow has the port, on either side
	few     bool // at most one other flow on each side has it
}

// portRule finds the pair of flows that fit each other by their ports, if there is one.
func (p *Pairing) portRule(pl *Slot) (pair portPair, ok bool) {
	shared := p.shared(pl)
	m := p.match(pl)
	pl.note(&m)
	if m.n < 0 {
		return pair, false
	}
	peer, ok := p.at(pl.g, 1-pl.side, m.n)
	if !ok {
		return pair, false
	}
	back := p.match(&peer)
	peer.note(&back)
	if back.n != pl.n || back.formula != m.formula {
		if m.formula {
			p.dispute(pl, &peer)
		}
		return pair, false
	}
	return portPair{peer, m.formula, m.equal == 1 && back.equal == 1 && !shared && !p.shared(&peer), max(m.equal, back.equal) <= 2}, true
}

// dispute withdraws the pair of a flow, if another one fits it by the formula, too, and responds to later requests than its peer flow does. Then
// the peer flow's responses may be forged: anyone who knows the two QPs can find a QP that fits, and send a response to it before the true one.
// UC has no responses, so there the rule abstains if two flows fit.
func (p *Pairing) dispute(pl, other *Slot) {
	peer, ok := p.peerOf(other)
	if a, open := p.answerOf(other.owner()); !ok || !open || a.Evidence() != EvidencePort || peer.n == pl.n {
		return
	}
	ack, peerAck, sent := pl.ack(), peer.ack(), other.sent()
	ahead := (ack.last() - peerAck.last()) & psnMask
	later := ack.valid() && (ack.last()-sent.first())&psnMask <= sent.width()+margin && (!peerAck.valid() || ahead > backMargin && ahead < psnHalf)
	if later || pl.id().unreliable() {
		p.contradict(other)
	}
}

// note updates the flow's portMark with the result of match.
func (pl *Slot) note(m *portMatch) {
	pl.p.match[pl.k] = 0
	if m.equal > 0 {
		pl.mark(matchEqual)
	}
	if m.formula {
		pl.mark(matchFormula)
	}
}

// formulaSure reports whether two flows whose port is the formula's are certainly a pair. Except for UC, one must have responded to
// requests of the other. And the two hosts must use the formula: among flows that all have one port, one pair in 2^14 fits by chance, and
// 256 flows a side make 2^16 pairs. So with few flows no third one may have the port. With many, more than half of the flows with an equal
// port on the other side must fit by the formula: at least two of them, or manyFit if a third flow has the port.
func (p *Pairing) formulaSure(pl *Slot, pair *portPair) bool {
	peer := &pair.peer
	if !pl.id().unreliable() && !responded(pl, peer) && !responded(peer, pl) {
		return false
	}
	one, other := p.matches(pl), p.matches(peer)
	if max(one.flows, other.flows) < smallGroup {
		return pair.alone
	}
	if !pair.few { // some of the flows with this port may not use the formula
		return false
	}
	need := manyFit
	if pair.alone {
		need = 2
	}
	return min(one.formula, other.formula) >= need && 2*one.formula > one.equal && 2*other.formula > other.equal
}

// responded reports whether b has responded to a: its last response is to a PSN that a has sent.
func responded(a, b *Slot) bool { return b.ack().valid() && a.sent().has(b.ack().last()) }

// portCounts counts the flows of a side, and those with each portMark.
type portCounts struct{ flows, equal, formula int }

func (p *Pairing) matches(pl *Slot) (c portCounts) {
	for n := range pl.own() {
		o, ok := p.occupied(pl.g, pl.side, n)
		if !ok {
			continue
		}
		c.flows++
		m := o.p.match[o.k]
		c.equal += int(m & matchEqual)
		c.formula += int(m & matchFormula / matchFormula)
	}
	return c
}

// portSet is a set of UDP source ports, a bit for each.
type portSet [1 << 16 / 64]uint64

// add adds a port, and reports whether the set had it.
func (s *portSet) add(port uint16) (had bool) {
	word, bit := &s[port/64], uint64(1)<<(port%64)
	had = *word&bit != 0
	*word |= bit
	return had
}

// sharing counts the flows of pl's side that share a port with another one. It counts them at each call, since flows begin and end, also
// forged ones.
func (l *Learner) sharing(pl *Slot) (n int) {
	once, twice := &l.ports[0], &l.ports[1]
	clear(l.ports[:])
	for m := range pl.own() {
		o, ok := l.pairing.occupied(pl.g, pl.side, m)
		if !ok || !once.add(o.id().port()) {
			continue
		}
		if n++; !twice.add(o.id().port()) {
			n++ // the first flow with this port
		}
	}
	return n
}

// bitsOfPort is the evidence in bits if two flows have a port that no third flow has: log2 of the number of ports in use. The number of
// flows of a side that share a port shows it: if n flows choose among p ports at random, about n^2/p of them share one.
func bitsOfPort(flows, shared int) int {
	if flows >= smallGroup && shared <= 1+flows*flows>>(portBits-2) {
		return portBits
	}
	if 2*shared > flows {
		return 0 // too few ports to estimate their number
	}
	return min(bits.Len(uint(flows*flows/(shared+2)))-1, portBits)
}

// equalSure reports whether two flows with the same port are certainly a pair, if no other flow with the port may be the peer flow of either.
func (l *Learner) equalSure(pl, peer *Slot) bool {
	p := l.pairing
	if !pl.may(peer.n) || !peer.may(pl.n) || !pl.sent().valid() && !peer.sent().valid() ||
		pl.sent().valid() && !responded(pl, peer) || peer.sent().valid() && !responded(peer, pl) {
		return false
	}
	one, other := p.matches(pl), p.matches(peer)
	port := min(bitsOfPort(one.flows, l.sharing(pl)), bitsOfPort(other.flows, l.sharing(peer)))
	if port < fewPorts {
		return false // many share a port: an equal port doesn't show that the peer flow passes through the gateway
	}
	evidence := port + p.agreement(pl, peer) + p.agreement(peer, pl)
	return enough(pl, peer, chance(evidence, one.flows, other.flows, min(one.equal, other.equal)))
}

// ownPort reports whether the UDP source port of two flows is their connection's own, so that another connection would have another port:
// it results from the formula and their QPs, or from the flow label in RDMA-CM's REQ.
func (p *Pairing) ownPort(pl, peer *Slot) bool {
	a, b := pl.id(), peer.id()
	return a.steady() && b.steady() && a.port() == b.port() && (a.port() == symmetricPort(a.qp(), b.qp()) || a.port() == pl.claimed().port() && a.port() != 0)
}
