package pairing

import "github.com/cnpgate/cnpgate/internal/packet"

// catchUp updates the highest PSN with the requests that Routine has skipped.
func (s *subject) catchUp() {
	if s.t.flags&sends != 0 && s.t.last&inexact == 0 && atMost(s.n.top, s.t.last) {
		s.n.top, s.n.high = s.t.last, s.t.last
	}
}

const (
	// readsAhead is the maximum number of outstanding READs of a requester on common NICs. widestRead bounds the PSNs that each of them
	// counts.
	readsAhead = 16
	widestRead = 1 << 15
)

// noteRequest records the PSNs that a request uses, and publishes them for the other side's workers. Unless exactly is set, it publishes a
// highest PSN only once in 16 (coarse) PSNs.
func (s *subject) noteRequest(exactly bool) {
	n, psn := s.n, s.p.PSN
	span := uint32(0)
	if s.p.Opcode.Role() == packet.ReadRequest {
		span = readSpan(s.p, s.b)
	}
	before := n.high
	switch {
	case s.t.flags&sends == 0:
		s.t.flags |= sends
		n.first, n.top, n.high = psn, psn, (psn+span)&psnMask
		exactly = true
	case (n.first-psn)&psnMask <= firstSlack && psn != n.first:
		n.first = psn
		exactly = true
	case atMost(n.top, psn): // so all earlier requests end before it, also a READ that might have used more PSNs
		if n.high != n.top { // this many READs may be outstanding, and their PSNs don't show that the peer flow is silent
			n.width = max(n.width, readsAhead/4*min((psn-n.top)&psnMask, widestRead))
		}
		n.top, n.high = psn, (psn+span)&psnMask
	}
	if (n.top-n.first)&psnMask > maxSpan {
		n.first = (n.top - maxSpan) & psnMask
	}
	s.t.last = psn
	if span != 0 {
		s.t.last |= inexact
	}
	if exactly || before/coarse != n.high/coarse {
		publish(&s.pl.p.sent[s.pl.k], n.lease, uint64(makeSent(n.first, n.high, n.lease)))
	}
}

// readSpan is the number of PSNs that a READ request uses beyond its own: one for each packet of the response. Their number is not known,
// so readSpan assumes the smallest path MTU.
func readSpan(p *packet.Parsed, b []byte) uint32 {
	at := p.Ext() + p.Opcode.Offset(packet.HasRETH)
	if at+packet.RETHLen > len(b) {
		return 0
	}
	const smallestMTU = 256
	bytes := uint64(packet.DecodeRETH(b[at:]).DMALength)
	return uint32(min((max(bytes, 1)-1)/smallestMTU, maxSpan))
}

// asksForACK reports whether a request has the AckReq bit (IBTA 9.2.13).
func asksForACK(p *packet.Parsed, b []byte) bool {
	at := int(p.BTH) + 8
	return at < len(b) && b[at]&0x80 != 0
}

// isACK reports whether a response is a positive acknowledgement and nothing else.
func isACK(p *packet.Parsed, b []byte) bool {
	at := p.Ext()
	return acknowledges(p) && at < len(b) && b[at]>>5 == 0
}

// acknowledges reports whether a response is an ACK or a NAK and nothing else. (READ and atomic responses may be sent again.)
func acknowledges(p *packet.Parsed) bool {
	return p.Opcode.Headers() == packet.HasAETH && !p.Opcode.HasPayload()
}
