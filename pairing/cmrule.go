package pairing

import "sync/atomic"

// claim is RDMA-CM's claim about a flow that has a slot: bits 0-23 the source QP, 24-47 the PSN of the flow's first request, 48-63 its UDP
// source port, 0 for any. It is 0 without a claim.
type claim uint64

func makeClaim(c *flowClaim) claim {
	return claim(c.sourceQP&qpMask) | claim(c.psn&psnMask)<<24 | claim(c.port)<<48
}

func (s claim) sourceQP() uint32 { return uint32(s & qpMask) }
func (s claim) psn() uint32      { return uint32(s>>24) & psnMask }
func (s claim) port() uint16     { return uint16(s >> 48) }

// sequence is a counter; a change shows others that something is new.
type sequence struct{ n atomic.Uint32 }

func (s *sequence) next()       { s.n.Add(1) }
func (s *sequence) now() uint32 { return s.n.Load() + 1 } // never 0 before it wraps

// claimDelay is the maximum time in milliseconds from a connection's first packet to the messages that claim it: RDMA-CM sets up a connection
// before its data, apart from reordering. So nobody can try claims about a flow in use until one fits. What counts is when the messages
// arrived; they may have waited to be read.
const claimDelay = 1

// findClaim looks for RDMA-CM's claim about the flow, if claims were added since the last call.
func (s *subject) findClaim() {
	number := s.l.pairing.cm.number.now()
	if s.n.seenCM == number || number == 1 || !s.l.spend(madCost/4) {
		return
	}
	c, ok, busy := s.l.claimOf(s.x, s.n.first, s.n.began, s.now)
	if busy { // look again at the flow's next judgement
		return
	}
	s.n.seenCM = number
	if !ok {
		return
	}
	if s.lockGroup() {
		s.pl.p.claimed[s.pl.k] = makeClaim(&c)
		s.pl.g.lock.release()
	} else {
		s.n.seenCM = 0
	}
}

// begun reports whether the flow's requests began where RDMA-CM claims, or up to firstSlack PSNs later. If first PSNs are random, an
// unrelated flow does so with probability 2^-18.
func (pl *Slot) begun() bool {
	s, sent := pl.claimed(), pl.sent()
	return s != 0 && sent.valid() && (sent.first()-s.psn())&psnMask <= firstSlack
}

// cmRule finds the peer flow that RDMA-CM claims for this flow: the claims about the two flows name each other, and their data agrees with the
// claims.
func (p *Pairing) cmRule(pl *Slot) (peer Slot, ok bool) {
	s := pl.claimed()
	if s == 0 {
		return Slot{}, false
	}
	for n := range pl.others() {
		o, ok := p.occupied(pl.g, 1-pl.side, n)
		if ok && o.id().qp() == s.sourceQP() && (o.claimNames(pl) || pl.begun() && !o.sent().valid() && !pl.id().unreliable()) {
			return o, p.asClaimed(pl, &o)
		}
	}
	return Slot{}, false
}

// claimNames reports whether RDMA-CM's claim about the flow names the destination QP of the flow at o.
func (pl *Slot) claimNames(o *Slot) bool {
	return pl.claimed() != 0 && pl.claimed().sourceQP() == o.id().qp()
}

// asClaimed reports whether the data of two flows agrees with RDMA-CM's claims: at least one flow has sent requests, each that has began at
// the PSN of its claim, and one flow has responded to the other. UC flows have no responses, so both must have begun, or the UDP source
// port must be the one that results from RDMA-CM's flow label. If the first PSNs can be guessed, the port must also be the connection's
// own.
func (p *Pairing) asClaimed(a, b *Slot) bool {
	if !a.begun() && !b.begun() || a.sent().valid() && !a.begun() || b.sent().valid() && !b.begun() {
		return false
	}
	if a.id().unreliable() { // UC has no responses
		if (near0(a.claimed().psn()) || near0(b.claimed().psn())) && !p.ownPort(a, b) {
			return false // anyone might guess where the two flows begin
		}
		return a.begun() && b.begun() || a.claimed().port() != 0 && a.claimed().port() == a.id().port()
	}
	return p.respondedAsClaimed(a, b) || p.respondedAsClaimed(b, a)
}

// respondedAsClaimed reports whether the responses of the flow at o to that at pl are evidence for RDMA-CM's claim. If the connection
// begins at a PSN that can be guessed, there must be several such responses in a row, and the UDP source port must be the one that results
// from RDMA-CM's flow label or the formula.
func (p *Pairing) respondedAsClaimed(pl, o *Slot) bool {
	if !responded(pl, o) {
		return false
	}
	return !near0(pl.claimed().psn()) || p.ownPort(pl, o) && o.elimination().plausible >= minAgreeing
}
