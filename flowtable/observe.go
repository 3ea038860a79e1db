package flowtable

import (
	"github.com/cnpgate/cnpgate/internal/packet"
)

const (
	psnMask    = 1<<24 - 1
	psnHalf    = 1 << 23
	maxSpan    = 1 << 20 // PSNs behind the highest that an acknowledgement may be for
	maxGap     = 1 << 16 // PSNs a flow may skip or go back without being another connection
	nearGap    = 64      // the same where a pair was learned from PSNs or ports
	coarse     = 16      // PSNs between two stores of a confirmed flow
	margin     = 2 * coarse
	backMargin = 3 * coarse // PSNs behind an acknowledged one that a sender may go back to: acknowledgements get lost
	firstSlack = 63         // PSNs before the first seen one that may have been sent: lost, or overtaken
	burstWork  = 2048       // comparisons a table does for pairing in one burst
	dreqLinger = 1e9        // ns that packets after a DREQ still belong to its connection
)

// Routine goes over packets that say nothing new, which most do once source QPs are known, and returns the number of the first that may
// say something, from a number on; all of them if there is none. flows[k] is the flow of the packet parsed[of[k]], as Lookup has found
// it; what Routine stops at is for Observe, or ObserveCM, before it goes on.
func (t *Table) Routine(flows []Index, of []uint8, parsed *[maxBurst]packet.Parsed, from int) int {
	if t.pairing == nil {
		return len(flows)
	}
	of = of[:len(flows)]
	for k := from; k < len(flows); k++ {
		p, x := &parsed[of[k]%maxBurst], flows[k]
		role := p.Opcode.Role()
		if role == packet.NoRole && p.DestQP != packet.GSIQP {
			continue
		}
		l := &t.learners[x]
		if role == packet.NoRole || x == None || p.SrcPort != l.port {
			return k
		}
		if s := state(t.entries[x].state.Load()); s.usable() {
			if !l.routine(role, p.PSN) {
				return k
			}
		} else if role != packet.Request || s.ending() != Open || !l.again(p.PSN) {
			return k
		}
	}
	return len(flows)
}

// Observe learns from a packet of a connection, the flow of which Lookup has found: b is the frame that p was parsed from. It is
// for the owner, once a packet that Routine stops at, between a Lookup and the next.
func (t *Table) Observe(x Index, p *packet.Parsed, b []byte, now int64) {
	if x == None || p.Opcode.Role() == packet.NoRole || t.pairing == nil {
		return
	}
	t.observe(x, &t.learners[x], state(t.entries[x].state.Load()), p, b, now)
}

func (t *Table) observe(x Index, l *learner, s state, p *packet.Parsed, b []byte, now int64) {
	role := p.Opcode.Role()
	if s.qpState() != Confirmed && l.took < 1<<32-1 {
		l.took++
	}
	if l.slot != 0 && s.qpState() != Confirmed && !t.holds(x, l) {
		l.slot, l.wait = 0, 0 // another flow has the place
	}
	if l.slot == 0 && !t.enter(x, l, p, now) {
		if role != packet.Response && s.ending() == Open {
			t.requests(x, l, s, p, b)
		}
		return
	}
	if p.SrcPort != l.port {
		t.portChanged(x, l)
		s = state(t.entries[x].state.Load())
	}
	if s.ending() != Open {
		return
	}
	if s.qpState() != Confirmed {
		l.acked = 0
	}
	if role == packet.Response {
		if t.answers(x, l, s, p, b) {
			l.sooner()
		}
	} else {
		t.requests(x, l, s, p, b)
	}
	if s.qpState() == Confirmed {
		l.flags |= sure
		return
	}
	if l.wait > 1 {
		l.wait--
		return
	}
	l.later()
	t.judge(x, l, now)
}

// holds tells whether a flow still has its place. A flow loses it when it is not confirmed any more; a confirmed one need not ask.
func (t *Table) holds(x Index, l *learner) bool {
	return owner(t.pairing.pages[l.slot/placesAPage].owner[l.slot%placesAPage].Load()) == t.ownerOf(x)
}

// enter gives the flow a place among those between its hosts, and what RDMA-CM has said of it.
func (t *Table) enter(x Index, l *learner, p *packet.Parsed, now int64) bool {
	if l.wait > 0 { // there was no room; try again later
		l.wait--
		return false
	}
	if p.DestQP <= packet.GSIQP {
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
		return false
	}
	if l.flags&sends != 0 {
		t.tell(x, l)
	}
	return true
}

// settle finds the flow's place and what RDMA-CM has said of it. Under the claim.
func (t *Table) settle(x Index, l *learner, p *packet.Parsed, now int64) {
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
	l.port = p.SrcPort
	l.soon()
	if p.Opcode>>5 == packet.UCSendOnly>>5 {
		l.flags |= unreliable
	}
	pairing.occupy(l.slot, o, l.identity(p.DestQP))
	if known != nil {
		pl := pairing.placeOf(l.slot)
		pairing.marry(&pl, known.sourceQP)
	}
}

