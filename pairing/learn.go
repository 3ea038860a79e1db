package pairing

import (
	"math/bits"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// This file learns from the packets of flows that have no peer flow.

// learn learns from a packet of a flow that has no peer flow, and judges the flow if that is due.
func (s *subject) learn() {
	s.n.mark, s.n.back, s.n.gap, s.n.ack, s.n.width = 0, 0, 0, 0, 0 // there is no peer flow to hear from
	if s.p.Opcode.Role() == packet.Response {
		s.learnResponse()
	} else {
		s.learnRequest()
	}
	// An unexpected packet causes no judgement: it may be the first one of another connection, but the evidence is about the old one.
	if s.n.unexpected != 0 || s.t.left() > 0 {
		return
	}
	s.slower()
	s.judge()
}

func (s *subject) learnRequest() {
	begins := s.t.flags&sends == 0 && (s.p.SrcPort == s.t.port || s.n.portChanges == maxPortChanges)
	own := s.ofService() && (begins || s.t.flags&sends != 0 && s.within(s.p.PSN))
	switch s.fit(own, requestsApart) {
	case unexpected:
		return
	case another:
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

// startOver clears what was learned about a flow, because another connection has its QP now. own: the new PSNs could also be the old
// connection's. It returns false without budget or lock; then the next packet tries again.
func (s *subject) startOver(own bool) bool {
	if !s.compare(s.pl.others()) {
		return false
	}
	defer s.pl.g.lock.release()
	n := s.n
	n.unexpected, n.moved, n.began = 0, 0, milliseconds(s.now)
	n.asks, n.seenCM = 0, 0
	if n.portChanges = min(n.portChanges+1, maxPortChanges); !own {
		n.portChanges = 0
	}
	s.t.flags &^= sends
	s.noteService()
	s.t.last |= inexact
	s.t.port = s.p.SrcPort
	s.l.pairing.reset(&s.pl, s.identity())
	s.restartPace()
	return true
}

// followPort records the new UDP source port of a flow whose PSNs continue as before. If the change is unusual it clears what was ruled
// out.
func (s *subject) followPort() {
	switch {
	case s.p.SrcPort == s.t.port:
	case s.n.portChanges == maxPortChanges:
		s.changePort()
	case s.compare((s.pl.others() + 3) / 4): // the cost of a search for a slot; otherwise the next packet tries again
		s.notePort()
		s.pl.p.id[s.pl.k] = s.identity()
		s.l.pairing.forget(&s.pl)
		s.pl.g.lock.release()
	}
}

// learnResponse learns from a response. Its PSN was sent by the peer flow.
func (s *subject) learnResponse() {
	n := s.n
	of := s.ofService()
	if fit := s.fit(of, responsesApart); fit == unexpected || fit == another && !s.startOver(of) {
		return
	}
	if s.p.SrcPort != s.t.port {
		s.followPort()
	}
	s.noteNext()
	ack := ackWord(s.pl.p.ack[s.pl.k].Load())
	if ack.valid() && ack.last() == s.p.PSN {
		return
	}
	if n.skip > 0 {
		n.skip--
		return
	}
	if !s.lockGroup() {
		return
	}
	defer s.pl.g.lock.release()
	t := s.pl.elimination()
	before := t.agreeing
	if s.eliminate(ack) || t.only() >= 0 {
		s.readAll()
	} else {
		s.readFewer()
	}
	if t.contradictions > 0 || t.agreeing != before && t.agreeing >= minAgreeing && t.agreeing&(t.agreeing-1) == 0 {
		s.faster()
	}
}

// elimination is the evidence of a flow's responses about its peer flow.
type elimination struct {
	onlyIs         uint16 // number of the only slot of the other side that is left, plus 1; 0 if none or several are left
	width          uint8  // log2 of the number of PSNs that this flow had used when it became the only one
	agreeing       uint8  // responses since then, each to a higher PSN than all before
	exact          uint8  // consecutive ACKs since then for PSNs with AckReq
	retries        uint8  // how often no flow was left, so that all flows became possible again
	contradictions uint8  // contradictions of the pair, maxContradictions at most; page.allContradictions counts all
	plausible      uint8  // responses in a row to PSNs that some flow of the other side can have sent
	wait           uint16 // responses with no flow left until all flows may become possible again
}

func (t *elimination) only() int { return int(t.onlyIs) - 1 }

// restart clears the evidence of responses, but not the counts of its errors.
func (t *elimination) restart() {
	*t = elimination{retries: t.retries, contradictions: t.contradictions, wait: t.wait}
}

// noteResponse records a response to a higher PSN than all before. expected: some flow of the other side can have sent that PSN.
func (t *elimination) noteResponse(expected bool) {
	t.plausible = min(t.plausible, 254) + 1
	if !expected {
		t.plausible = 0
	}
}

const (
	maxRetries = 8  // retries that increase the needed evidence
	maxWait    = 12 // log2 of the longest wait, responses
)

// exhausted is called when no flow is left. Either the peer flow doesn't pass through the gateway, or a forged packet or a loss has ruled it
// out. So it makes all flows possible again. Each time it first waits twice as long, so that there are few rounds, and each round needs one
// more bit of evidence.
func (s *subject) exhausted() {
	t := s.pl.elimination()
	if t.wait > 0 {
		t.wait--
		return
	}
	t.retries = min(t.retries+1, maxWait)
	t.restart()
	t.wait = 1<<t.retries - 1
	s.pl.anyone()
}

// scan is the result of comparing one response with the flows of the other side.
type scan struct {
	psn   uint32
	fresh bool      // its PSN is higher than that of all responses before
	left  int       // flows that are not ruled out
	only  int       // slot of the last such flow
	width uint32    // of the PSNs that this flow has sent
	asked certainty // whether this flow has asked for this ACK
}

// eliminate rules out, as the peer flow of the flow that has just sent a response, every flow of the other side that has not used its PSN. It
// reports whether it ruled out any.
func (s *subject) eliminate(ack ackWord) (any bool) {
	pl, l := &s.pl, s.l
	c := scan{psn: s.p.PSN, fresh: !ack.valid() || (ack.last()-s.p.PSN)&psnMask > backMargin, only: -1}
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
	if c.left == 0 && used > 0 { // without flows on the other side there was no round
		s.exhausted()
	}
	if c.left == 1 && c.fresh && isACK(s.p, s.b) {
		if o, ok := l.pairing.at(pl.g, 1-pl.side, c.only); ok {
			c.asked = o.askedFor(o.sent(), c.psn)
		}
	}
	c.result(pl.elimination())
	if c.fresh {
		pl.elimination().noteResponse(c.left > 0)
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
			c.left, c.only, c.width = c.left+1, n, sent.width()
		} else {
			out |= row & -row
		}
	}
	return out
}

// result updates a round after one more response.
func (c *scan) result(t *elimination) {
	if c.left != 1 {
		t.onlyIs, t.agreeing, t.exact, t.width = 0, 0, 0, 0
		return
	}
	if c.only != t.only() {
		t.onlyIs, t.agreeing, t.exact, t.width = uint16(c.only+1), 0, 0, uint8(bits.Len32(c.width))
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
