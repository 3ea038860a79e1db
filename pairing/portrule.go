package pairing

import "math/bits"

// symmetricPort is the formula's port: the UDP source port that Linux gives to the packets of a connection without a flow label, in both
// directions (rdma_calc_flow_label and rdma_flow_label_to_udp_sport). It depends on the product of the two QP numbers.
func symmetricPort(a, b uint32) uint16 {
	v := uint64(a) * uint64(b)
	v ^= v >> 20
	v ^= v >> 40
	return labelPort(uint32(v) & 0xfffff)
}

// labelPort is Linux's UDP source port for a flow label of 20 bits (rdma_flow_label_to_udp_sport).
func labelPort(label uint32) uint16 { return uint16(label&0x3fff^label>>14) | 0xc000 }

// portMark says which flows have the same port as this one, as of the last judgement of this flow or one of those.
type portMark uint8

const (
	matchEqual   portMark = 1 << iota // a flow of the other side
	matchFormula                      // a flow of the other side, and the port is the formula's for the two
	matchShared                       // another flow of this side
)

const (
	portBits   = 14 // bits that an equal port counts where all 2^14 ports are in use
	fewPorts   = 12 // bits below which an equal port counts nothing
	smallGroup = 16 // flows of a side from which on one pair of flows may fit the formula, or share a port, by chance
	manyFit    = 16 // flows of a side that must fit the formula where a third flow has the port
)

// portMatch is what the flows of the other side have for a flow's port.
type portMatch struct {
	n       int  // place of the only flow that the port points at, -1 for none
	formula bool // that flow fits by the formula; otherwise it only has the same port
	equal   int  // flows with the same port, ruled out or not
	left    int  // those of them that have no mate yet and are not ruled out
}

// places is a set of places of one side, a bit for each.
type places [rowWords]uint64

// withPort is the set of flows of a side that have the given UDP source port.
func (p *Pairing) withPort(g *group, side int, port uint16) (set places) {
	for i := range (int(g.used[side].Load()) + placesAPage - 1) / placesAPage {
		pg := &p.pages[g.pages[side][i].Load()]
		for k := range pg.id {
			if pg.id[k].port() == port && pg.owner[k].Load() != 0 {
				n := i*placesAPage + k
				set[n/64%rowWords] |= 1 << (n % 64)
			}
		}
	}
	return set
}

// match looks for the only flow of the other side that fits by the formula: both have the port that it makes of their destination QPs. If none
// fits, it looks for the only flow that has the same port and may be the mate.
func (p *Pairing) match(pl *place) portMatch {
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
			if _, tied := p.tied(&o); !tied {
				last, m.left = n, m.left+1
			}
		}
	}
	switch {
	case fits == 1: // even if PSNs have ruled it out: a forged response may have done that
		m.n, m.formula = fit, true
	case possibles == 1:
		m.n, m.formula = possible, true
	case fits == 0 && m.left == 1:
		m.n = last
	}
	return m
}

// mark adds to a flow's portMark.
func (pl *place) mark(m portMark) { pl.p.match[pl.k] |= m }

// shared reports whether other flows of the same side have the same port, and marks them all.
func (p *Pairing) shared(pl *place) bool {
	all := p.withPort(pl.g, pl.side, pl.id().port())
	if all[pl.n/64] &^= 1 << (pl.n % 64); all == (places{}) {
		return false
	}
	pl.mark(matchShared)
	for w, set := range all {
		for ; set != 0; set &= set - 1 {
			o, _ := p.at(pl.g, pl.side, w*64+bits.TrailingZeros64(set))
			o.mark(matchShared)
		}
	}
	return true
}

// portPair is two flows whose ports point at each other.
type portPair struct {
	mate    place
	formula bool
	alone   bool // no third flow has the port, on either side
	few     bool // at most one other flow on each side has it
}

// portRule finds the pair in which each flow's port points at the other flow, if there is one.
func (p *Pairing) portRule(pl *place) (pair portPair, ok bool) {
	shared := p.shared(pl)
	m := p.match(pl)
	pl.note(&m)
	if m.n < 0 {
		return pair, false
	}
	mate, ok := p.at(pl.g, 1-pl.side, m.n)
	if !ok {
		return pair, false
	}
	back := p.match(&mate)
	mate.note(&back)
	if back.n != pl.n || back.formula != m.formula {
		return pair, false
	}
	return portPair{mate, m.formula, m.equal == 1 && back.equal == 1 && !shared && !p.shared(&mate), max(m.equal, back.equal) <= 2}, true
}

