package flowtable

import "math/bits"

// symmetricPort is the UDP source port that Linux gives to packets of a connection without a flow label, in both directions
// (rdma_calc_flow_label and rdma_flow_label_to_udp_sport): it depends on the product of the two QP numbers.
func symmetricPort(a, b uint32) uint16 {
	v := uint64(a) * uint64(b)
	v ^= v >> 20
	v ^= v >> 40
	label := uint32(v) & 0xfffff
	return uint16(label&0x3fff^label>>14) | 0xc000
}

// What a flow's port has in common with others', as of its last judgement.
const (
	matchEqual   = 1 << iota // a flow of the other side has the same port
	matchFormula             // and the port is the formula's for the two
	matchShared              // another flow of the same side has the same port
)

const (
	smallGroup = 16 // flows of one direction from which on one pair may fit the formula, or have a port in common, by chance
	manyFit    = 16 // flows of one direction that fit the formula where it is surely what makes their ports
)

// portMatch is what the other side has for a flow's port.
type portMatch struct {
	n       int  // place of the one flow that it points at, -1 for none
	formula bool // by the formula, else only because the port is the same
	equal   int  // flows with the same port, whatever has been ruled out
	left    int  // those among them that have no mate yet, and are not ruled out
}

// match looks for the one flow of the other side whose QP, multiplied with this flow's, gives the port of both, or else the one flow
// that has the same port and may be its mate.
func (p *Pairing) match(pl *place) portMatch {
	id := pl.id()
	m := portMatch{n: -1}
	if !id.steady() {
		return m
	}
	last, fit, fits := -1, -1, 0
	for n := range int(pl.g.used[1-pl.side].Load()) {
		o, ok := p.at(pl.g, 1-pl.side, n)
		if !ok || o.owner() == 0 {
			continue
		}
		i := o.id()
		if i.port() != id.port() || !i.steady() || i.unreliable() != id.unreliable() {
			continue
		}
		m.equal++
		o.mark(matchEqual)
		if !pl.may(n) || !o.may(pl.n) {
			continue
		}
		if o.mate() < 0 {
			last, m.left = n, m.left+1
		}
		if symmetricPort(id.qp(), i.qp()) == id.port() {
			fit, fits = n, fits+1
		}
	}
	switch {
	case fits == 1:
		m.n, m.formula = fit, true
	case fits == 0 && m.left == 1:
		m.n = last
	}
	return m
}

// mark notes what a port has in common with others'.
func (pl *place) mark(m uint32) {
	if pl.p.match[pl.k].Load()&m != m {
		pl.p.match[pl.k].Or(m)
	}
}

// shared tells whether another flow of the same side has the same port, and marks both.
func (p *Pairing) shared(pl *place) (any bool) {
	port := pl.id().port()
	for m := range int(pl.g.used[pl.side].Load()) {
		o, ok := p.at(pl.g, pl.side, m)
		if ok && m != pl.n && o.owner() != 0 && o.id().port() == port {
			o.mark(matchShared)
			any = true
		}
	}
	if any {
		pl.mark(matchShared)
	}
	return any
}

// portPair is two flows whose ports point at each other.
type portPair struct {
	mate    place
	formula bool
	alone   bool // no third flow has the port
	few     bool // one other flow has it at most, on either side
}

// portRule finds the pair that the ports point at, if there is one.
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

// note keeps what was found for a port; that it is shared is never taken back.
func (pl *place) note(m *portMatch) {
	was := pl.p.match[pl.k].Load() & matchShared
	if m.equal > 0 {
		was |= matchEqual
	}
	if m.formula {
		was |= matchFormula
	}
	pl.p.match[pl.k].Store(was)
}

// formulaSure tells whether two flows whose port is the formula's are a pair. A responder must have answered what the requester sent,
// where there are responses at all, and the two hosts must make their ports by the formula: with ports that are all equal, or random,
// one pair in 2^14 fits by chance, and with 256 flows a side there are 2^16 pairs. So between hosts with few flows no third one may have
// the port, and where there are many, most flows that have a partner with the same port must fit: two at least, or many of them where
// others have the port too.
func (p *Pairing) formulaSure(pl *place, pair *portPair) bool {
	mate := &pair.mate
	if !pl.id().unreliable() && !answered(pl, mate) && !answered(mate, pl) {
		return false
	}
	one, other := p.matches(pl), p.matches(mate)
	if max(one.flows, other.flows) < smallGroup {
		return pair.alone
	}
	if !pair.few { // flows with ports made otherwise may be among those with this one
		return false
	}
	need := manyFit
	if pair.alone {
		need = 2
	}
	return min(one.formula, other.formula) >= need && 2*one.formula > one.equal && 2*other.formula > other.equal
}

// answered tells whether the last response of b is one to a.
func answered(a, b *place) bool { return b.ack().valid() && a.sent().has(b.ack().last()) }

// portCounts are of the flows of a side.
type portCounts struct{ flows, equal, formula, shared int }

func (p *Pairing) matches(pl *place) (c portCounts) {
	for n := range int(pl.g.used[pl.side].Load()) {
		o, ok := p.at(pl.g, pl.side, n)
		if !ok || o.owner() == 0 {
			continue
		}
		c.flows++
		m := o.p.match[o.k].Load()
		c.equal += int(m & matchEqual)
		c.formula += int(m & matchFormula / matchFormula)
		c.shared += int(m & matchShared / matchShared)
	}
	return c
}

// bits is what it says that two flows have the same port, one that no third has: the logarithm of how many ports are in use, as far as
// the flows of a side show it by how few of them share one.
func (c *portCounts) bits() int {
	if c.flows >= smallGroup && c.shared <= 1+c.flows*c.flows>>(portBits-2) {
		return portBits
	}
	if 2*c.shared > c.flows {
		return 0 // so few ports that how few can't be told
	}
	return min(bits.Len(uint(c.flows*c.flows/(c.shared+2)))-1, portBits)
}
