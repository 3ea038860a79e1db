package synth

// requester is the half of a QP that sends requests. PSNs count on beyond 24 bits here.
type requester struct {
	una, nxt, end, high uint32 // oldest unacknowledged; next to send; one past what is posted, and past what was ever sent
	ring                [window]message
	head, count, cur    int // of ring: the oldest message, how many, and which of them nxt lies in (from head)
	posted              int
	due                 int64 // when the next message is posted, ns
	wake                int64 // when depart is to be called, if armed, ns
	hold                int64 // an RNR NAK forbids to send before, ns
	mark                uint32
	tries               int
	backAt              uint64 // una + 1 when the requester went back on its own, not told by a NAK; 0: not
	sends, ready, armed bool
	timing, dead        bool
}

func (s *requester) message(i int) *message { return &s.ring[(s.head+i)%window] }

func (t *Traffic) armDepart(l *live, end End, at int64) {
	s := &l.sides[end]
	at = max(at, t.now)
	if !s.armed || at < s.wake { // the later timer finds that it isn't the one any more
		s.armed, s.wake = true, at
		t.queue.push(at, taskDepart, t.whose(l, end))
	}
}

// depart sends the next packet of a requester, if there is one that may be sent.
func (t *Traffic) depart(l *live, end End) {
	s := &l.sides[end]
	if !s.armed || s.wake != t.now {
		return
	}
	s.armed = false
	if s.dead || !s.ready {
		return
	}
	if s.hold > t.now {
		t.armDepart(l, end, s.hold)
		return
	}
	if s.nxt == s.end && !t.post(l, end) {
		return
	}
	m := s.message(s.cur)
	span := uint32(1)
	if m.kind == read {
		span = m.first + m.n - s.nxt
	}
	outstanding := s.nxt - s.una
	if outstanding > 0 && outstanding+span > uint32(t.c.Window) {
		return // the next acknowledgement goes on
	}
	t.sendRequest(l, end, m, span)
	s.nxt += span
	s.high = max(s.high, s.nxt)
	if s.nxt == m.first+m.n {
		s.cur++
	}
	if l.kind == UC || l.kind == UD {
		s.release(s.nxt)
		t.doneIfDone(l)
	} else if !s.timing {
		s.timing, s.mark, s.tries = true, s.una, 0
		t.queue.push(t.now+t.c.Timeouts.Requester, taskTimeout, t.whose(l, end))
	}
	t.armDepart(l, end, t.now+t.c.Gap)
}

// post adds the next message, if its time has come and there is room; else it sees to it that this is asked again.
func (t *Traffic) post(l *live, end End) bool {
	s := &l.sides[end]
	if s.posted == t.c.Messages || s.count == window {
		return false
	}
	if s.due > t.now {
		t.armDepart(l, end, s.due)
		return false
	}
	m := t.newMessage(l, &s.requester)
	*s.message(s.count) = m
	s.count++
	s.end += m.n
	s.posted++
	s.due = t.nextDue(l, s.due) // without jitter, which doesn't add up
	if t.c.Jitter > 0 {
		s.hold = t.now + l.rng.upTo(t.c.Jitter)
		if s.hold > t.now {
			t.armDepart(l, end, s.hold)
			return false
		}
	}
	return true
}

func (t *Traffic) sendRequest(l *live, end End, m *message, span uint32) {
	s := &l.sides[end]
	offset, mtu := s.nxt-m.first, uint32(t.c.MTU)
	left := m.octets - offset*mtu
	f := flight{conn: l.id, to: l.id, from: end, psn: s.nxt, span: span, number: m.number, kind: m.kind, left: left,
		op: highBits[l.kind] | m.kind.opcode(offset, m.n), resent: s.nxt < s.high, ecn: t.c.ecn(), dscp: t.c.DSCP,
		first: offset == 0, last: m.kind.answered() || offset+1 == m.n}
	switch {
	case m.kind == atomic || m.kind == read:
	case l.kind == UD:
		f.octets = uint16(left)
		f.to = t.datagram[l.rng.below(uint64(len(t.datagram)))]
		if t.live[f.to] == nil || !t.sameTenant(f.to, l.id) {
			f.to = l.id
		}
	default:
		f.octets = uint16(min(left, mtu))
	}
	if l.kind == RC || l.kind == XRC {
		full := t.c.AckFull == AckIfFull && s.nxt+span-s.una >= uint32(t.c.Window)
		f.ackReq = f.last || full || t.c.AckEvery > 0 && (offset+1)%uint32(t.c.AckEvery) == 0
	}
	t.launch(l, f)
}

// advance takes all before limit as acknowledged, up to a READ or atomic that is yet to be answered: then it tells that
// responses are missing.
func (s *requester) advance(limit uint32) (missing bool) {
	for s.count > 0 && s.una < limit {
		m := s.message(0)
		if m.kind.answered() {
			return true
		}
		s.release(min(m.first+m.n, limit))
	}
	return false
}

// release moves una on, within the oldest message.
func (s *requester) release(una uint32) {
	s.una = una
	if m := s.message(0); una == m.first+m.n {
		s.head = (s.head + 1) % window
		s.count--
		s.cur = max(0, s.cur-1)
	}
	if s.nxt < s.una {
		s.nxt, s.cur = s.una, 0
	}
	s.backAt = 0
}

// goBack sends again all from the oldest unacknowledged packet on.
func (s *requester) goBack() { s.nxt, s.cur = s.una, 0 }

// acknowledged takes a response.
func (t *Traffic) acknowledged(l *live, end End, f *flight) {
	s := &l.sides[end]
	if s.dead || f.psn >= s.high {
		return
	}
	missing, before := false, s.una
	switch {
	case f.kind == ack && f.syndrome>>5 == 0:
		missing = s.advance(f.psn + 1)
	case f.kind == ack && f.psn < s.una: // an old NAK
		return
	case f.kind == ack: // it has all before and wants this PSN
		s.advance(f.psn)
		s.goBack()
		if f.syndrome>>5 == rnrNAK {
			s.hold = t.now + rnrTime
		}
	default:
		if missing = s.advance(f.psn); !missing && s.una == f.psn && s.count > 0 && s.message(0).kind.answered() {
			s.release(f.psn + 1)
		}
		missing = missing || s.una < f.psn
	}
	if s.una != before {
		s.tries = 0
	}
	if missing && s.backAt != uint64(s.una)+1 {
		s.backAt = uint64(s.una) + 1
		s.goBack()
	}
	t.armDepart(l, end, t.now)
	t.doneIfDone(l)
}

// timeout sends again if nothing came since the last one, and gives up after some of them.
func (t *Traffic) timeout(l *live, end End) {
	s := &l.sides[end]
	s.timing = false
	if s.dead || s.una == s.high {
		return
	}
	if s.mark == s.una && s.hold <= t.now {
		if s.tries++; s.tries > t.c.Timeouts.Retries {
			t.fail(l)
			return
		}
		s.goBack()
		t.armDepart(l, end, t.now)
	}
	s.mark = s.una
	s.timing = true
	t.queue.push(t.now+t.c.Timeouts.Requester, taskTimeout, t.whose(l, end))
}

func (s *settings) ecn() uint8 {
	if s.NotECT {
		return 0
	}
	return 2
}
