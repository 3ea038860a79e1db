package pairing

import "github.com/cnpgate/cnpgate/internal/packet"

// This file checks the packets of flows that have a mate. A packet is in character if the connection can have sent it: its UDP source port
// is the flow's, and its PSN is one that the connection may use. So retransmission is in character: a sender may go back to what it has
// sent.
//
// A packet out of character may be the first one of another connection, or forged. From then on the flow is in doubt, and no notification
// names its source QP, until a packet in character comes. If instead a second packet out of character comes, and goes with the first, both
// belong to another connection.
//
// Where the UDP source port doesn't distinguish connections, packets of a new connection may be in character. There a sender may go back only to
// a PSN that one of the mate's last responses waits for. If it goes back to another one that was acknowledged, the flow is in doubt until its
// mate has responded to a request that was sent since. Another connection's responses go to another QP, so then the mate does not respond.

// guard checks a packet of a flow that has a mate.
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
	case moved && s.t.flags&unreliable != 0: // UC has no responses
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
	s.noteRequest(s.resume(heard) || begins)
	switch {
	case s.silentFor(heard, 2):
		if !s.mapped(mate) {
			s.contradicted()
		}
		return
	case !n.awaits() && s.silentFor(heard, 1) && !s.mapped(mate):
		s.await(n.high, sent)
	}
	if n.mark != 0 && heard.valid() && !atMost(heard.last(), n.mark) {
		n.mark, n.back, n.gap = 0, 0, 0
	}
	s.trust(m)
}

// gap reports whether two packets in a row that are out of character may belong to the same connection after a gap: RDMA-CM has confirmed
// the pair, and could not confirm it again, and the flow continues with the same UDP source port less than 2^16 PSNs ahead. Then the flow
// is in doubt until its mate has responded to a request that was sent after the gap. By chance that happens with probability 2^-18. UC has
// no responses.
func (s *subject) gap() bool {
	const widest = 1 << 16
	n := s.n
	ahead := (s.p.PSN - n.high) & psnMask
	if s.answer().Evidence() != EvidenceCM || s.p.SrcPort != s.t.port || !s.ofService() || ahead >= widest || s.t.flags&unreliable != 0 {
		return false
	}
	if n.odd = 0; n.gap == 0 {
		n.gap, n.resumed = n.high|noteBit, 0
	}
	return true
}

// resume reports whether forged packets only looked like a gap: requests have continued at the PSNs before it, and the mate has responded
// to one of those. Then the current request has the highest PSN again, and the wait is over.
func (s *subject) resume(heard ackWord) bool {
	n := s.n
	before := n.gap & psnMask
	ahead, answered := (s.p.PSN-before)&psnMask, (heard.last()-before)&psnMask
	if n.gap == 0 || ahead <= uint32(n.resumed) || ahead > uint32(n.resumed)+maxGap {
		return false
	}
	n.resumed = uint16(min(ahead, 1<<16-1))
	if !heard.valid() || answered == 0 || answered > ahead {
		return false
	}
	n.top, n.high = s.p.PSN, s.p.PSN
	n.mark, n.back, n.gap = 0, 0, 0
	return true
}

// silentFor reports whether the mate is silent: the number of PSNs without a response is above a limit times a factor. The limit is
// 2^16, or four times the highest number of PSNs that were ever without a response before, if that is more. A READ counts one PSN until the next
// request shows how many it used.
func (s *subject) silentFor(heard ackWord, factor uint32) bool {
	const least = 1 << 16
	n := s.n
	if s.t.flags&unreliable != 0 || !heard.valid() {
		return false
	}
	if seen := heard.last() | noteBit; seen != n.heard {
		if onTheWay := (n.top - n.heard) & psnMask; n.heard != 0 && onTheWay < psnHalf {
			n.width = max(n.width, onTheWay)
		}
		n.heard = seen
	}
	onTheWay := (n.top - heard.last()) & psnMask
	return onTheWay < psnHalf && onTheWay > factor*max(4*n.width, least)
}

// mapped reports whether a map or a hint names this flow's QP as the source QP of the mate. Then no worker learns from the mate's packets,
// so its published PSNs are old and don't contradict the pair. This flow's own worker will soon apply the map, which names both.
func (s *subject) mapped(mate *place) bool {
	a, ok := s.l.pairing.answerOf(mate.owner())
	return ok && settled(a) && a.Ended() == Open && a.SourceQP() == s.p.DestQP
}

func (s *subject) guardResponse(m mateWord, mate *place) {
	n, psn := s.n, s.p.PSN
	sent := sentBy(mate, m)
	of := s.ofService()
	expected := of && sent.valid() && (psn-sent.first()+firstSlack)&psnMask <= sent.width()+firstSlack+margin
	fit := s.character(expected, responsesApart)
	if fit != fits && of && s.mapped(mate) {
		return
	}
	switch fit {
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
		publish(&s.pl.p.ack[s.pl.k], n.lease, uint64(makeAck(psn, n.lease)))
		if n.back != 0 && !atMost(psn, n.back) && atMost(psn, sent.high()) {
			n.mark, n.back = 0, 0
		}
	}
	s.trust(m)
}

