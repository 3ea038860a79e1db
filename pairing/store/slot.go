package store

import (
	"sync/atomic"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// View is what can be read of a slot: the evidence about one flow, and from there about the other flows of its group.
type View struct {
	s    *Store
	g    *Group
	p    *Record
	x    uint32 // in Store.slots
	side uint8
	n    uint16 // on its side
}

// Slot is a View that can be written, too.
type Slot struct{ View }

// At returns a slot by its number in the store. If a flow no longer has it, it may belong to another group, or to none.
func (s *Store) At(number uint32) Slot {
	r := &s.slots[number]
	at := r.spot.Load()
	return Slot{View{s, &s.groups[at>>spotGroup], r, number, uint8(at >> spotSide & 1), uint16(at & (SlotsASide - 1))}}
}

// A record's spot: bits 0-7 the slot's number on its side, 8 the side, 9-63 the group.
const (
	spotSide  = nodeBits * levels
	spotGroup = spotSide + 1
)

func makeSpot(group uint32, side, n int) uint64 {
	return uint64(group)<<spotGroup | uint64(side)<<spotSide | uint64(n)
}

// Slot returns slot n of a side, and false if there is none.
func (s *Store) Slot(g *Group, side, n int) (slot Slot, ok bool) {
	at := s.find(g, side, n, 0)
	if at == nil || *at == 0 {
		return slot, false
	}
	return Slot{View{s, g, &s.slots[*at], *at, uint8(side), uint16(n)}}, true
}

// Occupied returns slot n of a side if a flow has it.
func (s *Store) Occupied(g *Group, side, n int) (Slot, bool) {
	slot, ok := s.Slot(g, side, n)
	return slot, ok && slot.Ref() != 0
}

// Used is the number of slots of a side that were ever assigned.
func (g *Group) Used(side int) int { return int(g.used[side].Load()) }

// Flows is the number of flows that have a slot of a side now.
func (g *Group) Flows(side int) int { return int(g.flows[side].Load()) }

// Lock is needed to assign slots of the group, and to read and change what was found by comparing its flows.
func (g *Group) Lock() *Lock { return &g.lock }

// Key is the two hosts that the group is of.
func (g *Group) Key() *Key { return &g.key }

// Hash is the hash of Key.
func (g *Group) Hash() uint64 { return g.hash }

// Scopes are those of the two sides, at the lower gateway port.
func (g *Group) Scopes() [2]packet.Scope {
	return [2]packet.Scope{g.key.Scope, packet.Scope(g.other.Load())}
}

// Joins reports whether flows of two scopes are in the group.
func (g *Group) Joins() bool { s := g.Scopes(); return g.Holds(1) && s[0] != s[1] }

// SetOther sets the scope of side 1, under both locks, while it has no flows.
func (g *Group) SetOther(s packet.Scope) { g.other.Store(uint64(s)) }

// Refuse records that another scope was on side 1, which was wrong: it must not be again while the group has flows. Refuse and Refused are under
// Store.Lock.
func (g *Group) Refuse() { g.refused = true }

// Refused reports whether it was.
func (g *Group) Refused() bool {
	g.refused = g.refused && (g.Holds(0) || g.Holds(1))
	return g.refused
}

// Number is the slot's number on its side.
func (v *View) Number() int { return int(v.n) }

// Side is 0 or 1: the direction of the flow between the two hosts.
func (v *View) Side() int { return int(v.side) }

// Group is the group of the slot.
func (v *View) Group() *Group { return v.g }

// Ref is the flow that has the slot, 0 for none.
func (v *View) Ref() Ref { return Ref(v.p.owner.Load() &^ (moves | moving)) }

// Has reports whether a flow still has the slot, and the slot is where it was, under Group.Lock.
func (v *View) Has(r Ref) bool {
	return v.Ref() == r && v.p.spot.Load() == makeSpot(v.g.index, v.Side(), v.Number())
}

// Lease is how often the slot was assigned, modulo 2^15.
func (v *View) Lease() uint16 { return v.p.lease }

// Began is when the flow got the slot, in ms modulo 2^32.
func (v *View) Began() uint32 { return v.p.began }

// Identity has what the port rules need of the flow.
func (v *View) Identity() Identity { return v.p.id }

// Elimination is the evidence of the flow's responses.
func (v *View) Elimination() Elimination { return v.p.elimination }

// Claim is RDMA-CM's claim about the flow, 0 for none.
func (v *View) Claim() Claim { return v.p.claim }

// Link is the slot of the peer flow, 0 for none.
func (v *View) Link() Link { return Link(v.p.peer.Load()) }

// PortMark shows which flows have the flow's port.
func (v *View) PortMark() PortMark { return v.p.match }

// Contradictions counts the packets that contradicted the flow's pair.
func (v *View) Contradictions() uint16 { return v.p.contradictions }

// InStore is the slot's number in the store.
func (v *View) InStore() uint32 { return v.x }

// Others is the number of slots of the other side that were ever assigned.
func (v *View) Others() int { return v.g.Used(1 - v.Side()) }

// Own is the number of slots of this side that were ever assigned.
func (v *View) Own() int { return v.g.Used(v.Side()) }

// Other returns slot n of the other side if a flow has it.
func (v *View) Other(n int) (View, bool) {
	slot, ok := v.s.Occupied(v.g, 1-v.Side(), n)
	return slot.View, ok
}

// Same returns slot n of this side if a flow has it.
func (v *View) Same(n int) (View, bool) {
	slot, ok := v.s.Occupied(v.g, v.Side(), n)
	return slot.View, ok
}

// Sent returns the PSNs that the flow's requests have used; not valid before the first request.
func (v *View) Sent() Sent { return v.SentBy(v.Lease()) }

// Ack returns the highest PSN of the flow's responses; not valid before the first response.
func (v *View) Ack() Ack { return v.AckBy(v.Lease()) }

// SentBy is Sent of the flow that had the slot with a lease; not valid if another flow has it now.
func (v *View) SentBy(lease uint16) Sent {
	w := Sent(v.p.sent.Load())
	if w.lease() != lease {
		return 0
	}
	return w
}

// AckBy is Ack of the flow that had the slot with a lease; not valid if another flow has it now.
func (v *View) AckBy(lease uint16) Ack {
	w := Ack(v.p.ack.Load())
	if w.lease() != lease {
		return 0
	}
	return w
}

// May reports whether the flow in slot n of the other side isn't ruled out: this flow may respond to its requests.
func (v *View) May(n int) bool { return v.p.row[n/64]>>(n%64)&1 != 0 }

// Row has a bit for each flow of a word of 64 slots of the other side that isn't ruled out.
func (v *View) Row(word int) uint64 { return v.p.row[word] }

// Next is a PSN that one of the flow's last responses waits for, with NoteBit; 0 for none.
func (v *View) Next(i int) uint32 { return v.p.next[i].Load() }

// Asked is one of the flow's last PSNs with AckReq, with NoteBit; 0 for none.
func (v *View) Asked(i int) uint32 { return v.p.asked[i].Load() }

// LinkedPeer returns the slot that a link of the flow names, if the peer flow still has it. It needs no lock.
func (v *View) LinkedPeer(l Link) (peer Slot, ok bool) {
	if l == 0 {
		return peer, false
	}
	peer = Slot{View{v.s, v.g, &v.s.slots[l.slot()], l.slot(), 1 - v.side, uint16(l.Number())}}
	return peer, Sent(peer.p.sent.Load()).lease() == l.Lease()
}

// Peer returns the slot of the flow's peer flow, if the peer flow still has it.
func (v *View) Peer() (peer View, ok bool) {
	l := v.Link()
	if l == 0 {
		return peer, false
	}
	slot, _ := v.LinkedPeer(l)
	return slot.View, slot.Lease() == l.Lease() && slot.Ref() != 0
}

// Set is a set of slots of one side, a bit for each.
type Set [rowWords]uint64

// WithPort is the set of flows of a side that have the given UDP source port.
func (v *View) WithPort(side int, port uint16) (set Set) {
	for n := range v.g.Used(side) {
		if slot, ok := v.s.Occupied(v.g, side, n); ok && slot.p.id.Port() == port {
			set[n/64%rowWords] |= 1 << (n % 64)
		}
	}
	return set
}

// Opposite returns slot n of the other side.
func (s *Slot) Opposite(n int) (Slot, bool) { return s.s.Slot(s.g, 1-s.Side(), n) }

// Occupy gives a slot to a flow, whose source has this hash. At first no flow of the other side is ruled out as its peer flow.
func (s *Slot) Occupy(r Ref, id Identity, source uint64, now int64) (lease uint16) {
	p := s.p
	p.lease = max((p.lease+1)&leaseMask, 1)
	p.peer.Store(0)
	p.ended.Store(0)
	p.elimination, p.contradictions = Elimination{}, 0
	s.Reset(id)
	if n := int32(s.n) + 1; n > s.g.used[s.side].Load() {
		s.g.used[s.side].Store(n)
	}
	s.newcomer(source, now)
	p.owner.Store(uint64(r))
	s.g.flows[s.side].Add(1)
	s.s.Tell(s.g)
	return p.lease
}

// Vacate frees a slot if the given flow has it. While the slot moves it stays the flow's, which has ended: Empty and Reclaim find such slots.
func (s *Slot) Vacate(r Ref) {
	for {
		owner := s.p.owner.Load()
		g := &s.s.groups[s.p.spot.Load()>>spotGroup] // where it is, unless owner changes
		if r == 0 || Ref(owner&^moves) != r {
			return
		}
		if s.p.owner.CompareAndSwap(owner, 0) {
			s.known()
			g.flows[s.side].Add(-1)
			return
		}
	}
}

// Move takes a flow's slot to the same side of another group of the two hosts, where its responses rule out nothing yet, under Store.Lock and the locks
// of both groups. It returns false if there is no place, or if the flow has just left the slot.
func (s *Slot) Move(to *Group) bool {
	side, n := s.Side(), 0
	for at := s.s.find(to, side, n, 0); at != nil && *at != 0; at = s.s.find(to, side, n, 0) {
		if n++; n == to.slots() {
			return false
		}
	}
	at, owner := s.s.grow(to, side, n), s.p.owner.Load()
	if at == nil || owner == 0 || !s.p.owner.CompareAndSwap(owner, owner|moving) {
		s.s.shrink(to, side, n)
		return false
	}
	from := s.View
	*s.s.find(from.g, side, from.Number(), 0) = 0
	*at = s.x
	from.g.attached[side]--
	to.attached[side]++
	s.p.spot.Store(makeSpot(to.index, side, n))
	s.g, s.n = to, uint16(n)
	from.g.flows[side].Add(-1)
	to.flows[side].Add(1)
	s.s.shrink(from.g, side, from.Number())
	to.used[side].Store(max(to.used[side].Load(), int32(n)+1))
	s.Restart()
	s.s.Tell(to)
	s.p.owner.Store(owner&^moves | (owner+moved)&moves)
	return true
}

// Reset clears what a slot has about its flow's connection, because another one begins. It keeps the number of contradictions.
func (s *Slot) Reset(id Identity) {
	s.p.sent.Store(uint64(s.p.lease) << 49)
	s.p.id, s.p.claim = id, 0
	s.ForgetAsked()
	s.Unlearn()
}

// Unlearn clears the evidence from the flow's responses and its port.
func (s *Slot) Unlearn() {
	s.p.ack.Store(uint64(s.p.lease) << 49)
	for i := range s.p.next {
		s.p.next[i].Store(0)
	}
	s.Forget()
}

// Restart clears all that comparing the flow with others has shown, except the contradictions of its pairs.
func (s *Slot) Restart() {
	s.p.elimination = Elimination{Contradictions: s.p.elimination.Contradictions}
	s.Forget()
}

// Forget clears what was ruled out about a flow, in both directions, and what its port has shown.
func (s *Slot) Forget() {
	s.p.match = 0
	s.Anyone()
	s.EditElimination().Restart()
	for n := range s.Others() {
		if o, ok := s.Opposite(n); ok {
			o.p.row[s.n/64] |= 1 << (s.n % 64)
			if e := o.EditElimination(); e.Only() == s.Number() {
				e.Restart()
			}
		}
	}
}

// ForgetAsked clears the PSNs for which the flow asked.
func (s *Slot) ForgetAsked() {
	for i := range s.p.asked {
		s.p.asked[i].Store(0)
	}
}

// Anyone clears what was ruled out for the flow: it may respond to any flow of the other side.
func (s *Slot) Anyone() {
	for i := range s.p.row {
		s.p.row[i] = ^uint64(0)
	}
}

// RuleOut rules out the flows with a bit in n, of one word of the row.
func (s *Slot) RuleOut(word int, n uint64) { s.p.row[word] &^= n }

// EditElimination returns the evidence of the flow's responses, to be changed under Group.Lock.
func (s *Slot) EditElimination() *Elimination { return &s.p.elimination }

// SetIdentity replaces what the port rules need of the flow.
func (s *Slot) SetIdentity(id Identity) { s.p.id = id }

// SetClaim replaces RDMA-CM's claim about the flow.
func (s *Slot) SetClaim(c Claim) { s.p.claim = c }

// SetPortMark replaces the marks of the last judgement of ports.
func (s *Slot) SetPortMark(m PortMark) { s.p.match = m }

// SetNext replaces one of the PSNs of Next.
func (s *Slot) SetNext(i int, psn uint32) { s.p.next[i].Store(psn) }

// SetAsked replaces one of the PSNs of Asked.
func (s *Slot) SetAsked(i int, psn uint32) { s.p.asked[i].Store(psn) }

// Contradict counts a contradiction of the flow's pair.
func (s *Slot) Contradict() {
	s.p.contradictions = min(s.p.contradictions, 1<<16-2) + 1
}

// Ended is when RDMA-CM released the flow's connection, in milliseconds modulo 2^32.
func (s *Slot) Ended() *atomic.Uint32 { return &s.p.ended }

// PublishSent replaces the PSNs of the flow's requests, unless the slot was given to another flow since this one got it with the given lease. 0
// shows other workers that the flow has ended.
func (s *Slot) PublishSent(lease uint16, now Sent) { publish(&s.p.sent, lease, uint64(now)) }

// PublishAck does the same with the PSNs of its responses.
func (s *Slot) PublishAck(lease uint16, now Ack) { publish(&s.p.ack, lease, uint64(now)) }

func publish(word *atomic.Uint64, lease uint16, now uint64) {
	if was := word.Load(); uint16(was>>49) == lease {
		word.CompareAndSwap(was, now)
	}
}

// Pair makes two flows each other's peer.
func (s *Slot) Pair(peer *Slot, ownPort bool) {
	s.p.peer.Store(uint64(makeLink(&peer.View, ownPort)))
	peer.p.peer.Store(uint64(makeLink(&s.View, ownPort)))
	s.known()
	peer.known()
}

// Unpair ends the pair of a flow, if it has a peer flow, and returns that one's slot.
func (s *Slot) Unpair() (peer Slot, ok bool) {
	view, ok := s.Peer()
	s.p.peer.Store(0)
	if ok {
		view.p.peer.Store(0)
	}
	return Slot{view}, ok
}

// ChangeLink replaces the flow's link, unless it has changed.
func (s *Slot) ChangeLink(was, now Link) { s.p.peer.CompareAndSwap(uint64(was), uint64(now)) }
