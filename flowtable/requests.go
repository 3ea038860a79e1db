package flowtable

import "github.com/cnpgate/cnpgate/internal/packet"

// requests notes which PSNs the flow has used.
func (t *Table) requests(x Index, l subject, s state, p *packet.Parsed, b []byte) {
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
		l.first = p.PSN
		l.note(p.PSN, span)
		t.tell(x, l)
		return
	}
	ahead := (p.PSN - l.psn()) & psnMask
	switch {
	case ahead == 0:
	case (l.first-p.PSN)&psnMask-1 < firstSlack: // sent before what was seen first
		l.first = p.PSN
		t.tell(x, l)
		if s.qpState() == Confirmed && t.acknowledged(l, p.PSN) {
			t.reconsider(x, l)
		}
	case ahead <= l.span+gapOf(s):
		was := l.high()
		l.note(p.PSN, span)
		if now := l.high(); (now-l.first)&psnMask > maxSpan {
			l.first = (now - maxSpan) & psnMask
		}
		if s.qpState() != Confirmed || was/coarse != l.high()/coarse {
			t.tell(x, l)
		}
	case s.qpState() != Confirmed && psnMask+1-ahead >= maxGap:
		l.first = p.PSN
		l.note(p.PSN, span)
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
func (t *Table) tell(x Index, l subject) {
	if l.slot == 0 || !t.holds(x, l.slot) {
		return
	}
	pl := t.pairing.placeOf(l.slot)
	pl.p.sent[pl.k].Store(uint64(makeSent(l.first, l.high())))
}

// asksForACK tells whether a request has the AckReq bit (IBTA 9.2.13).
func asksForACK(p *packet.Parsed, b []byte) bool {
	at := int(p.BTH) + 8
	return at < len(b) && b[at]&0x80 != 0
}

// ask notes a PSN that is to be acknowledged.
func (t *Table) ask(l subject, psn uint32) {
	if l.slot == 0 {
		return
	}
	pl := t.pairing.placeOf(l.slot)
	pl.p.asked[pl.k][l.asks%askedRing].Store(psn | askedBit)
	l.asks++
}

// newBeginning tells whether a request can only be of another connection with the same QP: its PSN is far from all that was sent,
// or behind what the peer has acknowledged, where no sender goes back to.
func (t *Table) newBeginning(l subject, psn, back uint32) bool {
	return back >= maxGap || t.behindAcknowledged(l, psn, back)
}

func (t *Table) behindAcknowledged(l subject, psn, back uint32) bool {
	if l.flags&unreliable != 0 {
		return back > 1024
	}
	behind, ok := t.behind(l, psn)
	return ok && behind > backMargin
}

// acknowledged tells whether the flow's mate has acknowledged a PSN.
func (t *Table) acknowledged(l subject, psn uint32) bool {
	_, ok := t.behind(l, psn)
	return ok
}

// behind is how far a PSN is behind the last that the flow's mate has acknowledged; ok is false if it is ahead.
func (t *Table) behind(l subject, psn uint32) (n uint32, ok bool) {
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
