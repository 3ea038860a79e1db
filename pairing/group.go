package pairing

import "sync/atomic"

const (
	placesAPage = 8
	pagesASide  = 32
	placesASide = placesAPage * pagesASide // flows of one direction between two hosts that can be paired
	rowWords    = placesASide / 64
)

// group is the flows between two hosts. Side 0 holds those that come in by the lower port of the pair.
type group struct {
	key  groupKey // under Pairing.allocating, as hash, next and live
	next uint32   // the next group with the hash, or the next free one
	hash uint32
	full [2]int64 // under Pairing.allocating: a side had no empty place; none is looked for until then, ns
	live bool     // linked, not among the free ones

	// learning is held by whoever gives out places of the group, or changes what comparing its flows has shown.
	learning claim
	// pages are the places of each side, 8 a page; 0 for none.
	pages [2][pagesASide]atomic.Uint32
	// used is how many places, counted from 0, have ever been given out; flows is how many flows have one now.
	used, flows [2]atomic.Int32
}

// page is eight places of one side of a group. Each field has the words of all eight, so that going over a side reads few cache lines.
type page struct {
	// The worker of the flow writes these, any worker reads them. sent and ack carry the lease of the place.
	sent [placesAPage]atomic.Uint64           // a sentWord
	ack  [placesAPage]atomic.Uint64           // an ackWord
	next [placesAPage][nextRing]atomic.Uint32 // the PSNs that the last responses wait for, with noteBit
	// owner and mate are written under group.learning, except that a flow that ends gives its place back without it.
	owner [placesAPage]atomic.Uint64 // a flowRef, 0 for an empty place
	mate  [placesAPage]atomic.Uint64 // a mateWord

	// The rest is read and written under group.learning.
	id    [placesAPage]identity
	trial [placesAPage]trial
	said  [placesAPage]saying                   // RDMA-CM's claim about the flow
	row   [placesAPage][rowWords]uint64         // a bit for each place of the other side whose flow may be the mate
	asked [placesAPage][askedRing]atomic.Uint32 // written by the flow's worker: the last PSNs with AckReq, with askedBit
	match [placesAPage]portMark
	// contradictions counts how often the flow's pair was taken back because its packets said otherwise.
	contradictions [placesAPage]uint16
	lease          [placesAPage]uint16 // how often the place was given out, from 1 on, modulo 2^15
	// Set when the page is given to a group.
	base  uint16 // number of its first place on its side
	side  uint8
	group uint32
	free  uint32 // under Pairing.allocating: of a free page, the next one
	// ended is when RDMA-CM released the connection, in milliseconds modulo 2^32.
	ended [placesAPage]atomic.Uint32
}

// place is a place: where its words are, and its side and number in its group.
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

// occupied is the place n of a side if a flow has it.
func (p *Pairing) occupied(g *group, side, n int) (place, bool) {
	pl, ok := p.at(g, side, n)
	return pl, ok && pl.owner() != 0
}

func (pl *place) owner() flowRef { return flowRef(pl.p.owner[pl.k].Load()) }
func (pl *place) id() identity   { return pl.p.id[pl.k] }
func (pl *place) trial() *trial  { return &pl.p.trial[pl.k] }
func (pl *place) said() saying   { return pl.p.said[pl.k] }

// others is how many places of the other side have ever been given out, own how many of this side.
func (pl *place) others() int { return int(pl.g.used[1-pl.side].Load()) }
func (pl *place) own() int    { return int(pl.g.used[pl.side].Load()) }

// sent is which PSNs the flow's requests have used; not valid before the first request.
func (pl *place) sent() sentWord {
	w := sentWord(pl.p.sent[pl.k].Load())
	if w.lease() != pl.p.lease[pl.k] {
		return 0
	}
	return w
}

// ack is how far the flow's responses have come; not valid before the first response.
func (pl *place) ack() ackWord {
	w := ackWord(pl.p.ack[pl.k].Load())
	if w.lease() != pl.p.lease[pl.k] {
		return 0
	}
	return w
}

// may reports whether the flow at place n of the other side isn't ruled out: this flow may answer its requests.
func (pl *place) may(n int) bool { return pl.p.row[pl.k][n/64]>>(n%64)&1 != 0 }

// ruleOut rules out the flows with a bit in n, of one word of the row.
func (pl *place) ruleOut(word int, n uint64) { pl.p.row[pl.k][word] &^= n }

// anyone takes back what was ruled out for the flow: it may answer any flow of the other side.
func (pl *place) anyone() {
	for i := range pl.p.row[pl.k] {
		pl.p.row[pl.k][i] = ^uint64(0)
	}
}

const leaseMask = 1<<15 - 1

// sentWord is which PSNs a flow's requests have used: bits 0-23 the first PSN, 24-47 the highest, 48 whether there were any, 49-63 the lease of
// the place, by which a reader sees whether the word is about the flow that has the place now.
type sentWord uint64

func makeSent(first, high uint32, lease uint16) sentWord {
	return sentWord(first&psnMask) | sentWord(high&psnMask)<<24 | 1<<48 | sentWord(lease)<<49
}

func (s sentWord) valid() bool   { return s>>48&1 != 0 }
func (s sentWord) first() uint32 { return uint32(s & psnMask) }
func (s sentWord) high() uint32  { return uint32(s>>24) & psnMask }
func (s sentWord) lease() uint16 { return uint16(s >> 49) }

// width is how many PSNs the flow's requests have used, less one.
func (s sentWord) width() uint32 { return (s.high() - s.first()) & psnMask }

// has reports whether psn is between the first and the highest PSN of the flow's requests.
func (s sentWord) has(psn uint32) bool { return s.valid() && (s.high()-psn)&psnMask <= s.width() }

// may is has, with firstSlack PSNs more for requests that were sent before the first one seen.
func (s sentWord) may(psn uint32) bool {
	return s.valid() && (s.high()-psn)&psnMask <= s.width()+firstSlack
}

// ackWord is how far a flow's responses have come: bits 0-23 the highest PSN that they answered, 48 whether there were any, 49-63 the lease of
// the place.
type ackWord uint64

func makeAck(psn uint32, lease uint16) ackWord {
	return ackWord(psn&psnMask) | 1<<48 | ackWord(lease)<<49
}

func (a ackWord) valid() bool   { return a>>48&1 != 0 }
func (a ackWord) last() uint32  { return uint32(a & psnMask) }
func (a ackWord) lease() uint16 { return uint16(a >> 49) }

// mateWord is the place of a flow's mate: bits 0-8 its number plus 1, 0 for no mate; 9-23 its lease; 24 whether the flow's UDP port is its
// own: another connection would show another port.
type mateWord uint64

func makeMate(n int, lease uint16, ownPort bool) mateWord {
	w := mateWord(n+1) | mateWord(lease)<<9
	if ownPort {
		w |= 1 << 24
	}
	return w
}

func (m mateWord) n() int        { return int(m&0x1ff) - 1 }
func (m mateWord) lease() uint16 { return uint16(m>>9) & leaseMask }
func (m mateWord) ownPort() bool { return m>>24&1 != 0 }

// sharedPort is the same mate, but the flow's UDP port isn't its own any more.
func (m mateWord) sharedPort() mateWord { return m &^ (1 << 24) }

// identity is what the port rules need to know of a flow.
//
//	bits 0-23 destination QP, 24-39 UDP source port, 40 the port has changed and isn't steady yet, 41 UC: nothing is acknowledged
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
