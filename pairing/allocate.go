package pairing

const (
	groupSearch = 32  // maximum number of groups checked for an empty one
	fullTime    = 1e6 // ns between two searches that find nothing: otherwise each of many flows would search all the time
	maxChain    = 64  // groups with the same hash that a search checks
)

// This file assigns groups, pages and slots. The caller holds Pairing.allocation, and for a slot also the lock of its group.

// findGroup returns the group with a hash and a key, or 0. With nil as the key the hash is enough.
func (p *Pairing) findGroup(k *groupKey, h uint64) uint32 {
	x := p.heads[h%uint64(len(p.heads))]
	for range maxChain {
		if x == 0 || p.groups[x].hash == h && (k == nil || p.groups[x].key == *k) {
			return x
		}
		x = p.groups[x].next
	}
	return 0
}

// newGroup makes a group for a key. If all groups are in use it searches an empty one. It returns 0 if there is none.
func (p *Pairing) newGroup(k *groupKey, h uint64, now int64) uint32 {
	x := p.freeGroup
	switch {
	case x != 0:
		p.freeGroup = p.groups[x].next
	case int(p.usedGroups) < len(p.groups)-1:
		p.usedGroups++
		x = p.usedGroups
	case now < p.full:
		return 0
	default:
		if x = p.emptyGroup(0); x == 0 {
			p.full = now + fullTime
			return 0
		}
	}
	g, head := &p.groups[x], &p.heads[h%uint64(len(p.heads))]
	g.key, g.hash, g.live = *k, h, true
	g.full = [2]int64{}
	for side := range g.used {
		g.used[side].Store(0)
		g.flows[side].Store(0)
	}
	g.next, *head = *head, x
	return x
}

// emptyGroup finds a group whose flows have all ended, frees it and returns it; 0 if there is none. It never frees the group keep.
func (p *Pairing) emptyGroup(keep uint32) uint32 {
	for range groupSearch {
		p.hand = p.hand%p.usedGroups + 1
		if g := &p.groups[p.hand]; p.hand != keep && g.live && p.dropGroup(p.hand) {
			return p.hand
		}
	}
	return 0
}

// dropGroup unlinks a group and frees its pages, if the group has no flows. It reports whether it did.
func (p *Pairing) dropGroup(x uint32) bool {
	g := &p.groups[x]
	if !p.emptied(g) || !g.lock.try() {
		return false
	}
	defer g.lock.release()
	link := &p.heads[g.hash%uint64(len(p.heads))]
	for *link != x {
		link = &p.groups[*link].next
	}
	*link, g.live = g.next, false
	for side := range g.pages {
		for i := range g.pages[side] {
			if n := g.pages[side][i].Swap(0); n != 0 {
				p.pages[n].free = p.freePage
				p.freePage = n
			}
		}
	}
	return true
}

func (p *Pairing) emptied(g *group) bool {
	for side := range g.pages {
		for i := range g.pages[side] {
			x := g.pages[side][i].Load()
			if x == 0 {
				break
			}
			for k := range p.pages[x].owner {
				if p.pages[x].owner[k].Load() != 0 {
					return false
				}
			}
		}
	}
	return true
}

// newPage assigns a page to a side of group x. If all pages are in use it finds an empty group and frees its pages. It returns 0 if there
// is none.
func (p *Pairing) newPage(x uint32) uint32 {
	if p.freePage == 0 && int(p.usedPages) < len(p.pages)-1 {
		p.usedPages++
		return p.usedPages
	}
	if p.freePage == 0 {
		if empty := p.emptyGroup(x); empty != 0 {
			p.groups[empty].next, p.freeGroup = p.freeGroup, empty
		}
	}
	n := p.freePage
	if n != 0 {
		p.freePage = p.pages[n].free
	}
	return n
}

// newSlot finds an empty slot on a side of a group, and adds a page if necessary; 0 if there is none.
func (p *Pairing) newSlot(x uint32, side int, now int64) (slot uint32) {
	g := &p.groups[x]
	if now < g.full[side] {
		return 0
	}
	if slot = p.findSlot(x, side); slot == 0 {
		g.full[side] = now + fullTime
	}
	return slot
}

