package synth

import "github.com/cnpgate/cnpgate/internal/transport"

// sender is an end's schedule: when it posts messages, and when its requester sends the next packet.
type sender struct {
	posted              int
	due                 int64 // when the next message is posted, ns
	late                int64 // Config.Jitter: nothing is sent before this time, ns
	wake                int64 // when depart is to be called, if armed, ns
	sends, ready, armed bool
	timing              bool
}

func (t *Traffic) armDepart(l *live, end End, at int64) {
	s := &l.sides[end]
	at = max(at, t.now)
	if !s.armed || at < s.wake { // the later timer checks s.wake and does nothing
		s.armed, s.wake = true, at
		t.queue.push(at, taskDepart, t.whose(l, end))
	}
}

// depart sends a requester's next packet, if one may be sent.
func (t *Traffic) depart(l *live, end End) {
	s := &l.sides[end]
	if !s.armed || s.wake != t.now {
		return
	}
	s.armed = false
	if s.dead || !s.ready {
		return
	}
	if hold := max(s.late, s.requester.HeldUntil()); hold > t.now {
		t.armDepart(l, end, hold)
		return
	}
	if s.requester.Idle() && !t.post(l, end) {
		return
	}
	limit := uint64(t.c.Window)
	if !s.requester.Ready(t.now, limit) {
		return // the next acknowledgement resumes sending
	}
	p := s.requester.Send(t.now, limit)
	t.sendRequest(l, end, &p)
	if s.requester.Done() {
		t.doneIfDone(l)
	} else if !s.timing {
		s.timing = true
		t.queue.push(t.now+t.c.Timeouts.Requester, taskTimeout, t.whose(l, end))
	}
	t.armDepart(l, end, t.now+t.c.Gap)
}

// post adds the next message, if its time has come and there is room; else it schedules another attempt.
func (t *Traffic) post(l *live, end End) bool {
	s := &l.sides[end]
	if s.posted == t.c.Messages || s.requester.Posted() == window {
		return false
	}
	if s.due > t.now {
		t.armDepart(l, end, s.due)
		return false
	}
	s.requester.Post(t.newMessage(l, s.posted))
	s.posted++
	s.due = t.nextDue(l, s.due) // without jitter, which doesn't accumulate
	if t.c.Jitter > 0 {
		s.late = t.now + l.rng.upTo(t.c.Jitter)
		if s.late > t.now {
			t.armDepart(l, end, s.late)
			return false
		}
	}
	return true
}

func (t *Traffic) sendRequest(l *live, end End, p *transport.Packet) {
	f := flight{conn: l.id, to: l.id, from: end, psn: p.PSN, number: p.Number, kind: request, left: p.Left, octets: uint16(p.Payload),
		op: p.Opcode, resent: p.Resent, ackReq: p.AckReq, ecn: t.c.ecn(), dscp: t.c.DSCP}
	if l.kind == UD {
		f.to = t.datagram[l.rng.below(uint64(len(t.datagram)))]
		if t.live[f.to] == nil || !t.sameTenant(f.to, l.id) {
			f.to = l.id
		}
	}
	t.launch(l, f)
}

// acknowledged processes a response.
func (t *Traffic) acknowledged(l *live, end End, f *flight) {
	s := &l.sides[end]
	switch {
	case s.dead:
		return
	case f.kind == answer:
		s.requester.Answer(t.now, f.psn)
	case s.requester.Acknowledge(t.now, f.psn, f.aeth):
		t.fail(l)
		return
	}
	t.armDepart(l, end, t.now)
	t.doneIfDone(l)
}

// timeout retransmits if nothing was acknowledged for the time-out, and fails the connection after some time-outs. As in a NIC with a
// coarse timer, it takes effect after one to two time-outs.
func (t *Traffic) timeout(l *live, end End) {
	s := &l.sides[end]
	s.timing = false
	if s.dead {
		return
	}
	next, failed := s.requester.Expire(t.now)
	switch {
	case failed:
		t.fail(l)
		return
	case next > 0:
		s.timing = true
		t.queue.push(t.now+t.c.Timeouts.Requester, taskTimeout, t.whose(l, end))
	}
	if !s.requester.Idle() {
		t.armDepart(l, end, t.now)
	}
}

func (s *settings) ecn() uint8 {
	if s.NotECT {
		return 0
	}
	return 2
}
