package pairing

import (
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing/store"
)

// check compares a packet of a flow that has a peer flow with what the connection can send. A packet is expected if its UDP source port is the
// flow's, and its PSN is one that the connection may use. So retransmission is expected: a sender may go back to what it has sent. An
// unexpected packet may be the first one of another connection, or forged. If a second one comes, and goes with the first, both belong to
// another connection.
//
// Where the UDP source port doesn't distinguish connections, packets of a new connection may be expected. There a sender may go back only
// to a PSN that one of the peer flow's last responses waits for. If it goes back to another one that was acknowledged, the flow is
// suspended until its peer flow has responded to a request that was sent since. Another connection's responses go to another QP, so then
// the peer flow does not respond.
type check struct {
	*flow
	*arrival
	link store.Link
	peer store.Slot
	was  Answer // the flow's answer when the packet came
}

// packet checks the packet.
func (c *check) packet() {
	if c.Opcode.Role() == packet.Response {
		c.response()
	} else {
		c.request()
	}
}

func (c *check) request() {
	psn := c.PSN
	c.forgetAsked()
	begins := c.flags&sends == 0
	switch c.classify(c.arrival, c.ofService(c.arrival) && (begins || c.within(psn)), requestsApart) {
	case unexpected:
		c.suspend()
		return
	case another:
		if !c.isGap() {
			c.anotherConnection()
			return
		}
		c.await((psn-1)&packet.PSNMask, c.peer.SentBy(c.link.Lease()))
	}
	ack, sent := c.peer.AckBy(c.link.Lease()), c.peer.SentBy(c.link.Lease())
	goesBack := !begins && !packet.PSNAtMost(c.last&packet.PSNMask, psn)
	moved := c.SrcPort != c.port && c.changePort(c.arrival)
	switch {
	case moved && c.flags&unreliable != 0: // UC has no responses
		c.anotherConnection()
		return
	case moved:
		c.await(c.high, sent)
	case c.link.OwnPort() || c.awaits():
	case begins:
		c.await((psn-1)&packet.PSNMask, sent)
	case goesBack && ack.Valid() && packet.PSNAtMost(psn, ack.Last()) && !waitsFor(&c.peer.View, psn):
		c.await(c.high, sent)
	}
	c.noteRequest(c.arrival, c.resume(ack) || begins)
	switch {
	case c.silentFor(ack, 2):
		if !c.mapped() {
			c.contradictPair()
		}
		return
	case !c.awaits() && c.silentFor(ack, 1) && !c.mapped():
		c.await(c.high, sent)
	}
	if c.awaitPeer != 0 && ack.Valid() && !packet.PSNAtMost(ack.Last(), c.awaitPeer) {
		c.awaitPeer, c.awaitOwn, c.gap = 0, 0, 0
	}
	c.reconfirm()
}

// isGap reports whether two packets in a row that are unexpected may belong to the same connection after a gap: RDMA-CM has confirmed the
// pair, and could not confirm it again, and the flow continues with the same UDP source port less than 2^16 PSNs ahead. Then the flow is
// suspended until its peer flow has responded to a request that was sent after the gap. By chance that happens with probability 2^-18. UC
// has no responses.
func (c *check) isGap() bool {
	const widest = 1 << 16
	ahead := (c.PSN - c.high) & packet.PSNMask
	if c.answer().Evidence() != EvidenceCM || c.SrcPort != c.port || !c.ofService(c.arrival) || ahead >= widest || c.flags&unreliable != 0 {
		return false
	}
	if c.lastUnexpected = 0; c.gap == 0 {
		c.gap, c.resumed = c.high|noteBit, 0
	}
	return true
}

