package pairing

import "sync/atomic"

const (
	slotsAPage = 8
	pagesASide = 32
	slotsASide = slotsAPage * pagesASide // flows of one direction between two hosts that can be paired
	rowWords   = slotsASide / 64
)

// group holds the flows between two hosts. Side 0 has those with the lower ingress port of the pair.
type group struct {
	key  groupKey // under Pairing.allocation, as hash, next and live
	hash uint64
	next uint32   // the next group of the same head, or the next free one
	full [2]int64 // under Pairing.allocation: a side had no empty slot; no search until then, ns
	live bool     // linked, not among the free ones

	// lock is needed to assign slots of the group, and to change the results of comparing its flows.
	lock tryLock
	// pages are the slots of each side, 8 a page; 0 for none.
	pages [2][pagesASide]atomic.Uint32
	// used is the number of slots that were ever assigned, from 0 on; flows is the number of flows that have one now.
	used, flows [2]atomic.Int32
}

// page is eight slots of one side of a group. Each field has the words of all eight, so that a scan of a side reads few cache lines.
type page struct {
	// The worker of the flow writes these, any worker reads them. sent and ack carry the lease of the slot.
	sent [slotsAPage]atomic.Uint64           // a sentWord
	ack  [slotsAPage]atomic.Uint64           // an ackWord
	next [slotsAPage][nextRing]atomic.Uint32 // the PSNs that the last responses wait for, with noteBit
	// owner and peer flow are written under group.lock, with two exceptions: a flow that ends frees its slot without it, and a flow whose peer flow
	// has gone, or whose port is no longer its own, records that in peer flow without it.
	owner [slotsAPage]atomic.Uint64 // a flowRef, 0 for an empty slot
	peer  [slotsAPage]atomic.Uint64 // a link

	// The rest is read and written under group.lock, except asked and ended.
	id          [slotsAPage]identity
	elimination [slotsAPage]elimination
	claimed     [slotsAPage]claim                    // RDMA-CM's claim about the flow
	row         [slotsAPage][rowWords]uint64         // a bit for each slot of the other side whose flow may be the peer flow
	asked       [slotsAPage][askedRing]atomic.Uint32 // written by the flow's worker: the last PSNs with AckReq, with askedBit
	match       [slotsAPage]portMark
	// allContradictions counts how often packets contradicted the flow's pair.
	allContradictions [slotsAPage]uint16
	lease             [slotsAPage]uint16 // how often the slot was assigned, from 1 on, modulo 2^15
	spot              atomic.Uint32      // a pageSpot, written when the page is given to a group
	free              uint32             // under Pairing.allocation: of a free page, the next one
	// ended is when RDMA-CM released the connection, in milliseconds modulo 2^32. It is written under cmRecords.lock.
	ended [slotsAPage]atomic.Uint32
}

// Slot locates a slot: its words, and its side and number in its group.
type Slot struct {
	g    *group
	p    *page
	k    int // in the page
	side int
	n    int // on its side
}

// pageSpot is where the slots of a page are: bits 0-4 its number on its side, 5 the side, 6-31 the group.
type pageSpot uint32

func makeSpot(group uint32, side, number int) pageSpot {
	return pageSpot(group<<6 | uint32(side)<<5 | uint32(number))
}

// slotAt returns a slot. Unless its flow has it, its page may belong to another group by now.
func (p *Pairing) slotAt(slot uint32) Slot {
	page, k := &p.pages[slot/slotsAPage], int(slot%slotsAPage)
	at := pageSpot(page.spot.Load())
	return Slot{&p.groups[at>>6], page, k, int(at >> 5 & 1), int(at%pagesASide)*slotsAPage + k}
}

// at returns slot n of a side, and false if there is none.
func (p *Pairing) at(g *group, side, n int) (Slot, bool) {
	x := g.pages[side][n/slotsAPage%pagesASide].Load()
	if x == 0 {
		return Slot{}, false
	}
	return Slot{g, &p.pages[x], n % slotsAPage, side, n}, true
}

// occupied returns slot n of a side if a flow has it.
func (p *Pairing) occupied(g *group, side, n int) (Slot, bool) {
	pl, ok := p.at(g, side, n)
	return pl, ok && pl.owner() != 0
}

func (pl *Slot) owner() flowRef            { return flowRef(pl.p.owner[pl.k].Load()) }
func (pl *Slot) id() identity              { return pl.p.id[pl.k] }
func (pl *Slot) elimination() *elimination { return &pl.p.elimination[pl.k] }
func (pl *Slot) claimed() claim            { return pl.p.claimed[pl.k] }

