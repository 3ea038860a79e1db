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
func (t *Traffic) requested(l *live, end End, f *flight) {
	s := &l.sides[end]
	r, ok := transport.RequestOf(l.service, f.op)
	if s.dead || !ok || l.kind == UC || l.kind == UD {
		return
	}
	r.PSN, r.Bytes, r.AckReq = f.psn, f.left, f.ackReq
	if s.responder.Expects(f.psn) && receives(f.op) && t.unready(l, s) {
		s.responder.NotReady(t.now)
	} else {
		s.responder.Request(t.now, &r)
	}
	if s.responder.Coalescing() && !s.flushing {
		s.flushing = true
		t.queue.push(t.now+t.c.Delay[0]+t.c.Delay[1], taskFlush, t.whose(l, end))
	}
	t.armRespond(l, end, t.c.AckDelay)
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
func (t *Traffic) unready(l *live, s *side) bool {
	switch s.responder.Refused() {
	case 0:
		return l.rng.hit(t.c.rnr)
	case transport.SyndromeRNR:
		return l.rng.hit(t.c.rnrAgain)
	}
	return false
}

// flush acknowledges the requests that have waited long enough.
func (t *Traffic) flush(l *live, end End) {
	s := &l.sides[end]
	s.flushing = false
	s.responder.Flush()
	t.armRespond(l, end, t.c.AckDelay)
}

// armRespond schedules the responder after a delay, if it has anything to send.
func (t *Traffic) armRespond(l *live, end End, delay int64) {
	s := &l.sides[end]
	if !s.dead && !s.busy && (s.responder.Answers() || s.responder.Acknowledges()) {
		s.busy = true
		t.queue.push(t.now+delay, taskRespond, t.whose(l, end))
	}
}

// respond sends the next response.
func (t *Traffic) respond(l *live, end End) {
	s := &l.sides[end]
	s.busy = false
	if s.dead {
		return
	}
	f := flight{conn: l.id, to: l.id, from: end, ecn: t.c.ecn(), dscp: t.c.DSCP}
	gap := int64(1)
	var p transport.Response
	switch {
	case s.responder.Answers():
		p, f.kind = s.responder.Answer(), answer
		gap = t.c.Gap
	case s.responder.Acknowledges():
		p, f.kind = s.responder.Acknowledgement(), ack
	default:
		return
	}
	f.op, f.psn, f.aeth, f.octets, f.number = p.Opcode, p.PSN, p.AETH, uint16(p.Payload), p.AETH.MSN
	t.launch(l, f)
	t.armRespond(l, end, gap)
}
