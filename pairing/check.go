package pairing

import "github.com/cnpgate/cnpgate/internal/packet"

// This file checks the packets of flows that have a peer flow. A packet is expected if the connection can have sent it: its UDP source port
// is the flow's, and its PSN is one that the connection may use. So retransmission is expected: a sender may go back to what it has
// sent.
//
// An unexpected packet may be the first one of another connection, or forged. From then on the flow is suspended, and no notification
// names its source QP, until an expected packet comes. If instead a second packet unexpected comes, and goes with the first, both
// belong to another connection.
//
// Where the UDP source port doesn't distinguish connections, packets of a new connection may be expected. There a sender may go back only to
// a PSN that one of the peer flow's last responses waits for. If it goes back to another one that was acknowledged, the flow is suspended until its
// peer flow has responded to a request that was sent since. Another connection's responses go to another QP, so then the peer flow does not respond.

// check checks a packet of a flow that has a peer flow.
func (s *subject) check(m link, peer *Slot) {
	if s.p.Opcode.Role() == packet.Response {
		s.checkResponse(m, peer)
	} else {
		s.checkRequest(m, peer)
	}
}

func (s *subject) checkRequest(m link, peer *Slot) {
	n, psn := s.n, s.p.PSN
	s.forgetAsked()
	begins := s.t.flags&sends == 0
	switch s.fit(s.ofService() && (begins || s.within(psn)), requestsApart) {
	case unexpected:
		s.suspend()
		return
	case another:
		if !s.gap() {
			s.anotherConnection()
			return
		}
		s.await((psn-1)&psnMask, sentBy(peer, m))
	}
	ack, sent := acksOf(peer, m), sentBy(peer, m)
	goesBack := !begins && !atMost(s.t.last&psnMask, psn)
	moved := s.p.SrcPort != s.t.port && s.changePort()
	switch {
	case moved && s.t.flags&unreliable != 0: // UC has no responses
		s.anotherConnection()
		return
	case moved:
		s.await(n.high, sent)
	case m.ownPort() || n.awaits():
	case begins:
		s.await((psn-1)&psnMask, sent)
	case goesBack && ack.valid() && atMost(psn, ack.last()) && !peer.waitsFor(psn):
		s.await(n.high, sent)
	}
	s.noteRequest(s.resume(ack) || begins)
	switch {
	case s.silentFor(ack, 2):
		if !s.mapped(peer) {
			s.contradictPair()
		}
		return
	case !n.awaits() && s.silentFor(ack, 1) && !s.mapped(peer):
		s.await(n.high, sent)
	}
	if n.mark != 0 && ack.valid() && !atMost(ack.last(), n.mark) {
		n.mark, n.back, n.gap = 0, 0, 0
	}
	s.reconfirm(m)
}

// gap reports whether two packets in a row that are unexpected may belong to the same connection after a gap: RDMA-CM has confirmed
// the pair, and could not confirm it again, and the flow continues with the same UDP source port less than 2^16 PSNs ahead. Then the flow
// is suspended until its peer flow has responded to a request that was sent after the gap. By chance that happens with probability 2^-18. UC has
// no responses.
func (s *subject) gap() bool {
	const widest = 1 << 16
	n := s.n
	ahead := (s.p.PSN - n.high) & psnMask
	if s.answer().Evidence() != EvidenceCM || s.p.SrcPort != s.t.port || !s.ofService() || ahead >= widest || s.t.flags&unreliable != 0 {
		return false
	}
	if n.unexpected = 0; n.gap == 0 {
		n.gap, n.resumed = n.high|noteBit, 0
	}
	return true
}

// resume reports whether forged packets only looked like a gap: requests have continued at the PSNs before it, and the peer flow has responded
// to one of those. Then the current request has the highest PSN again, and the wait is over.
func (s *subject) resume(ack ackWord) bool {
	n := s.n
	before := n.gap & psnMask
	ahead, answered := (s.p.PSN-before)&psnMask, (ack.last()-before)&psnMask
	if n.gap == 0 || ahead <= uint32(n.resumed) || ahead > uint32(n.resumed)+maxGap {
		return false
	}
	n.resumed = uint16(min(ahead, 1<<16-1))
	if !ack.valid() || answered == 0 || answered > ahead {
		return false
	}
	n.top, n.high = s.p.PSN, s.p.PSN
	n.mark, n.back, n.gap = 0, 0, 0
	return true
}

// silentFor reports whether the peer flow is silent: the number of PSNs without a response is above a limit times a factor. The limit is
// 2^16, or four times the highest number of PSNs that were ever without a response before, if that is more. A READ counts one PSN until the next
// request shows how many it used.
func (s *subject) silentFor(ack ackWord, factor uint32) bool {
	const least = 1 << 16
	n := s.n
	if s.t.flags&unreliable != 0 || !ack.valid() {
		return false
	}
	if seen := ack.last() | noteBit; seen != n.ack {
		if onTheWay := (n.top - n.ack) & psnMask; n.ack != 0 && onTheWay < psnHalf {
			n.width = max(n.width, onTheWay)
		}
		n.ack = seen
	}
	onTheWay := (n.top - ack.last()) & psnMask
	return onTheWay < psnHalf && onTheWay > factor*max(4*n.width, least)
}

// mapped reports whether a map or a hint names this flow's QP as the source QP of the peer flow. Then no worker learns from the peer flow's packets,
// so its published PSNs are old and don't contradict the pair. This flow's own worker will soon apply the map, which names both.
func (s *subject) mapped(peer *Slot) bool {
	a, ok := s.l.pairing.answerOf(peer.owner())
	return ok && fixed(a) && a.Ended() == Open && a.SourceQP() == s.p.DestQP
}