func (p *Pairing) findSlot(x uint32, side int) (slot uint32) {
	g := &p.groups[x]
	if g.flows[side].Load() < g.used[side].Load() { // a used slot is empty again
		for n := range int(g.used[side].Load()) {
			if pl, ok := p.at(g, side, n); ok && pl.owner() == 0 {
				return g.pages[side][n/slotsAPage].Load()*slotsAPage + uint32(pl.k)
			}
		}
	}
	n := int(g.used[side].Load())
	if n == slotsASide {
		return p.closedSlot(g, side)
	}
	i := n / slotsAPage
	pg := g.pages[side][i].Load()
	if pg == 0 {
		if pg = p.newPage(x); pg == 0 {
			return 0
		}
		p.pages[pg].spot.Store(uint32(makeSpot(x, side, i)))
		g.pages[side][i].Store(pg)
	}
	return pg*slotsAPage + uint32(n%slotsAPage)
}

// closedSlot frees the slot of a flow that has ended or whose record is closed, and returns it; 0 if there is none.
func (p *Pairing) closedSlot(g *group, side int) uint32 {
	for n := range slotsASide {
		pl, ok := p.at(g, side, n)
		if !ok {
			break
		}
		if a, ok := p.answerOf(pl.owner()); !ok || a.Ended() != Open {
			if peer, ok := p.unlink(&pl); ok {
				p.withdraw(&peer)
			}
			pl.vacate(pl.owner())
			return g.pages[side][n/slotsAPage].Load()*slotsAPage + uint32(pl.k)
		}
	}
	return 0
}

// occupy gives a slot to a flow. At first no flow of the other side is ruled out as its peer flow.
func (p *Pairing) occupy(slot uint32, r flowRef, id identity) (lease uint16) {
	pl := p.slotAt(slot)
	pg, k := pl.p, pl.k
	pg.lease[k] = max((pg.lease[k]+1)&leaseMask, 1)
	pg.peer[k].Store(0)
	pg.ended[k].Store(0)
	pg.elimination[k], pg.allContradictions[k] = elimination{}, 0
	p.reset(&pl, id)
	if n := int32(pl.n) + 1; n > pl.g.used[pl.side].Load() {
		pl.g.used[pl.side].Store(n)
	}
	pg.owner[k].Store(uint64(r))
	pl.g.flows[pl.side].Add(1)
	return pg.lease[k]
}

// vacate frees a slot if the given flow has it.
func (pl *Slot) vacate(r flowRef) {
	if r != 0 && pl.p.owner[pl.k].CompareAndSwap(uint64(r), 0) {
		pl.g.flows[pl.side].Add(-1)
	}
}

// reset clears what a slot has about its flow's connection, because another one begins. It keeps the number of contradictions.
func (p *Pairing) reset(pl *Slot, id identity) {
	pg, k := pl.p, pl.k
	pg.sent[k].Store(uint64(pg.lease[k]) << 49)
	pg.id[k], pg.claimed[k] = id, 0
	for i := range pg.asked[k] {
		pg.asked[k][i].Store(0)
	}
	p.unlearn(pl)
}

// unlearn clears the evidence from the flow's responses and its port.
func (p *Pairing) unlearn(pl *Slot) {
	pg, k := pl.p, pl.k
	pg.ack[k].Store(uint64(pg.lease[k]) << 49)
	for i := range pg.next[k] {
		pg.next[k][i].Store(0)
	}
	pg.match[k] = 0
	p.forget(pl)
}

// forget clears what was ruled out about a slot, in both directions.
func (p *Pairing) forget(pl *Slot) {
	pl.anyone()
	pl.elimination().restart()
	for n := range pl.others() {
		if o, ok := p.at(pl.g, 1-pl.side, n); ok {
			o.p.row[o.k][pl.n/64] |= 1 << (pl.n % 64)
			if t := o.elimination(); t.only() == pl.n {
				t.restart()
			}
		}
	}
}
