package pairing

import "math/bits"

const (
	maxExact    = 40      // maximum evidence in bits of ACKs in the rhythm of a flow
	farApart    = 1 << 16 // PSNs; flows farther apart than this began with random PSNs
	minAgreeing = 4       // responses to PSNs that only one flow can have sent, before they count
)

// psnRule finds the peer flow by elimination: the only flow of the other side that can have sent the PSNs of this one's responses, if no other
// flow of this side can respond to it.
func (p *Pairing) psnRule(pl *Slot) (peer Slot, ok bool) {
	t := pl.elimination()
	if t.only() < 0 || t.agreeing < minAgreeing {
		return peer, false
	}
	peer, ok = p.occupied(pl.g, 1-pl.side, t.only())
	return peer, ok && peer.may(pl.n) && p.columnIs(&peer, pl.n) && p.bothWays(pl, &peer)
}

// columnIs reports whether the flow at slot n of the other side is the only one there that may respond to the flow at pl.
func (p *Pairing) columnIs(pl *Slot, n int) bool {
	for m := range pl.others() {
		o, ok := p.occupied(pl.g, 1-pl.side, m)
		if m != n && ok && o.ack().valid() && o.may(pl.n) && pl.may(m) && !p.respondsToAnother(&o, pl) {
			return false
		}
	}
	return true
}

// respondsToAnother reports whether a flow is confirmed as the peer flow of a flow other than pl. The present peer flow of pl may respond to it, also
// while pl is suspended: otherwise anyone who sends responses for an invented QP could replace it.
func (p *Pairing) respondsToAnother(o, pl *Slot) bool {
	peer, peerOf := p.peerOf(o)
	if !peerOf || peer.n == pl.n {
		return false
	}
	a, ok := p.answerOf(o.owner())
	return ok && a.Usable()
}

// bothWays reports whether the other direction agrees, too: if the flow at pl has sent requests, the peer flow's responses must leave only this
// flow as their requester.
func (p *Pairing) bothWays(pl, peer *Slot) bool {
	return !pl.sent().valid() || peer.ack().valid() && peer.elimination().only() == pl.n
}

// psnSure reports whether a responder and the only requester that is left for it are certainly a pair.
func (p *Pairing) psnSure(requester, responder *Slot) bool {
	requesters, _ := p.requesters(requester)
	responders, matched := p.responders(responder)
	evidence := p.agreement(requester, responder) + p.agreement(responder, requester)
	return enough(requester, responder, chance(evidence, requesters, responders, matched))
}

// agreement is the evidence in bits of the PSNs of one direction; 0 unless the requester is the only one left for the responder.
func (p *Pairing) agreement(requester, responder *Slot) int {
	t := responder.elimination()
	if t.only() != requester.n || t.agreeing < minAgreeing {
		return 0
	}
	return p.startBits(requester, t)
}

// startBits is the evidence in bits if responses agree with the requester. It assumes that flows begin with random PSNs: an unrelated flow
// agrees if the response falls by chance among the PSNs that it has sent, 2^width in 2^24. ACKs of exactly the PSNs with AckReq count more,
// the rarer such PSNs are. They count once if other flows ask at the same distances, since one coincidence then causes all others;
// otherwise they count each time. Flows that begin with PSNs near each other may always use the same PSNs at the same time. Then responses
// give no evidence.
func (p *Pairing) startBits(requester *Slot, t *elimination) int {
	n, far := p.requesters(requester)
	if n > 1 && 4*far < 3*(n-1) || n == 1 && near0(requester.sent().first()) {
		return 0
	}
	evidence := 24 - max(int(t.width), bits.Len(firstSlack))
	if t.exact < minAgreeing {
		return evidence
	}
	if p.ownRhythm(requester) {
		return evidence + min(requester.sparseness()*int(t.exact), maxExact)
	}
	return evidence + requester.sparseness()
}

// near0 reports whether a PSN is near 0, so that the sender may have begun at 0 and not at random.
func near0(psn uint32) bool { return psn < farApart || psn >= psnMask-farApart }

// requesters counts the flows on pl's side that have sent requests, and those of them whose PSNs are far from pl's.
func (p *Pairing) requesters(pl *Slot) (n, far int) {
	high := pl.sent().high()
	for m := range pl.own() {
		o, ok := p.occupied(pl.g, pl.side, m)
		if !ok || !o.sent().valid() {
			continue
		}
		n++
		if d := (o.sent().high() - high) & psnMask; d > farApart && d < psnMask-farApart {
			far++
		}
	}
	return n, far
}

// responders counts the flows on pl's side that have sent responses, and those of them that have a peer flow or one requester left; pl counts, too.
func (p *Pairing) responders(pl *Slot) (n, matched int) {
	for m := range pl.own() {
		o, ok := p.occupied(pl.g, pl.side, m)
		if !ok || !o.ack().valid() {
			continue
		}
		n++
		if o.p.peer[o.k].Load() != 0 || o.elimination().only() >= 0 {
			matched++
		}
	}
	return n, matched
}