func (s *subject) checkResponse(m link, peer *Slot) {
	n, psn := s.n, s.p.PSN
	sent := sentBy(peer, m)
	of := s.ofService()
	expected := of && sent.valid() && (psn-sent.first()+firstSlack)&psnMask <= sent.width()+firstSlack+margin
	fit := s.fit(expected, responsesApart)
	if fit != fits && of && s.mapped(peer) {
		return
	}
	switch fit {
	case unexpected:
		s.suspend()
		return
	case another:
		if of {
			s.contradictPair()
		} else {
			s.anotherConnection()
		}
		return
	}
	ack := ackWord(s.pl.p.ack[s.pl.k].Load())
	ahead := (psn - ack.last()) & psnMask
	fresh := !ack.valid() || ahead < psnHalf
	moved := s.p.SrcPort != s.t.port && s.changePort()
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
	s.reconfirm(m)
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
func (pl *Slot) waitsFor(psn uint32) bool {
	for i := range pl.p.next[pl.k] {
		if w := pl.p.next[pl.k][i].Load(); w != 0 && (psn-w)&psnMask <= nextSlack {
			return true
		}
	}
	return false
}

// await suspends the flow until a response is seen: its peer flow's to a PSN beyond the given one, if the flow sends requests, or its own to a
// PSN beyond what the peer flow has sent.
func (s *subject) await(beyond uint32, sent sentWord) {
	s.n.mark, s.n.back = 0, 0
	if s.p.Opcode.Role() != packet.Response || s.t.flags&sends != 0 {
		s.n.mark = beyond&psnMask | noteBit
	}
	if sent.valid() {
		s.n.back = sent.high() | noteBit
	}
	s.suspend()
}

// awaits reports whether the flow waits for a response.
func (n *note) awaits() bool { return n.mark != 0 || n.back != 0 }

// suspend makes the source QP a candidate, so that no notification names it. The pair stays.
func (s *subject) suspend() {
	if s.answer().State() != Confirmed {
		return
	}
	s.change(func(a Answer) Answer {
		if a.State() == Confirmed && a.Ended() == Open && !fixed(a) {
			return makeAnswer(a.SourceQP(), Candidate, a.Evidence())
		}
		return a
	})
}

// reconfirm confirms again the source QP that suspension has made a candidate, unless the flow still waits for a response. Another worker may have
// withdrawn the pair meanwhile, and the present candidate may come from a forged CNP. So the answer must have the same QP and evidence as
// when the packet came, and the flow must still have the peer flow m.
func (s *subject) reconfirm(m link) {
	if s.n.awaits() || s.answer().State() != Candidate {
		return
	}
	s.change(func(a Answer) Answer {
		same := a.SourceQP() == s.saw.SourceQP() && a.Evidence() == s.saw.Evidence() && a.Evidence() != EvidenceCNP
		if same && a.State() == Candidate && a.Ended() == Open && link(s.pl.p.peer[s.pl.k].Load()).sharedPort() == m.sharedPort() {
			return makeAnswer(a.SourceQP(), Confirmed, a.Evidence())
		}
		return a
	})
}

// anotherConnection handles a flow whose destination QP serves another connection now. It ends the flow record, begins a new one, and
// withdraws the peer flow's source QP.
func (s *subject) anotherConnection() {
	s.suspend() // without budget or lock, the next packet does the rest
	l := s.l
	if !s.compare(s.pl.own() + s.pl.others()) {
		return
	}
	l.counts.Reuses++
	l.dirty = true
	if s.answer().Evidence() == EvidenceCM {
		l.forgetClaims(&s.pl, &s.peer)
	}
	if peer, ok := l.pairing.unlink(&s.pl); ok {
		l.pairing.release(&peer)
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
		s.countPackets()
		s.learn()
	}
}

// contradictPair withdraws a pair because the flow's responses are to PSNs that the peer flow has not sent. The current packet may be another
// connection's. The pair can be confirmed again, with more evidence than before.
func (s *subject) contradictPair() {
	s.suspend() // without budget or lock, the next packet does the rest
	l := s.l
	if !s.compare(s.pl.own() + s.pl.others()) {
		return
	}
	defer s.pl.g.lock.release()
	l.counts.Contradictions++
	l.dirty = true
	if s.answer().Evidence() == EvidenceCM && s.p.SrcPort != s.t.port {
		l.forgetClaims(&s.pl, &s.peer)
		s.pl.p.claimed[s.pl.k] = 0
	}
	l.pairing.contradict(&s.pl)
	s.forgetAsked()
	*s.n = note{first: s.n.first, top: s.n.top, high: s.n.high, began: milliseconds(s.now), took: s.n.took, lease: s.n.lease}
	s.t.acked, s.t.port = 0, s.p.SrcPort
	s.pl.p.id[s.pl.k] = s.identity()
	s.restartPace()
}

// peerGone handles a flow whose peer flow no longer has its slot: then the flow's packets can't be compared with anything.
func (s *subject) peerGone(m link) {
	s.pl.p.peer[s.pl.k].CompareAndSwap(uint64(m), 0)
	s.n.mark, s.n.back, s.n.unexpected = 0, 0, 0
	s.t.acked = 0
	s.change(func(a Answer) Answer {
		if a.Ended() == Open && !fixed(a) {
			return 0
		}
		return a
	})
	s.restartPace()
}
