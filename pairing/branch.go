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

// way is where a flow may get a slot, as its packet p arrives: in the group of its two hosts, or a branch.
type way struct {
	*flow
	p *arrival
}

// place returns the group on the way of the flow's port in which it gets a slot, under Store.Lock. If all are full, and there are
// flows of both directions, the last one gets another branch; a joined group has no branches of branches.
func (f way) place(whole *store.Group, side int, source uint64) *store.Group {
	s, p := f.l.pairing.store, f.p
	var on [store.Depths]*store.Group
	n := s.Way(whole, p.SrcPort, &on)
	if g := f.bestOf(on[:n], side); g != nil {
		return g
	}
	last := on[n-1]
	if scopes := whole.Scopes(); !whole.Holds(1-side) || scopes[0] != scopes[1] && last.IsBranch() { // part must be short
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

// bestOf returns the group that has a slot for the flow and the flow of the other side that fits best; the first one of several, nil if none has a slot.
func (f way) bestOf(groups []*store.Group, side int) (best *store.Group) {
	fit := fitsNot
	for _, g := range groups {
		if !g.Lock().Try() {
			f.l.counts.skipped()
			continue
		}
		if g == f.slot.Group() || !g.Full(side) || f.freeEnded(g, side) {
			if here := f.fitIn(g, side); best == nil || here > fit {
				best, fit = g, here
			}
		}
		g.Lock().Release()
		if fit == fitsFormula {
			break
		}
	}
	return best
}

// freeEnded takes the slot of a flow of a full side that has ended, under both locks, and reports whether there was one.
func (f way) freeEnded(g *store.Group, side int) bool {
	all := f.l.pairing
	slot, ok := all.store.Empty(g, side, f.p.now, all.answers.ended)
	if ok {
		all.release(&slot)
	}
	return ok
}

// fitIn is how well the best flow without a peer flow of a group's other side fits the flow, under the group's lock.
func (f way) fitIn(g *store.Group, side int) (fit int) {
	p := f.p
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

// regroup takes the slot of a flow that has no peer flow, if another group on the way of its port has a slot and a flow that fits it better than those
// of its own, or is nearer to the group of all ports. With its next packet the flow gets a slot there.
func (f way) regroup() {
	s := f.l.pairing.store
	own := f.slot.Group()
	if !own.Divided() || !f.l.spend(0) || !s.Lock.Try() {
		return
	}
	defer s.Lock.Release()
	if !f.slot.Has(f.l.ref(f.index)) { // groups are dropped under Store.Lock, so from here on it stays
		return
	}
	var on [store.Depths]*store.Group
	n := s.Way(s.Find(own.Key(), own.Hash()), f.p.SrcPort, &on)
	if g := f.bestOf(on[:n], f.slot.Side()); g == nil || g == own || !f.lock() {
		return
	}
	defer f.unlock()
	vacate(&f.slot)
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