func (l *learner) identity(qp uint32) identity {
	return makeIdentity(qp, l.port, l.flags&varies != 0, l.flags&unreliable != 0)
}

// leave gives up a flow's place.
func (t *Table) leave(x Index) {
	if t.pairing == nil {
		return
	}
	l := &t.learners[x]
	if pl, ok := t.placeOf(x); ok {
		t.pairing.part(&pl)
		pl.p.owner[pl.k].CompareAndSwap(uint64(t.ownerOf(x)), 0)
	}
	*l = learner{}
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
	l := &t.learners[x]
	if l.slot == 0 {
		return place{}, false
	}
	pl = t.pairing.placeOf(l.slot)
	return pl, pl.owner() == t.ownerOf(x)
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

// requests notes which PSNs the flow has used.
func (t *Table) requests(x Index, l *learner, s state, p *packet.Parsed, b []byte) {
	span := uint32(0)
	if p.Opcode.Role() == packet.ReadRequest {
		span = readSpan(p, b)
	}
	if s.qpState() != Confirmed && asksForACK(p, b) {
		t.ask(l, p.PSN)
	}
	if l.flags&sends == 0 {
		if s.qpState() == Confirmed {
			t.reconsider(x, l)
		}
		l.flags |= sends
		l.first, l.exact, l.high = p.PSN, p.PSN, (p.PSN+span)&psnMask
		t.tell(x, l)
		return
	}
	ahead := (p.PSN - l.exact) & psnMask
	switch {
	case ahead == 0:
	case (l.first-p.PSN)&psnMask-1 < firstSlack: // sent before what was seen first
		l.first = p.PSN
		t.tell(x, l)
		if s.qpState() == Confirmed && t.acknowledged(l, p.PSN) {
			t.reconsider(x, l)
		}
	case ahead <= (l.high-l.exact)&psnMask+gapOf(s):
		was := l.high
		l.exact, l.high = p.PSN, (p.PSN+span)&psnMask
		if (l.high-l.first)&psnMask > maxSpan {
			l.first = (l.high - maxSpan) & psnMask
		}
		if s.qpState() != Confirmed || was/coarse != l.high/coarse {
			t.tell(x, l)
		}
	case s.qpState() != Confirmed && psnMask+1-ahead >= maxGap:
		l.first, l.exact, l.high = p.PSN, p.PSN, (p.PSN+span)&psnMask
		t.restart(x, l)
	case s.qpState() == Confirmed && t.newBeginning(l, p.PSN, psnMask+1-ahead):
		t.reused(x)
	case s.qpState() == Confirmed && t.acknowledged(l, p.PSN):
		t.reconsider(x, l)
	}
}

// gapOf is how many PSNs a flow may skip: lost before they were seen. With evidence that a new connection would have changed there is time
// to find out; else a skip is the only sign of one.
func gapOf(s state) uint32 {
	if s.qpState() == Confirmed && s.evidence() >= EvidencePort {
		return nearGap
	}
	return maxGap
}

// readSpan is how many PSNs more than one a READ request takes: as many as its response has packets, by the smallest path MTU.
func readSpan(p *packet.Parsed, b []byte) uint32 {
	at := int(p.Ext) + p.Opcode.Offset(packet.HasRETH)
	if at+packet.RETHLen > len(b) {
		return 0
	}
	const smallestMTU = 256
	octets := uint64(packet.DecodeRETH(b[at:]).DMALength)
	return uint32(min((max(octets, 1)-1)/smallestMTU, maxSpan))
}

// tell brings the flow's PSNs to where the other side reads them.
func (t *Table) tell(x Index, l *learner) {
	if l.slot == 0 || !t.holds(x, l) {
		return
	}
	pl := t.pairing.placeOf(l.slot)
	pl.p.sent[pl.k].Store(uint64(makeSent(l.first, l.high)))
}

// restart forgets what was learned about an unconfirmed flow whose PSNs are far from all it had sent: another connection has its QP.
func (t *Table) restart(x Index, l *learner) {
	if l.slot == 0 || !t.holds(x, l) {
		return
	}
	pl := t.pairing.placeOf(l.slot)
	pl.p.ack[pl.k].Store(0)
	t.pairing.forget(&pl)
	for n := range int(pl.g.used[1-pl.side].Load()) {
		o, ok := t.pairing.at(pl.g, 1-pl.side, n)
		if !ok {
			break
		}
		if a := o.ack(); a.sole() == pl.n {
			o.p.ack[o.k].CompareAndSwap(uint64(a), uint64(makeAck(a.last(), -1, 0, 0, 0)))
		}
	}
	t.tell(x, l)
}

// newBeginning tells whether a request can only be of another connection with the same QP: its PSN is far from all that was sent,
// or behind what the peer has acknowledged, where no sender goes back to.
func (t *Table) newBeginning(l *learner, psn, back uint32) bool {
	return back >= maxGap || t.behindAcknowledged(l, psn, back)
}

// asksForACK tells whether a request has the AckReq bit (IBTA 9.2.13).
func asksForACK(p *packet.Parsed, b []byte) bool {
	at := int(p.BTH) + 8
	return at < len(b) && b[at]&0x80 != 0
}

// isACK tells whether a response is a positive acknowledgement and nothing else.
func isACK(p *packet.Parsed, b []byte) bool {
	at := int(p.Ext)
	return p.Opcode.Headers() == packet.HasAETH && !p.Opcode.HasPayload() && at < len(b) && b[at]>>5 == 0
}

// ask notes a PSN that is to be acknowledged.
func (t *Table) ask(l *learner, psn uint32) {
	if l.slot == 0 {
		return
	}
	pl := t.pairing.placeOf(l.slot)
	pl.p.asked[pl.k][l.asks%askedRing].Store(psn | askedBit)
	l.asks++
}

func (t *Table) behindAcknowledged(l *learner, psn, back uint32) bool {
	if l.flags&unreliable != 0 {
		return back > 1024
	}
	behind, ok := t.behind(l, psn)
	return ok && behind > backMargin
}

// acknowledged tells whether the flow's mate has acknowledged a PSN.
func (t *Table) acknowledged(l *learner, psn uint32) bool {
	_, ok := t.behind(l, psn)
	return ok
}

// behind is how far a PSN is behind the last that the flow's mate has acknowledged; ok is false if it is ahead.
func (t *Table) behind(l *learner, psn uint32) (n uint32, ok bool) {
	if l.slot == 0 {
		return 0, false
	}
	pl := t.pairing.placeOf(l.slot)
	mate, ok := t.pairing.mateOf(&pl)
	if !ok {
		return 0, false
	}
	a := mate.ack()
	n = (a.last() - psn) & psnMask
	return n, a.valid() && n < psnHalf
}

// portChanged notes that a flow's UDP source port is not what it was. What was learned of the flow is over: another connection has
// its QP, or its sender changes ports all the time, and then the port says nothing. Where RDMA-CM or a human has said more than the
// port could, PSNs tell whether it is another.
func (t *Table) portChanged(x Index, l *learner) {
	s := state(t.entries[x].state.Load())
	if l.flags&varies != 0 {
		return
	}
	if s.usable() && s.evidence() >= EvidencePort {
		t.reused(x)
		return
	}
	l.flags |= varies
	if !t.holds(x, l) {
		return
	}
	pl := t.pairing.placeOf(l.slot)
	pl.p.id[pl.k].Store(uint64(l.identity(pl.id().qp())))
}

// reused ends the record of a flow whose QP serves another connection now, and what was learned from it about its mate.
func (t *Table) reused(x Index) {
	t.entries[x].close(state(t.entries[x].state.Load()), EndedReuse)
	t.reuses++
	t.dirty = true
	pl, ok := t.placeOf(x)
	if !ok {
		return
	}
	mate, tied := t.pairing.part(&pl)
	t.unlearn(x, &pl)
	if tied {
		t.pairing.withdraw(&mate)
		t.pairing.vacate(&mate)
	}
}

// unlearn forgets what RDMA-CM has said of a connection that is over, in both directions: its QPs may serve again without it.
func (t *Table) unlearn(x Index, pl *place) {
	p := t.pairing
	if !p.claimSoon() {
		t.skipped++
		return
	}
	defer p.release()
	from, to := state(t.entries[x].state.Load()).qp(), pl.id().qp()
	key, side := p.groupOf(t.entries[x].plainKey())
	h := p.hashOf(&key)
	p.forgetKnown(knownHash(h, side, to), from)
	p.forgetKnown(knownHash(h, 1-side, from), to)
}

// reconsider takes back a pair that PSNs or equal ports have made, where there is a sign that one of its QPs serves a new connection: a
// flow that had only answered so far begins to send requests, or one goes back to what was acknowledged. If it is the old connection,
// the responses to come will confirm the pair again.
func (t *Table) reconsider(x Index, l *learner) {
	pl, ok := t.placeOf(x)
	s := state(t.entries[x].state.Load())
	if !ok || s.evidence() < EvidencePort || s.evidence() == EvidencePort && pl.p.match[pl.k].Load()&matchFormula != 0 {
		return
	}
	mate, tied := t.pairing.part(&pl)
	t.pairing.withdraw(&pl)
	if tied {
		t.pairing.withdraw(&mate)
	}
	l.soon()
}

// withdraw takes back what was learned of a flow.
func (p *Pairing) withdraw(pl *place) {
	for {
		e, was := p.entryOf(pl.owner())
		if e == nil || was.settled() && was.evidence() != EvidenceCM || was.qpState() == Unknown || e.change(was, qpWord(0, Unknown, EvidenceNone)) {
			return
		}
	}
}

// retract takes back what some evidence has said of a flow, if it was that.
func (p *Pairing) retract(pl *place, why Evidence) {
	if e, s := p.entryOf(pl.owner()); e != nil && s.qpState() == Confirmed && s.evidence() == why {
		e.change(s, qpWord(0, Unknown, EvidenceNone))
	}
}