// note brings the flow's portMark up to date with what match has found. matchShared is never taken back.
func (pl *place) note(m *portMatch) {
	was := pl.p.match[pl.k] & matchShared
	if m.equal > 0 {
		was |= matchEqual
	}
	if m.formula {
		was |= matchFormula
	}
	pl.p.match[pl.k] = was
}

// formulaSure reports whether two flows whose port is the formula's are surely a pair. Except for UC, one must have answered what the other
// sent. And the two hosts must make their ports by the formula: among flows that all have one port, one pair in 2^14 fits by
// chance, and 256 flows a side are 2^16 pairs. So with few flows no third one may have the port. With many, more than half of the flows that
// have an equal port on the other side must fit by the formula: at least two of them, or manyFit where a third flow has the port.
func (p *Pairing) formulaSure(pl *place, pair *portPair) bool {
	mate := &pair.mate
	if !pl.id().unreliable() && !answered(pl, mate) && !answered(mate, pl) {
		return false
	}
	one, other := p.matches(pl), p.matches(mate)
	if max(one.flows, other.flows) < smallGroup {
		return pair.alone
	}
	if !pair.few { // some of the flows with this port may not have it by the formula
		return false
	}
	need := manyFit
	if pair.alone {
		need = 2
	}
	return min(one.formula, other.formula) >= need && 2*one.formula > one.equal && 2*other.formula > other.equal
}

// answered reports whether the last response of b is to a PSN that a has sent.
func answered(a, b *place) bool { return b.ack().valid() && a.sent().has(b.ack().last()) }

// portCounts counts the flows of a side, and those with each portMark.
type portCounts struct{ flows, equal, formula, shared int }

func (p *Pairing) matches(pl *place) (c portCounts) {
	for n := range pl.own() {
		o, ok := p.occupied(pl.g, pl.side, n)
		if !ok {
			continue
		}
		c.flows++
		m := o.p.match[o.k]
		c.equal += int(m & matchEqual)
		c.formula += int(m & matchFormula / matchFormula)
		c.shared += int(m & matchShared / matchShared)
	}
	return c
}

// bits is how many bits it counts that two flows have a port that no third flow has: log2 of how many ports are in use. The flows of the side
// show that by how few of them share a port.
func (c *portCounts) bits() int {
	if c.flows >= smallGroup && c.shared <= 1+c.flows*c.flows>>(portBits-2) {
		return portBits
	}
	if 2*c.shared > c.flows {
		return 0 // there are so few ports that their number can't be estimated
	}
	return min(bits.Len(uint(c.flows*c.flows/(c.shared+2)))-1, portBits)
}

// equalSure reports whether two flows are surely a pair that have the same port, where no other flow that has it may be the mate of either.
func (p *Pairing) equalSure(pl, mate *place) bool {
	if !pl.may(mate.n) || !mate.may(pl.n) || !pl.sent().valid() && !mate.sent().valid() ||
		pl.sent().valid() && !answered(pl, mate) || mate.sent().valid() && !answered(mate, pl) {
		return false
	}
	one, other := p.matches(pl), p.matches(mate)
	port := min(one.bits(), other.bits())
	if port < fewPorts {
		return false // many share a port: that a flow has it does not show that the mate is in sight
	}
	says := port + p.agreement(pl, mate) + p.agreement(mate, pl)
	return enough(pl, mate, chance(says, one.flows, other.flows, min(one.equal, other.equal)))
}

// ownPort reports whether the UDP port of two flows tells their connection from others: it is the one that the formula makes of their QPs,
// or the one that the flow label in RDMA-CM's REQ makes.
func (p *Pairing) ownPort(pl, mate *place) bool {
	a, b := pl.id(), mate.id()
	return a.steady() && b.steady() && a.port() == b.port() && (a.port() == symmetricPort(a.qp(), b.qp()) || a.port() == pl.said().port() && a.port() != 0)
}