// others is the number of slots of the other side that were ever assigned, own that of this side.
func (pl *Slot) others() int { return int(pl.g.used[1-pl.side].Load()) }
func (pl *Slot) own() int    { return int(pl.g.used[pl.side].Load()) }

// sent returns the PSNs that the flow's requests have used; not valid before the first request.
func (pl *Slot) sent() sentWord {
	w := sentWord(pl.p.sent[pl.k].Load())
	if w.lease() != pl.p.lease[pl.k] {
		return 0
	}
	return w
}

// ack returns the highest PSN of the flow's responses; not valid before the first response.
func (pl *Slot) ack() ackWord {
	w := ackWord(pl.p.ack[pl.k].Load())
	if w.lease() != pl.p.lease[pl.k] {
		return 0
	}
	return w
}

// may reports whether the flow at slot n of the other side isn't ruled out: this flow may respond to its requests.
func (pl *Slot) may(n int) bool { return pl.p.row[pl.k][n/64]>>(n%64)&1 != 0 }

// ruleOut rules out the flows with a bit in n, of one word of the row.
func (pl *Slot) ruleOut(word int, n uint64) { pl.p.row[pl.k][word] &^= n }

// anyone clears what was ruled out for the flow: it may respond to any flow of the other side.
func (pl *Slot) anyone() {
	for i := range pl.p.row[pl.k] {
		pl.p.row[pl.k][i] = ^uint64(0)
	}
}

const leaseMask = 1<<15 - 1

// sentWord has the PSNs that a flow's requests have used: bits 0-23 the first PSN, 24-47 the highest, 48 whether there were any, 49-63 the
// lease of the slot, which shows a reader whether the word belongs to the flow that has the slot now.
type sentWord uint64

func makeSent(first, high uint32, lease uint16) sentWord {
	return sentWord(first&psnMask) | sentWord(high&psnMask)<<24 | 1<<48 | sentWord(lease)<<49
}

func (s sentWord) valid() bool   { return s>>48&1 != 0 }
func (s sentWord) first() uint32 { return uint32(s & psnMask) }
func (s sentWord) high() uint32  { return uint32(s>>24) & psnMask }
func (s sentWord) lease() uint16 { return uint16(s >> 49) }

// width is the number of PSNs that the flow's requests have used, minus one.
func (s sentWord) width() uint32 { return (s.high() - s.first()) & psnMask }

// has reports whether psn is between the first and the highest PSN of the flow's requests.
func (s sentWord) has(psn uint32) bool { return s.valid() && (s.high()-psn)&psnMask <= s.width() }

// may is has, with firstSlack PSNs more for requests that were sent before the first one seen.
func (s sentWord) may(psn uint32) bool {
	return s.valid() && (s.high()-psn)&psnMask <= s.width()+firstSlack
}

// ackWord has the progress of a flow's responses: bits 0-23 their highest PSN, 48 whether there were any, 49-63 the lease of the slot.
type ackWord uint64

func makeAck(psn uint32, lease uint16) ackWord {
	return ackWord(psn&psnMask) | 1<<48 | ackWord(lease)<<49
}

func (a ackWord) valid() bool   { return a>>48&1 != 0 }
func (a ackWord) last() uint32  { return uint32(a & psnMask) }
func (a ackWord) lease() uint16 { return uint16(a >> 49) }

// publish replaces a sentWord or ackWord, unless its slot was given to another flow since this one got it with the given lease.
func publish(word *atomic.Uint64, lease uint16, now uint64) {
	if was := word.Load(); uint16(was>>49) == lease {
		word.CompareAndSwap(was, now)
	}
}

// link is the slot of a flow's peer flow: bits 0-8 its number plus 1, 0 for no peer flow; 9-23 its lease; 24 whether the flow's UDP source port
// is its own, that is, another connection would have another port.
type link uint64

func makeLink(n int, lease uint16, ownPort bool) link {
	w := link(n+1) | link(lease)<<9
	if ownPort {
		w |= 1 << 24
	}
	return w
}

func (m link) n() int        { return int(m&0x1ff) - 1 }
func (m link) lease() uint16 { return uint16(m>>9) & leaseMask }
func (m link) ownPort() bool { return m>>24&1 != 0 }

// sharedPort returns the same peer flow, with a UDP source port that is no longer the flow's own.
func (m link) sharedPort() link { return m &^ (1 << 24) }

// identity has the data of a flow that the port rules need.
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
