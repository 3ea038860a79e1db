package pairing

import (
	"math/bits"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// This file learns from the packets of flows that have no mate.

// learn learns from a packet of a flow that has no mate, and judges the flow if it is time.
func (s *subject) learn() {
	s.n.mark, s.n.back, s.n.heard, s.n.width = 0, 0, 0, 0 // there is no mate to hear from
	if s.p.Opcode.Role() == packet.Response {
		s.learnResponse()
	} else {
		s.learnRequest()
	}
	if s.t.left() > 0 {
		return
	}
	s.later()
	s.judge()
}

func (s *subject) learnRequest() {
	own := s.ofService() && (s.t.flags&sends == 0 || s.within(s.p.PSN))
	switch s.character(own, requestsApart) {
	case odd:
		return
	case others:
		if !s.startOver(own) {
			return
		}
	default:
		s.followPort()
	}
	s.noteRequest(true)
	if asksForACK(s.p, s.b) {
		s.noteAsked()
	}
}

// startOver forgets what was learned about a flow, because another connection has its QP now. own says whether the new PSNs could be the old
// connection's, too. It reports whether it could: if there is no budget or no claim, the next packet tries again.
func (s *subject) startOver(own bool) bool {
	if !s.l.spend(s.pl.others()) {
		return false
	}
	if !s.pl.g.learning.try() {
		s.l.skipped()
		return false
	}
	defer s.pl.g.learning.release()
	n := s.n
	n.odd, n.moved, n.began = 0, 0, s.t.packets
	if n.wanders = min(n.wanders+1, maxWanders); !own {
		n.wanders = 0
	}
	s.t.flags &^= sends
	s.noteService()
	s.forgetAsked()
	s.t.last |= unsettled
	s.t.port = s.p.SrcPort
	s.pl.p.ack[s.pl.k].Store(uint64(n.lease) << 49)
	s.pl.p.id[s.pl.k] = s.identity()
	s.l.pairing.forget(&s.pl)
	s.soon()
	return true
}

// followPort notes the new UDP source port of a flow whose PSNs go on as before, and forgets what was ruled out if that is unusual.
func (s *subject) followPort() {
	if s.p.SrcPort == s.t.port || !s.portMoved() {
		return
	}
	if s.pl.g.learning.try() {
		s.l.pairing.forget(&s.pl)
		s.pl.g.learning.release()
	}
}

// learnResponse learns from a response. Its PSN is one that the mate has sent.
func (s *subject) learnResponse() {
	n := s.n
	of := s.ofService()
	if fit := s.character(of, answersApart); fit == odd || fit == others && !of && !s.startOver(false) {
		return
	}
	if s.p.SrcPort != s.t.port {
		s.followPort()
	}
	s.noteNext()
	heard := ackWord(s.pl.p.ack[s.pl.k].Load())
	if heard.valid() && heard.last() == s.p.PSN {
		return
	}
	if n.skip > 0 {
		n.skip--
		return
	}
	if !s.pl.g.learning.try() {
		s.l.skipped()
		return
	}
	defer s.pl.g.learning.release()
	t := s.pl.trial()
	before := t.agreeing
	if s.eliminate(heard) || t.sole() >= 0 {
		s.attend()
	} else {
		s.ignore()
	}
	if t.doubts > 0 || t.agreeing != before && t.agreeing >= minAgreeing && t.agreeing&(t.agreeing-1) == 0 {
		s.sooner()
	}
}

// trial is what a flow's responses have shown about which flow is its mate.
type trial struct {
	soleIs   uint16 // number of the only place of the other side that is left, plus 1; 0 if none or several are left
	width    uint8  // binary logarithm of how many PSNs that flow had used when it became the only one
	agreeing uint8  // responses since then, each to a higher PSN than all before
	exact    uint8  // ACKs since then that were for PSNs with AckReq, since the last one that wasn't
	retries  uint8  // how often no flow was left, and everything that was ruled out was taken back
	doubts   uint8  // contradictions, maxDoubts at most
	trusted  uint8  // responses in a row that somebody can have asked for
	wait     uint16 // responses with no flow left until everything may be taken back again
}

func (t *trial) sole() int { return int(t.soleIs) - 1 }

// restart forgets what responses have shown, but not how often it was wrong.
func (t *trial) restart() {
	*t = trial{retries: t.retries, doubts: t.doubts, wait: t.wait}
}

// answered notes whether a flow of the other side can have asked for the last response.
func (t *trial) answered(yes bool) {
	t.trusted = min(t.trusted, 254) + 1
	if !yes {
		t.trusted = 0
	}
}

const (
	maxRetries = 8  // retries that ask for more evidence
	maxWait    = 12 // binary logarithm of the longest wait, responses
)

// exhausted is called when no flow is left. Either the mate doesn't pass the gateway, or a forged packet or a loss has ruled it out. So it
// takes everything back that was ruled out. Each time it waits twice as long before it does, so that chance gets few trials, and each trial
// asks for one bit of evidence more.
func (s *subject) exhausted() {
	t := s.pl.trial()
	if t.wait > 0 {
		t.wait--
		return
	}
	t.retries = min(t.retries+1, maxWait)
	t.restart()
	t.wait = 1<<t.retries - 1
	s.pl.anyone()
}

// scan is what comes of comparing one response with the flows of the other side.
type scan struct {
	psn   uint32
	fresh bool   // its PSN is higher than that of all responses before
	left  int    // flows that are not ruled out
	sole  int    // place of the last of them
	width uint32 // of what that flow has sent
	asked answer // whether that flow has asked for this ACK
}

// eliminate rules out, as the mate of the flow that has just sent a response, every flow of the other side that has not used its PSN. It
// reports whether there were any.
func (s *subject) eliminate(heard ackWord) (any bool) {
	pl, l := &s.pl, s.l
	ahead := (s.p.PSN - heard.last()) & psnMask
	c := scan{psn: s.p.PSN, fresh: !heard.valid() || ahead < psnHalf, sole: -1}
	used := pl.others()
	for w := 0; w*64 < used; w++ {
		row := pl.p.row[pl.k][w]
		if !l.spend(bits.OnesCount64(row & (1<<min(used-w*64, 64) - 1))) {
			return any
		}
		if out := s.scanWord(w, row, used, &c); out != 0 {
			pl.ruleOut(w, out)
			l.counts.Evidence[EvidencePSN] += uint64(bits.OnesCount64(out))
			l.dirty, any = true, true
		}
	}
	if c.left == 0 && used > 0 { // with nobody to ask there was no trial
		s.exhausted()
	}
	if c.left == 1 && c.fresh && isACK(s.p, s.b) {
		if o, ok := l.pairing.at(pl.g, 1-pl.side, c.sole); ok {
			c.asked = o.askedFor(o.sent(), c.psn)
		}
	}
	c.result(pl.trial())
	if c.fresh {
		pl.trial().answered(c.left > 0)
		pl.p.ack[pl.k].Store(uint64(makeAck(c.psn, s.n.lease)))
	}
	return any
}

// scanWord compares a response with the flows of one word of the row, and returns a bit for each that is to be ruled out.
func (s *subject) scanWord(w int, row uint64, used int, c *scan) (out uint64) {
	for ; row != 0; row &= row - 1 {
		n := w*64 + bits.TrailingZeros64(row)
		if n >= used {
			break
		}
		o, ok := s.l.pairing.occupied(s.pl.g, 1-s.pl.side, n)
		if !ok {
			continue
		}
		if sent := o.sent(); sent.may(c.psn) {
			c.left, c.sole, c.width = c.left+1, n, sent.width()
		} else {
			out |= row & -row
		}
	}
	return out
}

// result brings a trial up to date after one more response.
func (c *scan) result(t *trial) {
	if c.left != 1 {
		t.soleIs, t.agreeing, t.exact, t.width = 0, 0, 0, 0
		return
	}
	if c.sole != t.sole() {
		t.soleIs, t.agreeing, t.exact, t.width = uint16(c.sole+1), 0, 0, uint8(bits.Len32(c.width))
	}
	if c.fresh {
		t.agreeing = min(t.agreeing, 254) + 1
	}
	switch c.asked {
	case yes:
		t.exact = min(t.exact, 254) + 1
	case no:
		t.exact = 0
	}
}
