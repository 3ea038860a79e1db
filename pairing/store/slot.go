package store

import (
	"sync/atomic"
)

const (
	NextRing  = 8 // PSNs that a flow's last responses wait for
	AskedRing = 8 // a flow's last PSNs with AckReq
)

// Page is eight slots of one side of a group. Each field has the words of all eight, so that a scan of a side reads few cache lines.
type Page struct {
	// The worker of the flow writes these, any worker reads them. sent and ack carry the lease of the slot.
	sent [SlotsAPage]atomic.Uint64           // a Sent
	ack  [SlotsAPage]atomic.Uint64           // an Ack
	next [SlotsAPage][NextRing]atomic.Uint32 // with NoteBit
	// owner and peer are written under Group.lock, with two exceptions: a flow that ends frees its slot without it, and a flow whose peer flow
	// has gone, or whose port is no longer its own, records that in peer without it.
	owner [SlotsAPage]atomic.Uint64 // a Ref, 0 for an empty slot
	peer  [SlotsAPage]atomic.Uint64 // a Link

	// The rest is read and written under Group.lock, except asked and ended.
	id          [SlotsAPage]Identity
	elimination [SlotsAPage]Elimination
	claim       [SlotsAPage]Claim                    // RDMA-CM's claim about the flow
	row         [SlotsAPage][rowWords]uint64         // a bit for each slot of the other side whose flow may be the peer flow
	asked       [SlotsAPage][AskedRing]atomic.Uint32 // written by the flow's worker, with NoteBit
	match       [SlotsAPage]PortMark
	// contradictions counts how often packets contradicted the flow's pair.
	contradictions [SlotsAPage]uint16
	lease          [SlotsAPage]uint16 // how often the slot was assigned, from 1 on, modulo 2^15
	spot           atomic.Uint32      // a pageSpot, written when the page is given to a group
	free           uint32             // under Store.Lock: of a free page, the next one
	// ended is when RDMA-CM released the connection, in milliseconds modulo 2^32. It is written under the lock of the CM records.
	ended [SlotsAPage]atomic.Uint32
}

// pageSpot is where the slots of a page are: bits 0-4 its number on its side, 5 the side, 6-31 the group.
type pageSpot uint32

func makeSpot(group uint32, side, number int) pageSpot {
	return pageSpot(group<<6 | uint32(side)<<5 | uint32(number))
}

// View is what can be read of a slot: the evidence about one flow, and from there about the other flows of its group.
type View struct {
	s    *Store
	g    *Group
	p    *Page
	k    int // in the page
	side int
	n    int // on its side
}

// Slot is a View that can be written, too.
type Slot struct{ View }

// At returns a slot by its number in the store. Unless its flow has it, its page may belong to another group by now.
func (s *Store) At(number uint32) Slot {
	page, k := &s.pages[number/SlotsAPage], int(number%SlotsAPage)
	at := pageSpot(page.spot.Load())
	return Slot{View{s, &s.groups[at>>6], page, k, int(at >> 5 & 1), int(at%pagesASide)*SlotsAPage + k}}
}

// Slot returns slot n of a side, and false if there is none.
func (s *Store) Slot(g *Group, side, n int) (Slot, bool) {
	x := g.pages[side][n/SlotsAPage%pagesASide].Load()
	if x == 0 {
		return Slot{}, false
	}
	return Slot{View{s, g, &s.pages[x], n % SlotsAPage, side, n}}, true
}

// Occupied returns slot n of a side if a flow has it.
func (s *Store) Occupied(g *Group, side, n int) (Slot, bool) {
	slot, ok := s.Slot(g, side, n)
	return slot, ok && slot.Ref() != 0
}

// Used is the number of slots of a side that were ever assigned; Flows is the number of flows that have one now.
func (g *Group) Used(side int) int  { return int(g.used[side].Load()) }
func (g *Group) Flows(side int) int { return int(g.flows[side].Load()) }
func (g *Group) Lock() *Lock        { return &g.lock }
func (g *Group) Key() *Key          { return &g.key }
func (g *Group) Hash() uint64       { return g.hash }