// resume reports whether forged packets only looked like a gap: requests have continued at the PSNs before it, and the peer flow has
// responded to one of those. Then the current request has the highest PSN again, and the wait is over.
func (c *check) resume(ack store.Ack) bool {
	before := c.gap & packet.PSNMask
	ahead, answered := (c.PSN-before)&packet.PSNMask, (ack.Last()-before)&packet.PSNMask
	if c.gap == 0 || ahead <= uint32(c.resumed) || ahead > uint32(c.resumed)+maxGap {
		return false
	}
	c.resumed = uint16(min(ahead, 1<<16-1))
	if !ack.Valid() || answered == 0 || answered > ahead {
		return false
	}
	c.top, c.high = c.PSN, c.PSN
	c.awaitPeer, c.awaitOwn, c.gap = 0, 0, 0
	return true
}

// silentFor reports whether the peer flow is silent: the number of PSNs without a response is above a limit times a factor. The limit is
// 2^16, or four times the highest number of PSNs that were ever without a response before, if that is more. A READ counts one PSN until the
// next request shows how many it used.
func (c *check) silentFor(ack store.Ack, factor uint32) bool {
	const least = 1 << 16
	if c.flags&unreliable != 0 || !ack.Valid() || c.l.pairing.isRemote(c.peer.Ref()) {
		return false
	}
	if seen := ack.Last() | noteBit; seen != c.peerAck {
		if onTheWay := (c.top - c.peerAck) & packet.PSNMask; c.peerAck != 0 && onTheWay < packet.PSNHalf {
			c.width = max(c.width, onTheWay)
		}
		c.peerAck = seen
	}
	onTheWay := (c.top - ack.Last()) & packet.PSNMask
	return onTheWay < packet.PSNHalf && onTheWay > factor*max(4*c.width, least)
}

// mapped reports whether a map or a hint names this flow's QP as the source QP of the peer flow. Then no worker learns from the peer flow's
// packets, so its published PSNs are old and don't contradict the pair. This flow's own worker will soon apply the map, which names both.
func (c *check) mapped() bool {
	a, ok := c.l.pairing.answers.of(c.peer.Ref())
	return ok && a.fixed() && a.Ended() == Open && a.SourceQP() == c.DestQP
}

func (c *check) response() {
	psn, sent := c.PSN, c.peer.SentBy(c.link.Lease())
	of := c.ofService(c.arrival)
	expected := of && sent.Valid() && (psn-sent.First()+firstSlack)&packet.PSNMask <= sent.Width()+firstSlack+margin
	expected = expected || of && c.l.pairing.isRemote(c.peer.Ref()) // whose PSNs come late; the port is the connection's own
	fit := c.classify(c.arrival, expected, responsesApart)
	if fit != fits && of && c.mapped() {
		return
	}
	switch fit {
	case unexpected:
		c.suspend()
		return
	case another:
		if of {
			c.contradictPair()
		} else {
			c.anotherConnection()
		}
		return
	}
	ack := c.slot.AckBy(c.lease)
	ahead := (psn - ack.Last()) & packet.PSNMask
	fresh := !ack.Valid() || ahead < packet.PSNHalf
	moved := c.SrcPort != c.port && c.changePort(c.arrival)
	switch {
	case moved:
		c.await(c.high, sent)
	case c.link.OwnPort() || c.awaits():
	case !fresh && ahead < packet.PSNMask-backMargin && acknowledges(c.arrival): // acknowledgements don't go back
		c.await(c.high, sent)
	}
	if !c.link.OwnPort() {
		c.noteNext(c.arrival)
	} else {
		c.acked = psn | ackedBit // also of one that goes back: those of a retransmission that follow it are routine again
	}
	if fresh {
		c.slot.PublishAck(c.lease, store.MakeAck(psn, c.lease))
		c.adopted()
		if c.awaitOwn != 0 && !packet.PSNAtMost(psn, c.awaitOwn) && packet.PSNAtMost(psn, sent.High()) {
			c.awaitPeer, c.awaitOwn = 0, 0
		}
	}
	c.reconfirm()
}

