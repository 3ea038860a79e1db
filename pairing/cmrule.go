package pairing

import "sync/atomic"

// saying is what RDMA-CM claims of a flow that has a place: bits 0-23 the source QP, 24-47 the PSN of the flow's first request, 48-63 its UDP
// source port, 0 for any. It is 0 where there is no claim.
type saying uint64

func makeSaying(c *flowClaim) saying {
	return saying(c.sourceQP&qpMask) | saying(c.psn&psnMask)<<24 | saying(c.port)<<48
}

func (s saying) sourceQP() uint32 { return uint32(s & qpMask) }
func (s saying) psn() uint32      { return uint32(s>>24) & psnMask }
func (s saying) port() uint16     { return uint16(s >> 48) }

// sequence is a number that counts on, for others to see that something is new.
type sequence struct{ n atomic.Uint32 }

func (s *sequence) next()       { s.n.Add(1) }
func (s *sequence) now() uint32 { return s.n.Load() + 1 } // never 0 before it wraps

// heedPackets is how many packets after a flow's first one a claim about it may come: RDMA-CM sets a connection up before its data, and only
// reordering puts it behind. So nobody can make claims about a flow that goes on until one fits.
const heedPackets = 64

// heedClaim looks for RDMA-CM's claim about the flow, if claims were added since it looked last.
func (s *subject) heedClaim() {
	number := s.l.pairing.cm.number.now()
	if s.n.seenCM == number || s.t.packets-s.n.began > heedPackets || !s.l.spend(madCost/4) {
		return
	}
	if number == 1 {
		return
	}
	c, ok, busy := s.l.claimOf(s.x, s.n.first, s.now)
	if busy { // look again when the flow is judged next
		return
	}
	s.n.seenCM = number
	if !ok {
		return
	}
	if s.pl.g.learning.try() {
		s.pl.p.said[s.pl.k] = makeSaying(&c)
		s.pl.g.learning.release()
	} else {
		s.n.seenCM = 0
	}
}

// begun reports whether the flow's requests began where RDMA-CM said, or up to firstSlack PSNs later. Where first PSNs are random, an unrelated
// flow does so with the probability 2^-18.
func (pl *place) begun() bool {
	s, sent := pl.said(), pl.sent()
	return s != 0 && sent.valid() && (sent.first()-s.psn())&psnMask <= firstSlack
}

// cmRule looks for the mate that RDMA-CM claims for this flow: the claims about the two flows name each other, and their data bears the claims
// out.
func (p *Pairing) cmRule(pl *place) (mate place, ok bool) {
	s := pl.said()
	if s == 0 {
		return place{}, false
	}
	for n := range pl.others() {
		o, ok := p.occupied(pl.g, 1-pl.side, n)
		if ok && o.id().qp() == s.sourceQP() && (o.claims(pl) || pl.begun() && !o.sent().valid() && !pl.id().unreliable()) {
			return o, p.asSaid(pl, &o)
		}
	}
	return place{}, false
}

// claims tells whether RDMA-CM's claim about the flow names the QP that the flow at o goes to.
func (pl *place) claims(o *place) bool {
	return pl.said() != 0 && pl.said().sourceQP() == o.id().qp()
}

// asSaid reports whether the data of two flows bears RDMA-CM's claims out: each flow that has sent requests, and at least one has, began
// where it should, and one has answered the other.
func (p *Pairing) asSaid(a, b *place) bool {
	if !a.begun() && !b.begun() || a.sent().valid() && !a.begun() || b.sent().valid() && !b.begun() {
		return false
	}
	if a.id().unreliable() { // nothing is answered
		return a.begun() && b.begun() || a.said().port() != 0 && a.said().port() == a.id().port()
	}
	return a.answeredAsSaid(b) || b.answeredAsSaid(a)
}

// answeredAsSaid reports whether the flow at o has answered this one, so that it says something. Where a connection begins at a PSN that anyone
// might guess, it must have gone on doing so, and the UDP port must be the one that RDMA-CM's flow label or the formula makes.
func (pl *place) answeredAsSaid(o *place) bool {
	if !answered(pl, o) {
		return false
	}
	port := pl.id().port()
	ownPort := port == o.id().port() && port != 0 && (port == pl.said().port() || port == symmetricPort(pl.id().qp(), o.id().qp()))
	return !near0(pl.said().psn()) || ownPort && o.trial().trusted >= minAgreeing
}
