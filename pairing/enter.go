package pairing

import (
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// enter gives the flow a slot in its group. If there is none, the flow's packets are only counted, and the flow tries again later.
func (s *subject) enter() (pl Slot, ok bool) {
	s.t.port, s.t.last, s.t.slot = s.p.SrcPort, s.p.PSN, 0
	p := s.l.pairing
	if s.t.pace > 0 && s.t.left() > 0 || !s.l.spend(slotsASide/4) { // it is not yet time for another attempt
		return pl, false
	}
	if !p.allocation.try() {
		s.l.skipped()
		return pl, false
	}
	pl, ok, full := s.assign()
	p.allocation.release()
	if full {
		s.l.counts.NoSlot++
		s.l.dirty = true
		s.slower()
		s.t.due++
	}
	return pl, ok
}

// assign finds a slot and begins the flow's note, under Pairing.allocation; full reports that there is no free slot.
func (s *subject) assign() (pl Slot, ok, full bool) {
	p := s.l.pairing
	key, side := p.groupOf(s.l.table.Key(s.x))
	h := p.hashOf(&key)
	g := p.findGroup(&key, h)
	if g == 0 {
		if g = p.newGroup(&key, h, s.now); g == 0 {
			return pl, false, true
		}
	}
	if !p.groups[g].lock.try() {
		s.l.skipped()
		return pl, false, false
	}
	defer p.groups[g].lock.release()
	slot := p.newSlot(g, side, s.now)
	if slot == 0 || !p.connect(&key, 1-side, s.p.DestQP, s.l.ref(s.x)) {
		return pl, false, true
	}
	*s.n = note{began: milliseconds(s.now)}
	s.t.slot = slot
	s.t.flags &^= sends | sure
	s.t.last |= inexact
	s.t.acked = 0
	s.noteService()
	s.n.lease = p.occupy(slot, s.l.ref(s.x), s.identity())
	s.restartPace()
	return p.slotAt(slot), true, false
}

// over reports whether the current packet begins a new flow record: the old one is closed, and either its time has passed or the packet
// belongs to another connection that RDMA-CM has set up.
func (l *Learner) over(x flowtable.Index, a Answer, p *packet.Parsed, now int64) bool {
	pl, ok := l.slotOf(x)
	if a.Ended() != EndedDREQ || !ok {
		return true
	}
	const linger = 1000 // ms that packets after a DREQ still belong to its connection
	ended := pl.p.ended[pl.k].Load()
	if int32(milliseconds(now)-ended) > linger { // the clock of the worker that saw the DREQ may be ahead of this one's
		return true
	}
	if !l.spend(madCost / 4) { // without a check, the packet counts as the old connection's
		return false
	}
	c, ok, _ := l.claimOf(x, p.PSN, milliseconds(now), now)
	return ok && int32(milliseconds(c.time)-ended) >= 0 && (p.Opcode.Role() == packet.Response || (p.PSN-c.psn)&psnMask <= firstSlack)
}

// milliseconds is a time, ns, in milliseconds modulo 2^32.
func milliseconds(ns int64) uint32 { return uint32(ns / 1e6) }

// findPeer finds the slot of the flow's peer flow, while the peer flow has it.
func (s *subject) findPeer(m link) bool {
	if m == 0 {
		return false
	}
	side, n := 1-s.pl.side, m.n()
	x := s.pl.g.pages[side][n/slotsAPage%pagesASide].Load()
	if x == 0 {
		return false
	}
	s.peer = Slot{s.pl.g, &s.l.pairing.pages[x], n % slotsAPage, side, n}
	return sentWord(s.peer.p.sent[s.peer.k].Load()).lease() == m.lease()
}

// sentBy returns the PSNs that the peer flow's requests have used; not valid if another flow has the slot now.
func sentBy(peer *Slot, m link) sentWord {
	w := sentWord(peer.p.sent[peer.k].Load())
	if w.lease() != m.lease() {
		return 0
	}
	return w
}

// acksOf returns the highest PSN of the peer flow's responses; not valid if another flow has the slot now.
func acksOf(peer *Slot, m link) ackWord {
	w := ackWord(peer.p.ack[peer.k].Load())
	if w.lease() != m.lease() {
		return 0
	}
	return w
}
