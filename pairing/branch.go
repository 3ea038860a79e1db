package pairing

import (
	"math/bits"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing/store"
)

// This file is about the groups of two hosts with more flows than a group's side has slots. Such a group has branches, by UDP source port. A flow
// gets a slot in the first group on the way of its port (store.Way) that has one, or where a flow is that may be its peer flow. Later each flow of
// a pair may find that the other one is in another group on the way; then it moves there.

// How well a flow of the other side fits a flow, by their UDP source port.
const (
	fitsNot = iota
	fitsPort
	fitsFormula
)

// place returns the group on the way of the flow's port in which it gets a slot, under Store.Lock. A full group of both directions and one scope gets
// another branch.
func (f *flow) place(whole *store.Group, side int, source uint64, p *arrival) *store.Group {
	s := f.l.pairing.store
	var on [store.Depths]*store.Group
	n := s.Way(whole, p.SrcPort, &on)
	if g, fit := f.bestOf(on[:n], side, p); fit != fitsNot {
		return g
	}
	for _, g := range on[:n] {
		if g.Flows(side) < store.SlotsASide {
			return g
		}
	}
	last := on[n-1]
	if scopes := whole.Scopes(); scopes[0] != scopes[1] || whole.Flows(1-side) == 0 && !whole.Divided() {
		return last
	}
	b := s.MakeBranch(last, p.SrcPort)
	if b == nil && !last.IsDeepest() && f.evict(source, true, p.now) {
		b = s.MakeBranch(last, p.SrcPort)
	}
	if b == nil {
		return last
	}
	return b
}

// bestOf returns the group that has a free slot and the flow of the other side that fits best, and how well.
func (f *flow) bestOf(groups []*store.Group, side int, p *arrival) (best *store.Group, fit int) {
	for _, g := range groups {
		if g.Flows(side) == store.SlotsASide || !g.Lock().Try() {
			continue
		}
		if here := f.fitIn(g, side, p); here > fit {
			best, fit = g, here
		}
		g.Lock().Release()
		if fit == fitsFormula {
			break
		}
	}
	return best, fit
}

// fitIn is how well the best flow without a peer flow of a group's other side fits the flow, under the group's lock.
func (f *flow) fitIn(g *store.Group, side int, p *arrival) (fit int) {
	used := g.Used(1 - side)
	f.l.budget -= used
	for n := range used {
		o, ok := f.l.pairing.store.Occupied(g, 1-side, n)
		if !ok || o.Identity().Port() != p.SrcPort || o.Link() != 0 {
			continue
		}
		if packet.SourcePort(o.Identity().QP(), p.DestQP) == p.SrcPort {
			return fitsFormula
		}
		fit = fitsPort
	}
	return fit
}

// regroup takes the slot of a flow that has no peer flow, if another group on the way of its port has a flow that fits it better than those of
// its own. With its next packet the flow gets a slot there. It reports whether the flow has lost its slot.
func (f *flow) regroup(p *arrival) bool {
	s, side := f.l.pairing.store, f.slot.Side()
	if !f.l.spend(0) || !s.Lock.Try() {
		return false
	}
	defer s.Lock.Release()
	key, _ := f.l.pairing.groupOf(f.l.table.Key(f.index))
	whole := s.Find(&key, f.l.pairing.hashOf(&key))
	if whole == nil || !f.lock() {
		return false
	}
	own := f.fitIn(f.slot.Group(), side, p)
	f.unlock()
	if own == fitsFormula {
		return false
	}
	var on [store.Depths]*store.Group
	n := s.Way(whole, p.SrcPort, &on)
	if g, fit := f.bestOf(on[:n], side, p); fit <= own || g == f.slot.Group() || !f.lock() {
		return false
	}
	defer f.unlock()
	vacate(&f.slot)
	return true
}

// with adds the flows of the group above a branch, as they were counted last: those show, too, whether the hosts use the formula.
func (c portCounts) with(noted uint32) portCounts {
	c.flows += int(noted & 0xff)
	c.equal += int(noted >> 8 & 0xff)
	c.formula += int(noted >> 16 & 0xff)
	return c
}

// noteCounts is what a group's branches use of its counts: of each number the less favourable one of the two sides, at most 255.
func noteCounts(one, other *portCounts) uint32 {
	return uint32(min(max(one.flows, other.flows), 255)) | uint32(min(max(one.equal, other.equal), 255))<<8 |
		uint32(min(one.formula, other.formula, 255))<<16
}

// formulaSureInBranch is formulaSure in a branch, where equal ports are no evidence: all flows have one of few ports. That they are the formula's, too,
// happens by chance with probability 2^-14 for each flow of the other side with the port, in each group on the way.
func formulaSureInBranch(f *store.View, pair *portPair, one, other portCounts) bool {
	same := max(pair.match.equal, pair.back.equal) * store.Depths
	evidence := portBits - bits.Len(uint(same-1)) + agreement(f, &pair.peer) + agreement(&pair.peer, f)
	matched := min(one.formula, other.formula)
	return matched >= manyFit && 2*one.formula > one.equal && 2*other.formula > other.equal &&
		enough(f, &pair.peer, chance(evidence, one.flows, other.flows, matched))
}
