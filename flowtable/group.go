package flowtable

import (
	"sync/atomic"

	"github.com/cnpgate/cnpgate/internal/packet"
)

const (
	placesAPage = 8
	pagesASide  = 32
	placesASide = placesAPage * pagesASide // flows of one direction between two hosts that can be paired
	rowWords    = placesASide / 64
	groupSearch = 32  // groups looked at for an empty one
	fullTime    = 1e6 // ns that a search for room isn't begun again where there was none: with many flows, all would search all the time
	maxChain    = 64  // groups with one hash value
)

// groupKey is what a connection's two flows have in common: the hosts, that of side 0 first, and the place (ports and VLANs).
type groupKey struct {
	hosts [2]packet.Addr
	place uint64
}

// group is two hosts' flows. Side 0 holds those that come in by the lower port of the pair.
type group struct {
	key  groupKey // under the claim
	next uint32   // under the claim: the next group with the hash, or the next free one
	hash uint32   // under the claim
	born int64    // ns
	full [2]int64 // under the claim: until when no place is looked for on a side, since there was none
	// pages are the places of each side, 8 a page; 0 for none. Anyone may read them.
	pages [2][pagesASide]atomic.Uint32
	// used is one more than the highest place that was ever given out.
	used [2]atomic.Uint32
	// refreshed is when the rows of flows that were met in the middle of their traffic began anew.
	refreshed atomic.Uint32
	live      bool // under the claim: linked, not among the free ones
}

// page is eight places of one side of a group, word by word, so that going over a side reads few lines. A flow's owner writes
// sent, ack and id; rows and mates are changed by compare-and-swap, since both sides do.
type page struct {
	owner [placesAPage]atomic.Uint64 // an owner, 0 for an empty place
	id    [placesAPage]atomic.Uint64 // an identity
	sent  [placesAPage]atomic.Uint64 // a sentWord
	ack   [placesAPage]atomic.Uint64 // an ackWord
	mate  [placesAPage]atomic.Uint64 // the place of the other side it is confirmed with, plus 1; 0 for none
	ended [placesAPage]atomic.Int64  // when RDMA-CM released the connection, ns
	lost  [placesAPage]atomic.Uint32 // contradictions
	match [placesAPage]atomic.Uint32 // what the port rule found last: matchEqual, matchFormula
	row   [placesAPage][rowWords]atomic.Uint64
	asked [placesAPage][askedRing]atomic.Uint32 // the last PSNs that were to be acknowledged, with askedBit
	next  uint32                                // under the claim: of a free page, the next one
	// Set when the page is given out to a group.
	group uint32
	base  uint16 // number of its first place on its side
	side  uint8
	_     [53]byte
}

// place is a flow's place: where its words are, and where it stands in its group.
type place struct {
	g    *group
	p    *page
	k    int // in the page
	side int
	n    int // on its side
}

func (p *Pairing) placeOf(slot uint32) place {
	page := &p.pages[slot/placesAPage]
	k := int(slot % placesAPage)
	return place{&p.groups[page.group], page, k, int(page.side), int(page.base) + k}
}

// at is the place n of a side, and false if there is none.
func (p *Pairing) at(g *group, side, n int) (place, bool) {
	x := g.pages[side][n/placesAPage%pagesASide].Load()
	if x == 0 {
		return place{}, false
	}
	return place{g, &p.pages[x], n % placesAPage, side, n}, true
}

func (pl *place) owner() owner { return owner(pl.p.owner[pl.k].Load()) }
func (pl *place) id() identity { return identity(pl.p.id[pl.k].Load()) }
func (pl *place) sent() sentWord {
	return sentWord(pl.p.sent[pl.k].Load())
}
func (pl *place) ack() ackWord { return ackWord(pl.p.ack[pl.k].Load()) }
func (pl *place) mate() int    { return int(pl.p.mate[pl.k].Load()) - 1 }

// may tells whether the flow could be answered by, or answer, the flow at place n of the other side, as far as its own responses tell.
func (pl *place) may(n int) bool { return pl.p.row[pl.k][n/64].Load()>>(n%64)&1 != 0 }

// identity is what the port rule needs to know of a flow.
//
//	bits 0-23 destination QP, 24-39 UDP source port, 40 the port has changed, 41 no acknowledgements are to be expected (UC)
type identity uint64

func (i identity) qp() uint32       { return uint32(i & qpMask) }
func (i identity) port() uint16     { return uint16(i >> 24) }
func (i identity) steady() bool     { return i>>40&1 == 0 }
func (i identity) unreliable() bool { return i>>41&1 != 0 }

func makeIdentity(qp uint32, port uint16, varies, unreliable bool) identity {
	i := identity(qp) | identity(port)<<24
	if varies {
		i |= 1 << 40
	}
	if unreliable {
		i |= 1 << 41
	}
	return i
}

// findGroup is the group of a key, or 0. Under the claim.
func (p *Pairing) findGroup(k *groupKey, h uint64) uint32 {
	x := p.heads[h%uint64(len(p.heads))]
	for range maxChain {
		if x == 0 || p.groups[x].key == *k {
			return x
		}
		x = p.groups[x].next
	}
	return 0
}

