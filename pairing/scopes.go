package pairing

import (
	"github.com/cnpgate/cnpgate/internal/keyhash"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing/store"
)

// This file is about connections whose two directions have different scopes: asymmetric routing between two VNIs, an access port's mirror that
// strips the tag of one direction, a tunnel in one direction. Flows are compared within a group, and a group is of one scope, so that tenants with the
// same addresses never meet. But where all flows that a host sends are in one scope, and all that it receives are in another one, both sides may be
// of one tenant. Then the flows of side 1 join the group of side 0's scope, if
//
//   - neither scope has flows of both directions between these hosts, and
//   - no second scope may be the other one's, on either side.
//
// The rules find pairs in the joined group as in any other. But a pair counts only as a proof that the two scopes belong together, until minProofs
// connections have proved it, whichever hosts they are of: see scopePairs. A flow of the scope on the other side disproves it: the group's pairs end,
// the flows of side 1 leave, and the two scopes need twice as many proofs.
//
// What another gateway has seen (peers.go) joins nothing, and proves nothing.
//
// The true peer flow may only be late. So a connection proves nothing before its requests have used proofPSNs PSNs, if its responses began before them, or while flows of a third scope
// have no other direction, or none that is certain.

const (
	minProofs, maxProofs = 4, 16
	proofPSNs            = 64

	scopePairSets  = 64
	scopePairsASet = 4
)

// scopePair is the scopes of side 0 and side 1, at the lower gateway port.
type scopePair [2]packet.Scope

// provenPair is what is known of two scopes.
type provenPair struct {
	of     scopePair
	proofs uint8 // connections that have proved that the two belong together
	need   uint8
	by     [maxProofs]uint32 // hashes of these connections
}

func (e *provenPair) proven() bool { return e.need > 0 && e.proofs >= e.need }

// scopePairs are the scopes of two directions that belong together, or may: 256 at most. A new one replaces one that isn't proven.
type scopePairs struct {
	lock   store.Lock
	stated []scopePair // by the operator, as Named: they need no proof
	closed bool        // no others belong together
	sets   [scopePairSets][scopePairsASet]provenPair
}

func (s *scopePairs) setOf(of scopePair) *[scopePairsASet]provenPair {
	return &s.sets[keyhash.Fold(uint64(of[0])^0x9e3779b97f4a7c15, uint64(of[1])^0xd1342543de82ef95)%scopePairSets]
}

func (s *scopePairs) find(of scopePair) *provenPair {
	set := s.setOf(of)
	for i := range set {
		if set[i].of == of && set[i].need > 0 {
			return &set[i]
		}
	}
	return nil
}

// proven reports whether two scopes belong together.
func (s *scopePairs) proven(of scopePair) bool {
	a, b := of[0].Named(), of[1].Named()
	for _, stated := range s.stated {
		if stated == (scopePair{a, b}) || stated == (scopePair{b, a}) {
			return true
		}
	}
	if !s.lock.Try() {
		return false
	}
	defer s.lock.Release()
	e := s.find(of)
	return e != nil && e.proven()
}

// prove records that a connection has its flows in two scopes, and reports whether these belong together by now.
func (s *scopePairs) prove(of scopePair, connection uint32) bool {
	if !s.lock.Try() {
		return false
	}
	defer s.lock.Release()
	e := s.find(of)
	if e == nil {
		set := s.setOf(of)
		for i := range set {
			if !set[i].proven() && (e == nil || set[i].proofs < e.proofs) {
				e = &set[i]
			}
		}
		if e == nil || s.closed {
			return false
		}
		*e = provenPair{of: of, need: minProofs}
	}
	if e.proven() {
		return true
	}
	for _, by := range e.by[:e.proofs] {
		if by == connection {
			return false
		}
	}
	e.by[e.proofs], e.proofs = connection, e.proofs+1
	return e.proven()
}

// disprove records that a group of two scopes was wrong.
func (s *scopePairs) disprove(of scopePair) {
	if !s.lock.TrySoon() {
		return
	}
	defer s.lock.Release()
	if e := s.find(of); e != nil {
		e.proofs, e.need = 0, min(2*e.need, maxProofs)
	}
}

