package pairing

import (
	"math/bits"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing/store"
)

// In this file "port" is the UDP source port.

const (
	portBits   = 14 // bits that an equal port counts if all 2^14 ports are in use
	fewPorts   = 12 // bits below which an equal port counts nothing
	smallGroup = 16 // number of flows of a side from which on two flows may fit the formula, or share a port, by chance
	manyFit    = 16 // number of flows of a side that must fit the formula if a third flow has the port
)

// portMatch is the result of comparing a flow's port with the flows of the other side.
type portMatch struct {
	n       int       // slot of the only flow that fits the port, -1 for none
	formula bool      // that flow fits by the formula; otherwise it only has the same port
	equal   int       // flows with the same port, ruled out or not
	left    int       // those that have no peer flow yet and are not ruled out
	set     store.Set // those counted in equal
}

// matchPort finds the only flow of the other side that fits by the formula: both have the port that it makes of their destination QPs. If
// none fits, it finds the only flow that has the same port and may be the peer flow.
func matchPort(f *store.View) portMatch {
	m := matchPortOf(f, false)
	if m.formula || f.Identity().IsRemote() {
		return m
	}
	return matchPortOf(f, true)
}

// matchPortOf is matchPort among the flows that the gateway has seen itself: what others have seen counts only if none of those fits. peers:
// among all.
func matchPortOf(f *store.View, peers bool) portMatch {
	id := f.Identity()
	m := portMatch{n: -1}
	if !id.Steady() {
		return m
	}
	last, fit, fits, possible, possibles := -1, -1, 0, -1, 0
	for w, set := range f.WithPort(1-f.Side(), id.Port()) {
		for ; set != 0; set &= set - 1 {
			n := w*64 + bits.TrailingZeros64(set)
			o, ok := f.Other(n)
			if !ok {
				continue
			}
			i := o.Identity()
			if !i.Steady() || i.Unreliable() != id.Unreliable() || !peers && i.IsRemote() {
				continue
			}
			m.equal++
			m.set[w] |= set & -set
			formula, ruledOut := packet.SourcePort(id.QP(), i.QP()) == id.Port(), !f.May(n) || !o.May(f.Number())
			if formula {
				fit, fits = n, fits+1
			}
			if ruledOut {
				continue
			}
			if formula {
				possible, possibles = n, possibles+1
			}
			if _, paired := o.Peer(); !paired {
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

// mark updates the port marks of the flow in a slot and of the flows with the same port.
func (m *portMatch) mark(slot *store.Slot) {
	own := store.PortMark(min(m.equal, 1)) * store.PortEqual
	for w, set := range m.set {
		for ; set != 0; set &= set - 1 {
			if o, ok := slot.Opposite(w*64 + bits.TrailingZeros64(set)); ok {
				o.SetPortMark(o.PortMark() | store.PortEqual)
			}
		}
	}
	if m.formula {
		own |= store.PortFormula
	}
	slot.SetPortMark(own)
}

// sharesPort reports whether other flows of the same side have the same port. peers: remote ones count, too.
func sharesPort(f *store.View, peers bool) bool {
	for w, set := range f.WithPort(f.Side(), f.Identity().Port()) {
		for ; set != 0; set &= set - 1 {
			n := w*64 + bits.TrailingZeros64(set)
			if o, ok := f.Same(n); ok && n != f.Number() && (peers || !o.Identity().IsRemote()) {
				return true
			}
		}
	}
	return false
}

// portPair is two flows that fit each other by their ports, and how the ports of the two matched.
type portPair struct {
	match, back portMatch
	peer        store.View
	formula     bool // the two fit each other by the formula
	equal       bool // they only have the same port
	alone       bool // no third flow has the port, on either side
	few         bool // at most one other flow on each side has it
	disputed    bool // not a pair: the other flow's pair is to be withdrawn
}

// portRule finds the pair of flows that fit each other by their ports, if there is one.
func portRule(all answers, f *store.View) (p portPair) {
	p.match = matchPort(f)
	if p.match.n < 0 {
		return p
	}
	var ok bool
	if p.peer, ok = f.Other(p.match.n); !ok {
		return p
	}
	p.back = matchPort(&p.peer)
	if p.back.n != f.Number() || p.back.formula != p.match.formula {
		p.disputed = p.match.formula && disputes(all, f, &p.peer)
		return p
	}
	p.formula, p.equal = p.match.formula, !p.match.formula
	peers := f.Identity().IsRemote() || p.peer.Identity().IsRemote()
	p.alone = p.match.equal == 1 && p.back.equal == 1 && !sharesPort(f, peers) && !sharesPort(&p.peer, peers)
	p.few = max(p.match.equal, p.back.equal) <= 2
	return p
}

// disputes reports whether the pair of a flow is to be withdrawn because another one fits it by the formula, too, and responds to later
// requests than its peer flow does. Then the peer flow's responses may be forged: anyone who knows the two QPs can find a QP that fits, and
// send a response to it before the true one. UC has no responses, so there the rule abstains if two flows fit.
func disputes(all answers, f, other *store.View) bool {
	peer, ok := other.Peer()
	if f.Identity().IsRemote() { // what another gateway says withdraws nothing
		return false
	}
	if a, open := all.of(other.Ref()); !ok || !open || a.Evidence() != EvidencePort || peer.Number() == f.Number() {
		return false
	}
	ack, peerAck, sent := f.Ack(), peer.Ack(), other.Sent()
	ahead := (ack.Last() - peerAck.Last()) & packet.PSNMask
	later := ack.Valid() && (ack.Last()-sent.First())&packet.PSNMask <= sent.Width()+margin &&
		(!peerAck.Valid() || ahead > backMargin && ahead < packet.PSNHalf)
	return later || f.Identity().Unreliable()
}

// formulaSure reports whether two flows whose port is the formula's are certainly a pair. Except for UC, one must have responded to
// requests of the other. And the two hosts must use the formula: among flows that all have one port, one pair in 2^14 fits by chance, and
// 256 flows a side make 2^16 pairs. So with few flows no third one may have the port. With many, more than half of the flows with an equal
// port on the other side must fit by the formula: at least two of them, or manyFit if a third flow has the port.
func formulaSure(f *store.View, pair *portPair) bool {
	peer := &pair.peer
	if !f.Identity().Unreliable() && !responded(f, peer) && !responded(peer, f) {
		return false
	}
	one, other := countPorts(f), countPorts(peer)
	f.Group().Note(noteCounts(&one, &other))
	if above, ok := f.Above(); ok {
		return formulaSureInBranch(f, pair, one.with(above.Noted()), other.with(above.Noted()))
	}
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
func responded(a, b *store.View) bool { return b.Ack().Valid() && a.Sent().Has(b.Ack().Last()) }

// portCounts counts the flows of a side, and those with each port mark.
type portCounts struct{ flows, equal, formula int }

func countPorts(f *store.View) (c portCounts) {
	for n := range f.Own() {
		o, ok := f.Same(n)
		if !ok {
			continue
		}
		c.flows++
		c.equal += int(o.PortMark() & store.PortEqual)
		c.formula += int(o.PortMark() & store.PortFormula / store.PortFormula)
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

// sharing counts the flows of f's side that share a port with another one. It counts them at each call, since flows begin and end, also
// forged ones.
func sharing(f *store.View, scratch *[2]portSet) (n int) {
	once, twice := &scratch[0], &scratch[1]
	clear(scratch[:])
	for m := range f.Own() {
		o, ok := f.Same(m)
		if !ok || !once.add(o.Identity().Port()) {
			continue
		}
		if n++; !twice.add(o.Identity().Port()) {
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
func equalSure(f, peer *store.View, scratch *[2]portSet) bool {
	if f.Group().Divided() { // a peer flow may be in another group of the two hosts; and a branch has few ports
		return false
	}
	if !f.May(peer.Number()) || !peer.May(f.Number()) || !f.Sent().Valid() && !peer.Sent().Valid() ||
		f.Sent().Valid() && !responded(f, peer) || peer.Sent().Valid() && !responded(peer, f) {
		return false
	}
	one, other := countPorts(f), countPorts(peer)
	port := min(bitsOfPort(one.flows, sharing(f, scratch)), bitsOfPort(other.flows, sharing(peer, scratch)))
	if port < fewPorts {
		return false // many share a port: an equal port doesn't show that the peer flow passes through the gateway
	}
	evidence := port + agreement(f, peer) + agreement(peer, f)
	return enough(f, peer, chance(evidence, one.flows, other.flows, min(one.equal, other.equal)))
}

// ownPort reports whether the UDP source port of two flows is their connection's own, so that another connection would have another port:
// it results from the formula and their QPs, or from the flow label in RDMA-CM's REQ.
func ownPort(f, peer *store.View) bool {
	a, b := f.Identity(), peer.Identity()
	return a.Steady() && b.Steady() && a.Port() == b.Port() &&
		(a.Port() == packet.SourcePort(a.QP(), b.QP()) || a.Port() == f.Claim().Port() && a.Port() != 0)
}
