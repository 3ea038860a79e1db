package pairing

import "github.com/cnpgate/cnpgate/internal/packet"

// This file watches flows that have a mate. A packet is in character if the connection can have sent it: its UDP source port is the flow's,
// and its PSN is one that the connection may use. So retransmission is in character: a sender may go back to what it has sent.
//
// A packet out of character may be the first one of another connection, or forged. From then on the flow is in doubt, and no notification
// names its source QP, until a packet in character comes. If instead a second packet out of character comes, and goes with the first, both
// are another connection's.
//
// Where the UDP port doesn't tell connections apart, packets of a new connection may be in character. There a sender may go back only to a PSN
// that one of the mate's last responses waits for. If it goes back to another one that was acknowledged, the flow is in doubt until its mate
// has answered something that was sent since. Another connection's responses go to another QP, so then the mate does not answer.

// guard takes a packet of a flow that has a mate.
func (s *subject) guard(m mateWord, mate *place) {
	if s.p.Opcode.Role() == packet.Response {
		s.guardResponse(m, mate)
	} else {
		s.guardRequest(m, mate)
	}
}

func (s *subject) guardRequest(m mateWord, mate *place) {
	n, psn := s.n, s.p.PSN
	s.forgetAsked()
	begins := s.t.flags&sends == 0
	switch s.character(s.ofService() && (begins || s.within(psn)), requestsApart) {
	case odd:
		s.doubt()
		return
	case others:
		if !s.gap() {
			s.anotherConnection()
			return
		}
		s.await((psn-1)&psnMask, sentBy(mate, m))
	}
	heard, sent := heardFrom(mate, m), sentBy(mate, m)
	goesBack := !begins && !atMost(s.t.last&psnMask, psn)
	moved := s.p.SrcPort != s.t.port && s.portMoved()
	switch {
	case moved && s.t.flags&unreliable != 0: // nothing will be answered
		s.anotherConnection()
		return
	case moved:
		s.await(n.high, sent)
	case m.ownPort() || n.awaits():
	case begins:
		s.await((psn-1)&psnMask, sent)
	case goesBack && heard.valid() && atMost(psn, heard.last()) && !mate.waitsFor(psn):
		s.await(n.high, sent)
	}
	s.noteRequest(begins)
	switch {
	case s.silentFor(heard, 2):
		s.contradicted()
		return
	case !n.awaits() && s.silentFor(heard, 1):
		s.await(n.high, sent)
	}
	if n.mark != 0 && heard.valid() && !atMost(heard.last(), n.mark) {
		n.mark, n.back = 0, 0
	}
	s.trust()
}

// gap reports whether two packets in a row that are out of character may be of the same connection after a gap: it goes on with its UDP source
// port less than 2^16 PSNs ahead, and what RDMA-CM has said of it could not be learned again. Then the flow is in doubt until its mate has
// answered what was sent behind the gap, which it does by chance with the probability 2^-18.
func (s *subject) gap() bool {
	const widest = 1 << 16
	ahead := (s.p.PSN - s.n.high) & psnMask
	if s.answer().Evidence() != EvidenceCM || s.p.SrcPort != s.t.port || !s.ofService() || ahead >= widest {
		return false
	}
	s.n.odd = 0
	return true
}

// silentFor reports whether the mate has stopped answering: more PSNs are unanswered than 2^16, and than four times the most that there ever
// were, times a factor.
func (s *subject) silentFor(heard ackWord, factor uint32) bool {
	const least = 1 << 16
	n := s.n
	if s.t.flags&unreliable != 0 || !heard.valid() {
		return false
	}
	if seen := heard.last() | noteBit; seen != n.heard {
		if onTheWay := (n.high - n.heard) & psnMask; n.heard != 0 && onTheWay < psnHalf {
			n.width = max(n.width, onTheWay)
		}
		n.heard = seen
	}
	onTheWay := (n.high - heard.last()) & psnMask
	return onTheWay < psnHalf && onTheWay > factor*max(4*n.width, least)
}

func (s *subject) guardResponse(m mateWord, mate *place) {
	n, psn := s.n, s.p.PSN
	sent := sentBy(mate, m)
	of := s.ofService()
	answers := of && sent.valid() && (psn-sent.first()+firstSlack)&psnMask <= sent.width()+firstSlack+margin
	switch s.character(answers, answersApart) {
	case odd:
		s.doubt()
		return
	case others:
		if of {
			s.contradicted()
		} else {
			s.anotherConnection()
		}
		return
	}
	heard := ackWord(s.pl.p.ack[s.pl.k].Load())
	ahead := (psn - heard.last()) & psnMask
	fresh := !heard.valid() || ahead < psnHalf
	moved := s.p.SrcPort != s.t.port && s.portMoved()
	switch {
	case moved:
		s.await(n.high, sent)
	case m.ownPort() || n.awaits():
	case !fresh && ahead < psnMask-backMargin && acknowledges(s.p): // acknowledgements don't go back
		s.await(n.high, sent)
	}
	if !m.ownPort() {
		s.noteNext()
	} else if fresh {
		s.t.acked = psn | ackedBit
	}
	if fresh {
		s.pl.p.ack[s.pl.k].Store(uint64(makeAck(psn, n.lease)))
		if n.back != 0 && !atMost(psn, n.back) && atMost(psn, sent.high()) {
			n.mark, n.back = 0, 0
		}
	}
	s.trust()
}

