package synth

// The responder's syndromes (IBTA 9.7.5.1.3).
const (
	syndromeACK = 0x1f // no end-to-end credits
	syndromeNAK = 0x60 // PSN sequence error
	syndromeRNR = 0x20 | rnrTimer
	rnrTimer    = 0x01
	rnrNAK      = 1      // the syndrome's three high bits
	rnrTime     = 10_000 // ns, what rnrTimer says (IBTA table 46)
)

// Kinds of packets that are no requests.
const (
	ack    kind = kinds + iota
	answer      // READ response, ATOMIC Acknowledge
	cnp
	mad
)

// job is a response that a responder owes. Responses leave in the order of the requests.
type job struct {
	what            kind // ack, read or atomic
	syndrome        uint8
	psn, n, off     uint32
	msn             uint32
	octets, message uint32
}

const jobs = 32

// responder is the half of a QP that answers requests.
type responder struct {
	expect, msn uint32 // the next PSN, counted on beyond 24 bits; completed messages
	pending     int    // AckReqs not yet answered
	owed        [jobs]job
	first, owes int // of owed
	busy        bool
	flushing    bool
	naked       bool // a NAK is out: silence until what it asks for comes
	refused     bool // that was an RNR NAK
}

// requested takes a request.
func (t *Traffic) requested(l *live, end End, f *flight) {
	s := &l.sides[end]
	switch {
	case s.dead || l.kind == UC || l.kind == UD:
	case f.psn > s.expect:
		if !s.naked || t.c.NAKs.Every {
			s.naked = t.owe(l, end, job{what: ack, syndrome: syndromeNAK, psn: s.expect, msn: s.msn})
		}
	case f.psn < s.expect:
		t.requestedAgain(l, end, f)
	case s.owes >= jobs-1: // as if lost: the requester asks again
	case f.first && (f.kind == send || f.kind == sendImm) && t.unready(l, s):
		s.naked, s.refused = true, true
		t.owe(l, end, job{what: ack, syndrome: syndromeRNR, psn: s.expect, msn: s.msn})
	default:
		t.execute(l, end, f)
	}
}

// unready tells whether a SEND finds no receive buffer.
func (t *Traffic) unready(l *live, s *side) bool {
	if s.naked {
		return s.refused && l.rng.hit(t.c.rnrAgain)
	}
	return l.rng.hit(t.c.rnr)
}

// execute takes the request that is in order.
func (t *Traffic) execute(l *live, end End, f *flight) {
	s := &l.sides[end]
	s.naked, s.refused = false, false
	s.expect += f.span
	if f.last {
		s.msn++
	}
	switch {
	case f.kind.answered():
		s.pending = 0 // its response acknowledges what was before
		t.owe(l, end, job{what: f.kind, psn: f.psn, n: f.span, msn: s.msn, octets: f.left, message: f.number})
	case f.ackReq:
		if s.pending++; s.pending >= t.c.Coalesce {
			t.acknowledge(l, end)
		} else if !s.flushing {
			s.flushing = true
			t.queue.push(t.now+t.c.Delay[0]+t.c.Delay[1], taskFlush, t.whose(l, end))
		}
	}
}

// requestedAgain takes a request that it has executed already. Soft-RoCE acknowledges each such packet, AckReq or not.
func (t *Traffic) requestedAgain(l *live, end End, f *flight) {
	if f.kind.answered() {
		t.owe(l, end, job{what: f.kind, psn: f.psn, n: f.span, msn: f.number + 1, octets: f.left, message: f.number})
		return
	}
	t.acknowledge(l, end)
}

func (t *Traffic) acknowledge(l *live, end End) {
	s := &l.sides[end]
	s.pending = 0
	t.owe(l, end, job{what: ack, syndrome: syndromeACK, psn: s.expect - 1, msn: s.msn})
}

// flush acknowledges what has waited for long enough.
func (t *Traffic) flush(l *live, end End) {
	s := &l.sides[end]
	s.flushing = false
	if s.pending > 0 && !s.dead {
		t.acknowledge(l, end)
	}
}

// owe queues a response; an ACK takes the place of one that is still waiting.
func (t *Traffic) owe(l *live, end End, j job) bool {
	s := &l.sides[end]
	if s.owes > 0 && j.what == ack && j.syndrome == syndromeACK {
		if last := &s.owed[(s.first+s.owes-1)%jobs]; last.what == ack && last.syndrome == syndromeACK {
			*last = j
			return true
		}
	}
	if s.owes == jobs {
		return false
	}
	s.owed[(s.first+s.owes)%jobs] = j
	s.owes++
	if !s.busy {
		s.busy = true
		t.queue.push(t.now+t.c.AckDelay, taskRespond, t.whose(l, end))
	}
	return true
}

// respond sends the next response.
func (t *Traffic) respond(l *live, end End) {
	s := &l.sides[end]
	s.busy = false
	if s.dead || s.owes == 0 {
		return
	}
	j := &s.owed[s.first%jobs]
	f := flight{conn: l.id, to: l.id, from: end, psn: j.psn, kind: ack, msn: j.msn, syndrome: j.syndrome, number: j.message,
		op: highBits[l.kind] | 0x11, ecn: t.c.ecn(), dscp: t.c.DSCP}
	if j.what == ack {
		f.number = j.msn
	}
	gap := int64(1)
	done := true
	switch j.what {
	case atomic:
		f.kind, f.op, f.syndrome = answer, highBits[l.kind]|0x12, syndromeACK
	case read:
		mtu := uint32(t.c.MTU)
		f.kind, f.op, f.syndrome = answer, highBits[l.kind]|readResponse(j.off, j.n), syndromeACK
		f.psn += j.off
		f.octets = uint16(min(mtu, j.octets-j.off*mtu))
		j.off++
		done = j.off == j.n
		gap = t.c.Gap
	}
	if done {
		s.first = (s.first + 1) % jobs
		s.owes--
	}
	t.launch(l, f)
	if s.owes > 0 {
		s.busy = true
		t.queue.push(t.now+gap, taskRespond, t.whose(l, end))
	}
}