// Number is the slot's number on its side.
func (v *View) Number() int              { return v.n }
func (v *View) Side() int                { return v.side }
func (v *View) Group() *Group            { return v.g }
func (v *View) Ref() Ref                 { return Ref(v.p.owner[v.k].Load()) }
func (v *View) Lease() uint16            { return v.p.lease[v.k] }
func (v *View) Identity() Identity       { return v.p.id[v.k] }
func (v *View) Elimination() Elimination { return v.p.elimination[v.k] }
func (v *View) Claim() Claim             { return v.p.claim[v.k] }
func (v *View) Link() Link               { return Link(v.p.peer[v.k].Load()) }
func (v *View) PortMark() PortMark       { return v.p.match[v.k] }
func (v *View) Contradictions() uint16   { return v.p.contradictions[v.k] }

// InStore is the slot's number in the store.
func (v *View) InStore() uint32 {
	return v.g.pages[v.side][v.n/SlotsAPage].Load()*SlotsAPage + uint32(v.k)
}

// Others is the number of slots of the other side that were ever assigned, Own that of this side.
func (v *View) Others() int { return v.g.Used(1 - v.side) }
func (v *View) Own() int    { return v.g.Used(v.side) }

// Other returns slot n of the other side if a flow has it, Same that of this side.
func (v *View) Other(n int) (View, bool) {
	slot, ok := v.s.Occupied(v.g, 1-v.side, n)
	return slot.View, ok
}

func (v *View) Same(n int) (View, bool) {
	slot, ok := v.s.Occupied(v.g, v.side, n)
	return slot.View, ok
}

// Sent returns the PSNs that the flow's requests have used; not valid before the first request.
func (v *View) Sent() Sent { return v.SentBy(v.Lease()) }

// Ack returns the highest PSN of the flow's responses; not valid before the first response.
func (v *View) Ack() Ack { return v.AckBy(v.Lease()) }

// SentBy is Sent of the flow that had the slot with a lease; not valid if another flow has it now.
func (v *View) SentBy(lease uint16) Sent {
	w := Sent(v.p.sent[v.k].Load())
	if w.lease() != lease {
		return 0
	}
	return w
}

// AckBy is Ack of the flow that had the slot with a lease; not valid if another flow has it now.
func (v *View) AckBy(lease uint16) Ack {
	w := Ack(v.p.ack[v.k].Load())
	if w.lease() != lease {
		return 0
	}
	return w
}

// May reports whether the flow in slot n of the other side isn't ruled out: this flow may respond to its requests.
func (v *View) May(n int) bool { return v.p.row[v.k][n/64]>>(n%64)&1 != 0 }

// Row has a bit for each flow of a word of 64 slots of the other side that isn't ruled out.
func (v *View) Row(word int) uint64 { return v.p.row[v.k][word] }

// Next is a PSN that one of the flow's last responses waits for, with NoteBit; 0 for none.
func (v *View) Next(i int) uint32 { return v.p.next[v.k][i].Load() }

// Asked is one of the flow's last PSNs with AckReq, with NoteBit; 0 for none.
func (v *View) Asked(i int) uint32 { return v.p.asked[v.k][i].Load() }

// LinkedPeer returns the slot that a link of the flow names, if the peer flow still has it. It needs no lock.
func (v *View) LinkedPeer(l Link) (peer Slot, ok bool) {
	if l == 0 {
		return peer, false
	}
	peer, ok = v.s.Slot(v.g, 1-v.side, l.Number())
	return peer, ok && Sent(peer.p.sent[peer.k].Load()).lease() == l.Lease()
}

// Peer returns the slot of the flow's peer flow, if the peer flow still has it.
func (v *View) Peer() (peer View, ok bool) {
	l := v.Link()
	if l == 0 {
		return peer, false
	}
	slot, ok := v.s.Slot(v.g, 1-v.side, l.Number())
	return slot.View, ok && slot.Lease() == l.Lease() && slot.Ref() != 0
}

// Set is a set of slots of one side, a bit for each.
type Set [rowWords]uint64

// WithPort is the set of flows of a side that have the given UDP source port.
func (v *View) WithPort(side int, port uint16) (set Set) {
	for i := range (v.g.Used(side) + SlotsAPage - 1) / SlotsAPage {
		pg := &v.s.pages[v.g.pages[side][i].Load()]
		for k := range pg.id {
			if pg.id[k].Port() == port && pg.owner[k].Load() != 0 {
				n := i*SlotsAPage + k
				set[n/64%rowWords] |= 1 << (n % 64)
			}
		}
	}
	return set
}