// group returns the group in which the flow gets a slot, by the key of its own scope, under Store.Lock; nil if there is no space. busy: another
// worker holds a lock.
func (f way) group(key *store.Key, side int) (g *store.Group, busy bool) {
	p := f.l.pairing
	hash := p.hashOf(key)
	own := p.store.Find(key, hash)
	switch {
	case f.flags&remote != 0:
	case side == 0:
		if !f.l.leave(key) {
			return nil, true
		}
	case own == nil || !own.Holds(0):
		if g := f.l.joined(key); g != nil {
			return g, false
		}
	}
	if own == nil {
		own = p.store.Make(key, hash)
	}
	return own, false
}

// joined returns the group of another scope whose side 0 is the other direction of a key of side 1, nil if there is none, or if it isn't certain
// which one.
func (l *Learner) joined(key *store.Key) (found *store.Group) {
	var beside [store.MaxBeside]*store.Group
	n, all := l.pairing.store.Beside(key, &beside)
	l.budget -= n
	if !all {
		return nil
	}
	proven, several := false, false
	for _, g := range beside[:n] {
		of := scopePair{g.Key().Scope, key.Scope}
		if !g.Holds(0) || g.Refused() {
			continue
		}
		known := l.pairing.scopes.proven(of)
		if g.Holds(1) && g.Scopes() != of {
			if known && g.Joins() { // two scopes may be the other one of side 0's
				l.part(g)
			}
			continue
		}
		switch {
		case !known && (proven || l.pairing.scopes.closed):
		case known && !proven:
			found, proven, several = g, true, false
		default:
			found, several = g, found != nil
		}
	}
	if several {
		return nil
	}
	return found
}

// leave ends the groups in which side 1 has joined another scope, but belongs to that of a key of side 0, or may. It returns false if another worker
// holds a lock.
func (l *Learner) leave(key *store.Key) bool {
	var beside [store.MaxBeside]*store.Group
	n, _ := l.pairing.store.Beside(key, &beside)
	l.budget -= n
	for _, g := range beside[:n] {
		other := g.Scopes()[1]
		if g.Joins() && (other == key.Scope || l.pairing.scopes.proven(scopePair{key.Scope, other})) && !l.part(g) {
			return false
		}
	}
	return true
}

// part ends a joined group, under Store.Lock. It returns false if another worker holds the group's lock.
func (l *Learner) part(g *store.Group) bool {
	if !g.Lock().Try() {
		l.counts.skipped()
		return false
	}
	defer g.Lock().Release()
	defer l.pairing.store.Tidy(g)
	return l.partLocked(g)
}

// partLocked is part under the group's lock: its pairs end, and those of its branches, and the flows of side 1 are in the group of their own scope.
func (l *Learner) partLocked(g *store.Group) bool {
	s := l.pairing.store
	key := store.Key{Hosts: g.Key().Hosts, Scope: g.Scopes()[1]}
	own := s.Make(&key, l.pairing.hashOf(&key))
	if own != nil {
		if !own.Lock().Try() {
			l.counts.skipped()
			return false
		}
		defer own.Lock().Release()
		defer s.Tidy(own)
		if !own.Joins() {
			own.SetOther(key.Scope)
		}
	}
	var branches [store.Branches]*store.Group
	n := s.Branches(g, &branches)
	for i, b := range branches[:n] {
		if !b.Lock().Try() {
			for _, b := range branches[:i] {
				b.Lock().Release()
			}
			l.counts.skipped()
			return false
		}
	}
	l.pairing.scopes.disprove(g.Scopes())
	g.Refuse()
	l.clearSide(g, own)
	for _, b := range branches[:n] {
		l.clearSide(b, own)
		s.Tidy(b)
		b.Lock().Release()
	}
	return true
}

// clearSide ends the pairs of a group, and moves the flows of side 1 to that of their own scope. Those for which there is no place have no slot any more.
func (l *Learner) clearSide(g, own *store.Group) {
	p := l.pairing
	l.budget -= g.Used(1) + g.Used(0)
	for n := range g.Used(1) {
		slot, ok := p.store.Occupied(g, 1, n)
		if !ok {
			continue
		}
		if peer, ok := slot.Unpair(); ok {
			l.counts.change().Contradictions++
			p.contradictOne(&peer)
		}
		p.answers.withdraw(slot.Ref())
		if own == nil || own.Joins() || !slot.Move(own) {
			vacate(&slot)
		}
	}
	for n := range g.Used(0) {
		if slot, ok := p.store.Occupied(g, 0, n); ok {
			slot.Restart()
		}
	}
}

