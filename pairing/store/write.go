package store

import "sync/atomic"

// Opposite returns slot n of the other side.
func (s *Slot) Opposite(n int) (Slot, bool) { return s.s.Slot(s.g, 1-s.side, n) }

// Occupy gives a slot to a flow. At first no flow of the other side is ruled out as its peer flow.
func (s *Slot) Occupy(r Ref, id Identity) (lease uint16) {
	p, k := s.p, s.k
	p.lease[k] = max((p.lease[k]+1)&leaseMask, 1)
	p.peer[k].Store(0)
	p.ended[k].Store(0)
	p.elimination[k], p.contradictions[k] = Elimination{}, 0
	s.Reset(id)
	if n := int32(s.n) + 1; n > s.g.used[s.side].Load() {
		s.g.used[s.side].Store(n)
	}
	p.owner[k].Store(uint64(r))
	s.g.flows[s.side].Add(1)
	return p.lease[k]
}

// Vacate frees a slot if the given flow has it.
func (s *Slot) Vacate(r Ref) {
	if r != 0 && s.p.owner[s.k].CompareAndSwap(uint64(r), 0) {
		s.g.flows[s.side].Add(-1)
	}
}

// Reset clears what a slot has about its flow's connection, because another one begins. It keeps the number of contradictions.
func (s *Slot) Reset(id Identity) {
	s.p.sent[s.k].Store(uint64(s.p.lease[s.k]) << 49)
	s.p.id[s.k], s.p.claim[s.k] = id, 0
	s.ForgetAsked()
	s.Unlearn()
}

// Unlearn clears the evidence from the flow's responses and its port.
func (s *Slot) Unlearn() {
	s.p.ack[s.k].Store(uint64(s.p.lease[s.k]) << 49)
	for i := range s.p.next[s.k] {
		s.p.next[s.k][i].Store(0)
	}
	s.p.match[s.k] = 0
	s.Forget()
}

// Forget clears what was ruled out about a flow, in both directions.
func (s *Slot) Forget() {
	s.Anyone()
	s.EditElimination().Restart()
	for n := range s.Others() {
		if o, ok := s.Opposite(n); ok {
			o.p.row[o.k][s.n/64] |= 1 << (s.n % 64)
			if e := o.EditElimination(); e.Only() == s.n {
				e.Restart()
			}
		}
	}
}

// ForgetAsked clears the PSNs for which the flow asked.
func (s *Slot) ForgetAsked() {
	for i := range s.p.asked[s.k] {
		s.p.asked[s.k][i].Store(0)
	}
}

// Anyone clears what was ruled out for the flow: it may respond to any flow of the other side.
func (s *Slot) Anyone() {
	for i := range s.p.row[s.k] {
		s.p.row[s.k][i] = ^uint64(0)
	}
}

// RuleOut rules out the flows with a bit in n, of one word of the row.
func (s *Slot) RuleOut(word int, n uint64) { s.p.row[s.k][word] &^= n }

func (s *Slot) EditElimination() *Elimination { return &s.p.elimination[s.k] }
func (s *Slot) SetIdentity(id Identity)       { s.p.id[s.k] = id }
func (s *Slot) SetClaim(c Claim)              { s.p.claim[s.k] = c }
func (s *Slot) SetPortMark(m PortMark)        { s.p.match[s.k] = m }
func (s *Slot) SetNext(i int, psn uint32)     { s.p.next[s.k][i].Store(psn) }
func (s *Slot) SetAsked(i int, psn uint32)    { s.p.asked[s.k][i].Store(psn) }

// Contradict counts a contradiction of the flow's pair.
func (s *Slot) Contradict() {
	s.p.contradictions[s.k] = min(s.p.contradictions[s.k], 1<<16-2) + 1
}

// Ended is when RDMA-CM released the flow's connection, in milliseconds modulo 2^32.
func (s *Slot) Ended() *atomic.Uint32 { return &s.p.ended[s.k] }

// PublishSent and PublishAck replace the flow's words, unless the slot was given to another flow since this one got it with the given lease.
// Words of 0 show other workers that the flow has ended.
func (s *Slot) PublishSent(lease uint16, now Sent) { publish(&s.p.sent[s.k], lease, uint64(now)) }
func (s *Slot) PublishAck(lease uint16, now Ack)   { publish(&s.p.ack[s.k], lease, uint64(now)) }

func publish(word *atomic.Uint64, lease uint16, now uint64) {
	if was := word.Load(); uint16(was>>49) == lease {
		word.CompareAndSwap(was, now)
	}
}

// Pair makes two flows each other's peer.
func (s *Slot) Pair(peer *Slot, ownPort bool) {
	s.p.peer[s.k].Store(uint64(makeLink(peer.n, peer.Lease(), ownPort)))
	peer.p.peer[peer.k].Store(uint64(makeLink(s.n, s.Lease(), ownPort)))
}

// Unpair ends the pair of a flow, if it has a peer flow, and returns that one's slot.
func (s *Slot) Unpair() (peer Slot, ok bool) {
	view, ok := s.Peer()
	s.p.peer[s.k].Store(0)
	if ok {
		view.p.peer[view.k].Store(0)
	}
	return Slot{view}, ok
}

// ChangeLink replaces the flow's link, unless it has changed.
func (s *Slot) ChangeLink(was, now Link) { s.p.peer[s.k].CompareAndSwap(uint64(was), uint64(now)) }