// adopted makes a pair that began as another gateway's word (Peers.Adopt) this one's own: both flows are seen here, their port is that of
// their QPs, and one has responded to the other.
func (c *check) adopted() {
	if c.was.Evidence() != EvidencePeer || c.l.pairing.isRemote(c.peer.Ref()) || !c.link.OwnPort() || !c.peer.SentBy(c.link.Lease()).Has(c.PSN) {
		return
	}
	c.l.confirm(c.l.ref(c.index), c.was.SourceQP(), EvidencePort)
	c.l.confirm(c.peer.Ref(), c.DestQP, EvidencePort)
}

// await suspends the flow until a response is seen: its peer flow's to a PSN beyond the given one, if the flow sends requests, or its own
// to a PSN beyond what the peer flow has sent.
func (c *check) await(beyond uint32, sent store.Sent) {
	c.awaitPeer, c.awaitOwn = 0, 0
	if c.Opcode.Role() != packet.Response || c.flags&sends != 0 {
		c.awaitPeer = beyond&packet.PSNMask | noteBit
	}
	if sent.Valid() {
		c.awaitOwn = sent.High() | noteBit
	}
	c.suspend()
}

// reconfirm confirms again the source QP that suspension has made a candidate, unless the flow still waits for a response. Another worker
// may have withdrawn the pair meanwhile, and the present candidate may come from a forged CNP. So the answer must have the same QP and
// evidence as when the packet came, and the flow must still have the same peer flow.
func (c *check) reconfirm() {
	if c.awaits() || c.answer().State() != Candidate {
		return
	}
	c.change(func(a Answer) Answer {
		same := a.SourceQP() == c.was.SourceQP() && a.Evidence() == c.was.Evidence() && a.Evidence() != EvidenceCNP
		if same && a.State() == Candidate && a.Ended() == Open && c.slot.Link().SharedPort() == c.link.SharedPort() {
			return makeAnswer(a.SourceQP(), Confirmed, a.Evidence())
		}
		return a
	})
}

// anotherConnection handles a flow whose destination QP serves another connection now. It ends the flow record, begins a new one, and
// withdraws the peer flow's source QP.
func (c *check) anotherConnection() {
	c.suspend() // without budget or lock, the next packet does the rest
	l := c.l
	if !c.compare(c.slot.Own() + c.slot.Others()) {
		return
	}
	l.counts.change().Reuses++
	if c.answer().Evidence() == EvidenceCM {
		c.forgetClaims()
	}
	if peer, ok := c.slot.Unpair(); ok { // if it continues, it gets another slot
		l.pairing.answers.withdraw(peer.Ref())
		peer.Vacate(peer.Ref())
	}
	c.unlock()
	c.change(func(a Answer) Answer { return a.closed(EndedReuse) })
	l.renew(c.index, c.arrival)
	if c.enter(c.arrival) {
		c.countPackets()
		c.learn(c.arrival)
	}
}

// contradictPair withdraws a pair because the flow's responses are to PSNs that the peer flow has not sent. The current packet may be
// another connection's. The pair can be confirmed again, with more evidence than before.
func (c *check) contradictPair() {
	c.suspend() // without budget or lock, the next packet does the rest
	l := c.l
	if !c.compare(c.slot.Own() + c.slot.Others()) {
		return
	}
	defer c.unlock()
	l.counts.change().Contradictions++
	if c.answer().Evidence() == EvidenceCM && c.SrcPort != c.port {
		c.forgetClaims()
		c.slot.SetClaim(0)
	}
	l.pairing.contradict(&c.slot)
	c.forgetAsked()
	*c.note = note{first: c.first, top: c.top, high: c.high, began: milliseconds(c.now), took: c.took, lease: c.lease}
	c.portChanges = 0
	c.acked, c.port = 0, c.SrcPort
	c.slot.SetIdentity(c.identity(c.DestQP))
	c.restartPace()
}

func (c *check) forgetClaims() {
	if !c.l.pairing.forgetClaims(&c.slot, &c.peer) {
		c.l.counts.skipped()
	}
}
