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

// smallGroup is the number of flows of one direction from which on a single pair may fit the formula by chance.
const smallGroup = 16

// portMatch looks for the one flow of the other side whose QP, multiplied with this flow's, gives the port of both, or else the one flow
// that has the same port, whatever has been ruled out. The number of its place is -1 if there is none or more than one; any tells
// whether any flow has the same port.
func (p *Pairing) portMatch(pl *place) (n int, formula, any bool) {
	id := pl.id()
	if !id.steady() {
		return -1, false, false
	}
	equal, fit, equals, fits := -1, -1, 0, 0
	for m := range int(pl.g.used[1-pl.side].Load()) {
		o, ok := p.at(pl.g, 1-pl.side, m)
		if !ok || o.owner() == 0 {
			continue
		}
		i := o.id()
		if i.port() != id.port() || !i.steady() || i.unreliable() != id.unreliable() {
			continue
		}
		equal, equals = m, equals+1
		if o.p.match[o.k].Load()&matchEqual == 0 {
			o.p.match[o.k].Or(matchEqual)
		}
		if pl.may(m) && o.may(pl.n) && symmetricPort(id.qp(), i.qp()) == id.port() {
			fit, fits = m, fits+1
		}
	}
	switch {
	case fits == 1:
		return fit, true, true
	case fits == 0 && equals == 1:
		return equal, false, true
	}
	return -1, false, equals > 0
}

// shared tells whether another flow of the same side has the same port.
func (p *Pairing) shared(pl *place) bool {
	port := pl.id().port()
	for m := range int(pl.g.used[pl.side].Load()) {
		o, ok := p.at(pl.g, pl.side, m)
		if ok && m != pl.n && o.owner() != 0 && o.id().port() == port {
			return true
		}
	}
	return false
}

// portRule finds the pair that the ports point at: by the formula, or only because they are the same. The number of the place is -1
// if there is none.
func (p *Pairing) portRule(pl *place) (n int, formula bool) {
	n, formula, equal := p.portMatch(pl)
	pl.p.match[pl.k].Store(matchBits(equal, formula, p.shared(pl)))
	if n < 0 {
		return -1, false
	}
	mate, _ := p.at(pl.g, 1-pl.side, n)
	back, backFormula, equal := p.portMatch(&mate)
	mate.p.match[mate.k].Store(matchBits(equal, backFormula, p.shared(&mate)))
	if back != pl.n || backFormula != formula {
		return -1, false
	}
	return n, formula
}

func matchBits(equal, formula, shared bool) (m uint32) {
	if equal {
		m |= matchEqual
	}
	if formula {
		m |= matchFormula
	}
	if shared {
		m |= matchShared
	}
	return m
}

// formulaSure tells whether two flows whose port is the formula's are a pair. A responder must have answered what the requester sent,
// where there are responses at all, and the two hosts must make their ports by the formula: with ports that are all equal, or random,
// one pair in 2^14 fits by chance, and with 256 flows a side there are 2^16 pairs. So of the flows that have a partner of the same port
// most must fit, and where there are many flows, at least two.
func (p *Pairing) formulaSure(pl, mate *place) bool {
	if !pl.id().unreliable() && !answered(pl, mate) && !answered(mate, pl) {
		return false
	}
	c := p.matches(pl)
	return 2*c.formula > c.equal && (c.formula > 1 || c.flows < smallGroup)
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
	return min(bits.Len(uint(c.flows*c.flows/(c.shared+2)))-1, portBits)
}
