package flowtable

import "github.com/cnpgate/cnpgate/internal/packet"

// holds tells whether a flow still has its place; if not, the page may be another group's by now, or nobody's.
func (t *Table) holds(x Index, slot uint32) bool {
	return owner(t.pairing.pages[slot/placesAPage].owner[slot%placesAPage].Load()) == t.ownerOf(x)
}

// enter gives the flow a place among those between its hosts, and what RDMA-CM has said of it.
func (t *Table) enter(x Index, l subject, p *packet.Parsed, now int64) bool {
	if l.left() > 0 { // there was no room; try again later
		return false
	}
	if !t.pairing.claim() {
		t.skipped++
		return false
	}
	t.settle(x, l, p, now)
	t.pairing.release()
	if l.slot == 0 {
		t.noPlace++
		l.later()
		l.due++
		return false
	}
	return true
}

// settle finds the flow's place and what RDMA-CM has said of it. Under the claim.
func (t *Table) settle(x Index, l subject, p *packet.Parsed, now int64) {
	pairing := t.pairing
	key, side := pairing.groupOf(t.entries[x].plainKey())
	h := pairing.hashOf(&key)
	o := t.ownerOf(x)
	known := pairing.findKnown(knownHash(h, side, p.DestQP), now)
	if known != nil {
		t.confirm(o, known.sourceQP, EvidenceCM)
	}
	g := pairing.findGroup(&key, h)
	if g == 0 {
		g = pairing.newGroup(&key, h, now)
	}
	if g == 0 {
		return
	}
	if l.slot = pairing.newPlace(g, side, now); l.slot == 0 {
		return
	}
	t.learners[x] = learner{}
	l = t.subject(x)
	l.port = p.SrcPort
	l.flags &^= sends | refreshed // what it had sent is forgotten: the next request is its first
	l.exact |= unsettled
	l.soon()
	if p.Opcode>>5 == packet.UCSendOnly>>5 {
		l.flags |= unreliable
	}
	pairing.occupy(l.slot, o, l.identity(p.DestQP, l.port))
	if known != nil {
		pl := pairing.placeOf(l.slot)
		pairing.marry(&pl, known.sourceQP)
	}
}

// leave gives up a flow's place.
func (t *Table) leave(x Index) {
	if t.pairing == nil {
		return
	}
	if pl, ok := t.placeOf(x); ok {
		t.pairing.part(&pl)
		pl.p.owner[pl.k].CompareAndSwap(uint64(t.ownerOf(x)), 0)
	}
}

// marry ties a flow to the other side's flow to its source QP, if that is there. Under the claim.
func (p *Pairing) marry(pl *place, sourceQP uint32) {
	for n := range int(pl.g.used[1-pl.side].Load()) {
		o, ok := p.at(pl.g, 1-pl.side, n)
		if !ok || o.owner() == 0 || o.id().qp() != sourceQP {
			continue
		}
		if _, s := p.entryOf(o.owner()); s.usable() && s.qp() == pl.id().qp() {
			p.tie(pl, &o)
		}
		return
	}
}

// tie makes two places each other's mate, unless one has another.
func (p *Pairing) tie(a, b *place) bool {
	if !a.p.mate[a.k].CompareAndSwap(0, uint64(b.n)+1) {
		return a.mate() == b.n
	}
	if !b.p.mate[b.k].CompareAndSwap(0, uint64(a.n)+1) {
		a.p.mate[a.k].Store(0)
		return false
	}
	return true
}

// placeOf is the flow's place, and false if it has none, or none any more.
func (t *Table) placeOf(x Index) (pl place, ok bool) {
	if k := &t.tracks[x]; k.slot == 0 || !t.holds(x, k.slot) {
		return place{}, false
	}
	return t.pairing.placeOf(t.tracks[x].slot), true
}

// mateOf is the place of a flow's mate, if it has one.
func (p *Pairing) mateOf(pl *place) (mate place, ok bool) {
	n := pl.mate()
	if n < 0 {
		return place{}, false
	}
	mate, ok = p.at(pl.g, 1-pl.side, n)
	return mate, ok && mate.owner() != 0
}

// vacate takes a place from a flow whose connection is over.
func (p *Pairing) vacate(pl *place) {
	p.part(pl)
	pl.p.owner[pl.k].Store(0)
}

// part ends the tie between a place and its mate, if it has one, and returns the mate's place.
func (p *Pairing) part(pl *place) (mate place, ok bool) {
	m := pl.mate()
	if m < 0 {
		return place{}, false
	}
	pl.p.mate[pl.k].Store(0)
	mate, ok = p.at(pl.g, 1-pl.side, m)
	return mate, ok && mate.p.mate[mate.k].CompareAndSwap(uint64(pl.n)+1, 0)
}