// vacate takes a flow's slot. The flow gets another one with its next packet.
func vacate(slot *store.Slot) {
	lease := slot.Lease()
	slot.PublishSent(lease, 0)
	slot.PublishAck(lease, 0)
	slot.Vacate(slot.Ref())
}

// takeSide makes the group's side 1 one of the flow's scope, under both locks. If the group has joined another scope, it parts; but not for what another
// gateway has seen: then takeSide returns false.
func (f *flow) takeSide(g *store.Group, scope packet.Scope) bool {
	if g.Scopes()[1] == scope {
		return true
	}
	if g.Holds(1) && (f.flags&remote != 0 || !f.l.partLocked(g)) {
		return false
	}
	g.SetOther(scope)
	var branches [store.Branches]*store.Group
	for _, b := range branches[:f.l.pairing.store.Branches(g, &branches)] {
		b.SetOther(scope)
	}
	return true
}

// rejoin moves the flows of a group's side 1 to the group of another scope, if side 0 has no flows, but that group has.
func (f *flow) rejoin() {
	if f.slot.Side() == 0 || f.flags&remote != 0 || f.slot.Group().Divided() || !f.l.spend(store.MaxBeside) {
		return
	}
	s := f.l.pairing.store
	if !s.Lock.Try() {
		f.l.counts.skipped()
		return
	}
	defer s.Lock.Release()
	key, _ := f.l.pairing.groupOf(f.l.table.Key(f.index))
	own := f.slot.Group()
	g := f.l.joined(&key)
	if g == nil || g == own || !f.lock() {
		return
	}
	defer own.Lock().Release()
	if !g.Lock().Try() {
		f.l.counts.skipped()
		return
	}
	defer g.Lock().Release()
	if !f.takeSide(g, key.Scope) {
		return
	}
	f.l.budget -= own.Used(1)
	for n := range own.Used(1) {
		if slot, ok := s.Occupied(own, 1, n); ok && !slot.Identity().IsRemote() && (g.Divided() || !slot.Move(g)) {
			vacate(&slot)
		}
	}
	s.Tidy(own)
	f.slot, _ = f.l.slotOf(f.index)
}

// provedBy reports whether a pair that a rule is sure of counts as one: it does if both flows are of one scope, or of two that belong together.
func (s *scopePairs) provedBy(l *Learner, own *store.Slot, peer *store.View) bool {
	g := own.Group()
	if !g.Joins() || s.proven(g.Scopes()) {
		return true
	}
	if own.Identity().IsRemote() || peer.Identity().IsRemote() {
		return false
	}
	if max(own.Sent().Width(), peer.Sent().Width()) < proofPSNs || answersBefore(&own.View, peer) || answersBefore(peer, &own.View) || s.contested(l, g) {
		return false
	}
	var qps [2]uint64
	qps[own.Side()], qps[peer.Side()] = uint64(own.Identity().QP()), uint64(peer.Identity().QP())
	return s.prove(g.Scopes(), uint32(keyhash.Fold(g.Hash()^qps[0], qps[1]<<32|0x9e3779b9)))
}

// answersBefore reports whether a flow that only responds is older than the requests that it seems to answer: it answers those of another connection.
func answersBefore(f, requests *store.View) bool {
	return requests.Sent().Valid() && !f.Sent().Valid() && int32(f.Began()-requests.Began()) < 0
}

// contested reports whether flows of a third scope may belong to one of a joined group's sides: they have no other direction, or have joined another
// scope that isn't proven to be theirs.
func (s *scopePairs) contested(l *Learner, g *store.Group) bool {
	groups := l.pairing.store
	if !groups.Lock.Try() {
		l.counts.skipped()
		return true
	}
	defer groups.Lock.Release()
	var beside [store.MaxBeside]*store.Group
	n, all := groups.Beside(g.Key(), &beside)
	l.budget -= n
	for _, o := range beside[:n] {
		there, back := o.Flows(0) > 0, o.Flows(1) > 0
		if there != back && (there || o.Key().Scope != g.Scopes()[1]) || o.Joins() && !s.proven(o.Scopes()) {
			return true
		}
	}
	return !all
}
