package pairing

import (
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// enter gives the flow a place in its group. If there is none, the flow's packets are only counted, and the flow tries again later.
func (s *subject) enter() (pl place, ok bool) {
	s.t.port, s.t.last, s.t.slot = s.p.SrcPort, s.p.PSN, 0
	p := s.l.pairing
	if s.t.pace > 0 && s.t.left() > 0 || !s.l.spend(placesASide/4) { // it is not yet time for another attempt
		return pl, false
	}
	if !p.allocation.try() {
		s.l.skipped()
		return pl, false
	}
	pl, ok, full := s.settle()
	p.allocation.release()
	if full {
		s.l.counts.NoPlace++
		s.l.dirty = true
		s.later()
		s.t.due++
	}
	return pl, ok
}

// settle finds a place and begins the flow's note, under Pairing.allocation; full reports that there is no free place.
func (s *subject) settle() (pl place, ok, full bool) {
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
	slot := p.newPlace(g, side, s.now)
	if slot == 0 || !p.connect(&key, 1-side, s.p.DestQP, s.l.ref(s.x)) {
		return pl, false, true
	}
	*s.n = note{began: milliseconds(s.now)}
	s.t.slot = slot
	s.t.flags &^= sends | sure
	s.t.last |= unsettled
	s.t.acked = 0
	s.noteService()
	s.n.lease = p.occupy(slot, s.l.ref(s.x), s.identity())
	s.soon()
	return p.placeOf(slot), true, false
}

// over reports whether the current packet begins a new flow record: the old one is closed, and either its time has passed or the packet
// belongs to another connection that RDMA-CM has set up.
func (l *Learner) over(x flowtable.Index, a Answer, p *packet.Parsed, now int64) bool {
	pl, ok := l.place(x)
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

// findMate finds the place of the flow's mate, while the mate has it.
func (s *subject) findMate(m mateWord) bool {
	if m == 0 {
		return false
	}
	side, n := 1-s.pl.side, m.n()
	x := s.pl.g.pages[side][n/placesAPage%pagesASide].Load()
	if x == 0 {
		return false
	}
	s.mate = place{s.pl.g, &s.l.pairing.pages[x], n % placesAPage, side, n}
	return sentWord(s.mate.p.sent[s.mate.k].Load()).lease() == m.lease()
}

// sentBy returns the PSNs that the mate's requests have used; not valid if another flow has the place now.
func sentBy(mate *place, m mateWord) sentWord {
	w := sentWord(mate.p.sent[mate.k].Load())
	if w.lease() != m.lease() {
		return 0
	}
	return w
}

// heardFrom returns the highest PSN of the mate's responses; not valid if another flow has the place now.
func heardFrom(mate *place, m mateWord) ackWord {
	w := ackWord(mate.p.ack[mate.k].Load())
	if w.lease() != m.lease() {
		return 0
	}
	return w
}