func (p *Pairing) hashOf(k *groupKey) uint64 {
	s := &p.secret
	x := fold(k.hosts[0].Hi^s[0], k.hosts[0].Lo^s[1])
	y := fold(k.hosts[1].Hi^s[2], k.hosts[1].Lo^s[3])
	return fold(x^k.place^s[4], y^s[5])
}

// newGroup makes the group of a key, in the place of an empty one if need be; 0 if there is no room. Under the claim.
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
	g.key, g.hash, g.born, g.live = *k, uint32(h%uint64(len(p.heads))), now, true
	g.used[0].Store(0)
	g.used[1].Store(0)
	g.refreshed.Store(0)
	g.full = [2]int64{}
	g.next, *head = *head, x
	return x
}

// emptyGroup takes a group whose flows have all ended out of use, but not the group keep. Under the claim.
func (p *Pairing) emptyGroup(keep uint32) uint32 {
	for range groupSearch {
		p.hand = p.hand%p.usedGroups + 1
		if g := &p.groups[p.hand]; p.hand != keep && g.live && p.emptied(g) {
			p.dropGroup(p.hand)
			return p.hand
		}
	}
	return 0
}

func (p *Pairing) emptied(g *group) bool {
	for side := range g.pages {
		for i := range g.pages[side] {
			if x := g.pages[side][i].Load(); x != 0 && !p.pages[x].emptied() {
				return false
			}
		}
	}
	return true
}

func (pg *page) emptied() bool {
	for k := range pg.owner {
		if pg.owner[k].Load() != 0 {
			return false
		}
	}
	return true
}

// dropGroup unlinks a group without flows and frees its pages. Under the claim.
func (p *Pairing) dropGroup(x uint32) {
	g := &p.groups[x]
	link := &p.heads[g.hash]
	for *link != x {
		link = &p.groups[*link].next
	}
	*link, g.live = g.next, false
	for side := range g.pages {
		for i := range g.pages[side] {
			if n := g.pages[side][i].Swap(0); n != 0 {
				p.pages[n].next = p.freePage
				p.freePage = n
			}
		}
	}
}

// newPage takes a page for a side of group x; 0 if there is none. Under the claim.
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
		p.freePage = p.pages[n].next
	}
	return n
}

// newPlace finds an empty place on a side of a group, adding a page if need be; 0 if there is none. Under the claim.
func (p *Pairing) newPlace(x uint32, side int, now int64) (slot uint32) {
	g := &p.groups[x]
	if now < g.full[side] {
		return 0
	}
	if slot = p.findPlace(x, side); slot == 0 {
		g.full[side] = now + fullTime
	}
	return slot
}

func (p *Pairing) findPlace(x uint32, side int) (slot uint32) {
	g := &p.groups[x]
	for i := range g.pages[side] {
		n := g.pages[side][i].Load()
		if n == 0 {
			if n = p.newPage(x); n == 0 {
				return 0
			}
			pg := &p.pages[n]
			pg.group, pg.side, pg.base = x, uint8(side), uint16(i*placesAPage)
			g.pages[side][i].Store(n)
		}
		for k := range p.pages[n].owner {
			if p.pages[n].owner[k].Load() == 0 {
				return n*placesAPage + uint32(k)
			}
		}
	}
	return p.closedPlace(g, side)
}

// closedPlace is the place of a flow whose record is closed, 0 if there is none. Under the claim.
func (p *Pairing) closedPlace(g *group, side int) uint32 {
	for n := range placesASide {
		pl, ok := p.at(g, side, n)
		if !ok {
			break
		}
		if e, s := p.entryOf(pl.owner()); e == nil || s.ending() != Open {
			p.vacate(&pl)
			return g.pages[side][n/placesAPage].Load()*placesAPage + uint32(pl.k)
		}
	}
	return 0
}

// occupy makes a place a new flow's: it could belong to any flow of the other side, and any of these to it. Under the claim.
func (p *Pairing) occupy(slot uint32, o owner, id identity) {
	pl := p.placeOf(slot)
	pl.p.sent[pl.k].Store(0)
	pl.p.ack[pl.k].Store(0)
	pl.p.mate[pl.k].Store(0)
	pl.p.ended[pl.k].Store(0)
	pl.p.lost[pl.k].Store(0)
	pl.p.id[pl.k].Store(uint64(id))
	pl.p.match[pl.k].Store(0)
	for i := range pl.p.asked[pl.k] {
		pl.p.asked[pl.k][i].Store(0)
	}
	p.forget(&pl)
	if n := uint32(pl.n) + 1; n > pl.g.used[pl.side].Load() {
		pl.g.used[pl.side].Store(n)
	}
	pl.p.owner[pl.k].Store(uint64(o))
}

// forget takes back all that has been ruled out about a place.
func (p *Pairing) forget(pl *place) {
	for i := range pl.p.row[pl.k] {
		pl.p.row[pl.k][i].Store(^uint64(0))
	}
	for n := range int(pl.g.used[1-pl.side].Load()) {
		if o, ok := p.at(pl.g, 1-pl.side, n); ok {
			o.p.row[o.k][pl.n/64].Or(1 << (pl.n % 64))
		}
	}
}
