package pairing

import "github.com/cnpgate/cnpgate/internal/packet"

// fit classifies how a packet fits its flow.
type fit uint8

const (
	fits       fit = iota // the connection can have sent it
	unexpected            // unexpected; the packet before it was not, or does not go with it
	another               // the second one in a row unexpected, and it goes with the first: both are another connection's
)

const (
	// Two packets unexpected go together if they are at most this many PSNs apart.
	requestsApart  = 1 << 10
	responsesApart = 1 << 12
)

// fit compares the current packet with its flow. own: the flow may use the packet's PSN.
func (s *subject) fit(own bool, apart uint32) fit {
	n, p := s.n, s.p
	if p.SrcPort != s.t.port && link(s.pl.p.peer[s.pl.k].Load()).ownPort() {
		own = false // the port results from the connection's QPs, so it never changes
	}
	if own && (p.SrcPort == s.t.port || !s.steady()) {
		n.unexpected = 0
		return fits
	}
	again := n.unexpected != 0
	together := (p.PSN-n.unexpected+apart)&psnMask <= 2*apart && n.unexpectedPort == p.SrcPort
	n.unexpected, n.unexpectedPort = p.PSN|noteBit, p.SrcPort
	switch {
	case again && together:
		return another
	case again && own: // a third UDP source port in a row: this sender changes its port all the time
		n.unexpected = 0
		return fits
	}
	return unexpected
}

const (
	steadyPackets  = 64 // packets in a row with one UDP source port, after which the port is steady
	maxPortChanges = 3  // changes of the port that count; each one quadruples steadyPackets
)

// steady reports whether the flow has had its UDP source port long enough for another port to mean another connection.
func (s *subject) steady() bool {
	since := s.t.packets
	if s.n.moved != 0 {
		since = (s.t.packets - s.n.moved) &^ noteBit
	}
	return since >= steadyPackets<<(2*s.n.portChanges)
}

// changePort records that the flow's UDP source port has changed. From then on the port doesn't distinguish the flow's connection from
// others. It reports whether the change is unusual: it is until the port has changed maxPortChanges times.
func (s *subject) changePort() (unusual bool) {
	unusual = s.n.portChanges < maxPortChanges
	s.notePort()
	if s.lockGroup() {
		s.pl.p.id[s.pl.k] = s.identity()
		s.pl.g.lock.release()
	}
	return unusual
}

// notePort records the port of the current packet as the flow's. If another flow has the slot by now, that flow is only checked more
// strictly.
func (s *subject) notePort() {
	s.n.moved = s.t.packets | noteBit
	s.t.port = s.p.SrcPort
	s.n.portChanges = min(s.n.portChanges+1, maxPortChanges)
	w := &s.pl.p.peer[s.pl.k]
	if m := link(w.Load()); m.ownPort() {
		w.CompareAndSwap(uint64(m), uint64(m.sharedPort()))
	}
}

// identity is the flow's identity with its present UDP source port.
func (s *subject) identity() identity {
	return makeIdentity(s.p.DestQP, s.t.port, s.n.moved != 0 && !s.steady(), s.t.flags&unreliable != 0)
}

// within reports whether the flow's requests may use a PSN. A sender may go back to any PSN that it has used (maxSpan at most), but not skip
// more than maxGap. UC never retransmits, so its PSNs go back only by reordering.
func (s *subject) within(psn uint32) bool {
	const reordering = 1 << 10
	n := s.n
	if s.t.flags&unreliable != 0 && !atMost((n.high-reordering)&psnMask, psn) {
		return false
	}
	return (psn-n.first+firstSlack)&psnMask <= (n.high-n.first)&psnMask+firstSlack+maxGap
}

// noteService records whether the packet's transport service, and so the flow's, is UC.
func (s *subject) noteService() {
	s.t.flags &^= unreliable
	if isUC(s.p.Opcode) {
		s.t.flags |= unreliable
	}
}

// ofService reports whether the packet's transport service is the flow's (UC or not): a QP has only one service.
func (s *subject) ofService() bool { return isUC(s.p.Opcode) == (s.t.flags&unreliable != 0) }

func isUC(o packet.Opcode) bool { return o>>5 == packet.UCSendOnly>>5 }

// atMost reports whether PSN a is b or comes before it, modulo 2^24.
func atMost(a, b uint32) bool { return (b-a)&psnMask < psnHalf }
