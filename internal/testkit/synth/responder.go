package synth

import (
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/transport"
)

// answerer is the timing of an end's responder.
type answerer struct {
	busy     bool // a response is scheduled
	flushing bool // requests wait to be acknowledged together with later ones
}

// requested processes a request.
func (s *side) requested(f *flight) {
	r, ok := transport.RequestOf(s.l.service, f.op)
	if s.dead || !ok || s.l.service == UC || s.l.service == UD {
		return
	}
	r.PSN, r.Bytes, r.AckReq = f.psn, f.left, f.ackReq
	if s.responder.Expects(f.psn) && receives(f.op) && s.unready() {
		s.responder.NotReady(s.t.now)
	} else {
		s.responder.Request(s.t.now, &r)
	}
	if s.responder.Coalescing() && !s.flushing {
		s.flushing = true
		s.t.queue.push(s.t.now+s.t.c.Delay[0]+s.t.c.Delay[1], taskFlush, s.subject())
	}
	s.armRespond(ackDelay)
}

// receives reports whether a packet uses a receive buffer.
func receives(op packet.Opcode) bool {
	switch op & 0x1f {
	case packet.RCSendFirst, packet.RCSendOnly, packet.RCSendOnlyImm:
		return true
	}
	return false
}

// unready reports whether a SEND finds no receive buffer.
func (s *side) unready() bool {
	switch s.responder.Refused() {
	case 0:
		return s.l.rng.hit(s.t.c.RNR)
	case transport.SyndromeRNR:
		return s.l.rng.hit(s.t.c.NAKs.RNRAgain)
	}
	return false
}

// flush acknowledges the requests that have waited long enough.
func (s *side) flush() {
	s.flushing = false
	s.responder.Flush()
	s.armRespond(ackDelay)
}

// armRespond schedules the responder after a delay, if it has anything to send.
func (s *side) armRespond(delay int64) {
	if !s.dead && !s.busy && (s.responder.Answers() || s.responder.Acknowledges()) {
		s.busy = true
		s.t.queue.push(s.t.now+delay, taskRespond, s.subject())
	}
}

// respond sends the next response.
func (s *side) respond() {
	s.busy = false
	if s.dead {
		return
	}
	f := flight{conn: s.l.id, to: s.l.id, from: s.end, ecn: s.t.c.ecn(), dscp: dataDSCP}
	gap := int64(1)
	var p transport.Response
	switch {
	case s.responder.Answers():
		p, f.kind = s.responder.Answer(), answer
		gap = s.t.c.Gap
	case s.responder.Acknowledges():
		p, f.kind = s.responder.Acknowledgement(), ack
	default:
		return
	}
	f.op, f.psn, f.aeth, f.octets, f.number = p.Opcode, p.PSN, p.AETH, uint16(p.Payload), p.AETH.MSN
	s.t.launch(s.l, f)
	s.armRespond(gap)
}