const (
	nextRing = 8
	// nextSlack is how many packets may be lost before the gateway of those that a sender sends again first.
	nextSlack = 3
)

// noteNext notes which PSN a response waits for: the one after the PSN that it acknowledges, or the PSN that a NAK names.
func (s *subject) noteNext() {
	n, next := s.n, s.p.PSN
	if at := int(s.p.Ext); !acknowledges(s.p) || at < len(s.b) && s.b[at]>>5 != nakSequence {
		next = (next + 1) & psnMask
	}
	ring := &s.pl.p.next[s.pl.k]
	if ring[(n.answers-1)%nextRing].Load() == next|noteBit {
		return
	}
	ring[n.answers%nextRing].Store(next | noteBit)
	n.answers++
}

// nakSequence is the upper three bits of the AETH's syndrome in a NAK (IBTA 9.7.5.2).
const nakSequence = 3

// waitsFor reports whether one of the flow's last responses waits for a PSN, or for one up to nextSlack before it.
func (pl *place) waitsFor(psn uint32) bool {
	for i := range pl.p.next[pl.k] {
		if w := pl.p.next[pl.k][i].Load(); w != 0 && (psn-w)&psnMask <= nextSlack {
			return true
		}
	}
	return false
}

// await has the flow wait for an answer of its mate to a PSN beyond the given one, if it sends requests, or for its own answer to one
// beyond what the mate has sent.
func (s *subject) await(beyond uint32, sent sentWord) {
	s.n.mark, s.n.back = 0, 0
	if s.p.Opcode.Role() != packet.Response || s.t.flags&sends != 0 {
		s.n.mark = beyond&psnMask | noteBit
	}
	if sent.valid() {
		s.n.back = sent.high() | noteBit
	}
	s.doubt()
}

// awaits tells whether the flow waits for an answer.
func (n *note) awaits() bool { return n.mark != 0 || n.back != 0 }

// doubt has no notification name the source QP, but keeps it in mind.
func (s *subject) doubt() {
	if s.answer().State() != Confirmed {
		return
	}
	s.change(func(a Answer) Answer {
		if a.State() == Confirmed && a.Ended() == Open && !settled(a) {
			return makeAnswer(a.SourceQP(), Candidate, a.Evidence())
		}
		return a
	})
}

// trust confirms the source QP again that doubt has made a candidate, unless an answer is still awaited.
func (s *subject) trust() {
	if s.n.awaits() || s.answer().State() != Candidate {
		return
	}
	s.change(func(a Answer) Answer {
		if a.State() == Candidate && a.Ended() == Open {
			return makeAnswer(a.SourceQP(), Confirmed, a.Evidence())
		}
		return a
	})
}

// anotherConnection is for a flow whose destination QP serves another connection now. It ends the flow's record, begins a new one, and takes
// the mate's source QP back.
func (s *subject) anotherConnection() {
	s.doubt() // if there is no budget or no claim, the rest is for the next packet to do
	l := s.l
	if !l.spend(s.pl.own() + s.pl.others()) {
		return
	}
	if !s.pl.g.learning.try() {
		l.skipped()
		return
	}
	l.counts.Reuses++
	l.dirty = true
	if mate, ok := l.pairing.part(&s.pl); ok {
		l.pairing.abandon(&mate)
	}
	s.pl.g.learning.release()
	if a := s.answer(); a.Evidence() == EvidenceCM {
		l.forgetClaims(s.x, a)
	}
	s.change(func(a Answer) Answer { return a.closed(EndedReuse) })
	l.renew(s.x, s.p, s.now)
	s.again()
}

// again shows the packet at hand to the record that has just begun.
func (s *subject) again() {
	var ok bool
	if s.pl, ok = s.enter(); ok {
		s.pause()
		s.learn()
	}
}

// contradicted takes a pair back because the flow's responses are to PSNs that the mate has not sent. The packet at hand may be another
// connection's. The pair can be confirmed again, by more evidence than before.
func (s *subject) contradicted() {
	s.doubt() // if there is no budget or no claim, the rest is for the next packet to do
	l := s.l
	if !l.spend(s.pl.own() + s.pl.others()) {
		return
	}
	if !s.pl.g.learning.try() {
		l.skipped()
		return
	}
	defer s.pl.g.learning.release()
	l.counts.Contradictions++
	l.dirty = true
	if a := s.answer(); a.Evidence() == EvidenceCM && s.p.SrcPort != s.t.port {
		l.forgetClaims(s.x, a)
		s.pl.p.said[s.pl.k] = 0
	}
	l.pairing.dissolve(&s.pl)
	s.forgetAsked()
	*s.n = note{first: s.n.first, high: s.n.high, began: s.t.packets, took: s.n.took, lease: s.n.lease}
	s.t.acked, s.t.port = 0, s.p.SrcPort
	s.pl.p.id[s.pl.k] = s.identity()
	s.soon()
}

// lost is for a flow whose mate no longer has its place: there is nothing left to compare the flow's packets with.
func (s *subject) lost(m mateWord) {
	s.pl.p.mate[s.pl.k].CompareAndSwap(uint64(m), 0)
	s.n.mark, s.n.back, s.n.odd = 0, 0, 0
	s.change(func(a Answer) Answer {
		if a.Ended() == Open && !settled(a) {
			return 0
		}
		return a
	})
	s.soon()
}