const (
	nextRing = 8
	// nextSlack is the number of packets, at the start of a retransmission, that may be lost before the gateway.
	nextSlack = 3
)

// noteNext records the PSN that a response waits for: the one after the PSN that it acknowledges, or the PSN that a NAK names.
func (s *subject) noteNext() {
	n, next := s.n, s.p.PSN
	if at := s.p.Ext(); !acknowledges(s.p) || at < len(s.b) && s.b[at]>>5 != nakSequence {
		next = (next + 1) & psnMask
	}
	ring := &s.pl.p.next[s.pl.k]
	if ring[(n.responses-1)%nextRing].Load() == next|noteBit {
		return
	}
	ring[n.responses%nextRing].Store(next | noteBit)
	n.responses++
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

// await puts the flow in doubt until a response is seen: its mate's to a PSN beyond the given one, if the flow sends requests, or its own to a
// PSN beyond what the mate has sent.
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

// awaits reports whether the flow waits for a response.
func (n *note) awaits() bool { return n.mark != 0 || n.back != 0 }

// doubt makes the source QP a candidate, so that no notification names it. The pair stays.
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

// trust confirms again the source QP that doubt has made a candidate, unless the flow still waits for a response. Another worker may have
// withdrawn the pair meanwhile, and the present candidate may come from a forged CNP. So the answer must have the same QP and evidence as
// when the packet came, and the flow must still have the mate m.
func (s *subject) trust(m mateWord) {
	if s.n.awaits() || s.answer().State() != Candidate {
		return
	}
	s.change(func(a Answer) Answer {
		same := a.SourceQP() == s.saw.SourceQP() && a.Evidence() == s.saw.Evidence() && a.Evidence() != EvidenceCNP
		if same && a.State() == Candidate && a.Ended() == Open && mateWord(s.pl.p.mate[s.pl.k].Load()).sharedPort() == m.sharedPort() {
			return makeAnswer(a.SourceQP(), Confirmed, a.Evidence())
		}
		return a
	})
}

// anotherConnection handles a flow whose destination QP serves another connection now. It ends the flow record, begins a new one, and
// withdraws the mate's source QP.
func (s *subject) anotherConnection() {
	s.doubt() // without budget or lock, the next packet does the rest
	l := s.l
	if !s.compare(s.pl.own() + s.pl.others()) {
		return
	}
	l.counts.Reuses++
	l.dirty = true
	if s.answer().Evidence() == EvidenceCM {
		l.forgetClaims(&s.pl, &s.mate)
	}
	if mate, ok := l.pairing.part(&s.pl); ok {
		l.pairing.abandon(&mate)
	}
	s.pl.g.lock.release()
	s.change(func(a Answer) Answer { return a.closed(EndedReuse) })
	l.renew(s.x, s.p, s.now)
	s.again()
}

// again learns from the current packet for the flow record that has just begun.
func (s *subject) again() {
	var ok bool
	if s.pl, ok = s.enter(); ok {
		s.pause()
		s.learn()
	}
}

// contradicted withdraws a pair because the flow's responses are to PSNs that the mate has not sent. The current packet may be another
// connection's. The pair can be confirmed again, with more evidence than before.
func (s *subject) contradicted() {
	s.doubt() // without budget or lock, the next packet does the rest
	l := s.l
	if !s.compare(s.pl.own() + s.pl.others()) {
		return
	}
	defer s.pl.g.lock.release()
	l.counts.Contradictions++
	l.dirty = true
	if s.answer().Evidence() == EvidenceCM && s.p.SrcPort != s.t.port {
		l.forgetClaims(&s.pl, &s.mate)
		s.pl.p.claimed[s.pl.k] = 0
	}
	l.pairing.dissolve(&s.pl)
	s.forgetAsked()
	*s.n = note{first: s.n.first, top: s.n.top, high: s.n.high, began: milliseconds(s.now), took: s.n.took, lease: s.n.lease}
	s.t.acked, s.t.port = 0, s.p.SrcPort
	s.pl.p.id[s.pl.k] = s.identity()
	s.soon()
}

// lost handles a flow whose mate no longer has its place: then the flow's packets can't be compared with anything.
func (s *subject) lost(m mateWord) {
	s.pl.p.mate[s.pl.k].CompareAndSwap(uint64(m), 0)
	s.n.mark, s.n.back, s.n.odd = 0, 0, 0
	s.t.acked = 0
	s.change(func(a Answer) Answer {
		if a.Ended() == Open && !settled(a) {
			return 0
		}
		return a
	})
	s.soon()
}
