package synth

import (
	"math"
	"math/bits"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/transport"
)

// sender is an end's schedule: when it posts messages, and when its requester sends the next packet.
type sender struct {
	posted              int
	due                 int64 // when the next message is posted, ns
	late                int64 // Config.Jitter: nothing is sent before this time, ns
	wake                int64 // when depart is to be called, if armed, ns
	sends, ready, armed bool
	timing              bool
}

func (s *side) armDepart(at int64) {
	at = max(at, s.t.now)
	if !s.armed || at < s.wake { // the later timer checks s.wake and does nothing
		s.armed, s.wake = true, at
		s.t.queue.push(at, taskDepart, s.subject())
	}
}

// depart sends a requester's next packet, if one may be sent.
func (s *side) depart() {
	if !s.armed || s.wake != s.t.now {
		return
	}
	s.armed = false
	if s.dead || !s.ready {
		return
	}
	if hold := max(s.late, s.requester.HeldUntil()); hold > s.t.now {
		s.armDepart(hold)
		return
	}
	if s.requester.Idle() && !s.post() {
		return
	}
	limit := uint64(s.t.c.Window)
	if !s.requester.Ready(s.t.now, limit) {
		return // the next acknowledgement resumes sending
	}
	p := s.requester.Send(s.t.now, limit)
	s.sendRequest(&p)
	if s.requester.Done() {
		s.l.doneIfDone()
	} else if !s.timing {
		s.timing = true
		s.t.queue.push(s.t.now+s.t.c.Timeouts.Requester, taskTimeout, s.subject())
	}
	s.armDepart(s.t.now + s.t.c.Gap)
}

// post adds the next message, if its time has come and there is room; else it schedules another attempt.
func (s *side) post() bool {
	if s.posted == s.t.c.Messages || s.requester.Posted() == window {
		return false
	}
	if s.due > s.t.now {
		s.armDepart(s.due)
		return false
	}
	s.requester.Post(s.l.newMessage(s.posted))
	s.posted++
	s.due = s.l.nextDue(s.due) // without jitter, which doesn't accumulate
	if s.t.c.Jitter > 0 {
		s.late = s.t.now + s.l.rng.upTo(s.t.c.Jitter)
		if s.late > s.t.now {
			s.armDepart(s.late)
			return false
		}
	}
	return true
}

func (s *side) sendRequest(p *transport.Packet) {
	f := flight{conn: s.l.id, to: s.l.id, from: s.end, psn: p.PSN, number: p.Number, kind: request, left: p.Left, octets: uint16(p.Payload),
		op: p.Opcode, resent: p.Resent, ackReq: p.AckReq, ecn: s.t.c.ecn(), dscp: dataDSCP}
	if s.l.service == UD {
		f.to = s.t.datagram[s.l.rng.Below(uint64(len(s.t.datagram)))]
		if s.t.live[f.to] == nil || !s.t.sameTenant(f.to, s.l.id) {
			f.to = s.l.id
		}
	}
	s.t.launch(s.l, f)
}

// acknowledged processes a response.
func (s *side) acknowledged(f *flight) {
	switch {
	case s.dead:
		return
	case f.kind == answer:
		s.requester.Answer(s.t.now, f.psn)
	case s.requester.Acknowledge(s.t.now, f.psn, f.aeth):
		s.l.fail()
		return
	}
	s.armDepart(s.t.now)
	s.l.doneIfDone()
}

// timeout retransmits if nothing was acknowledged for the time-out, and fails the connection after some time-outs. As in a NIC with a
// coarse timer, it takes effect after one to two time-outs.
func (s *side) timeout() {
	s.timing = false
	if s.dead {
		return
	}
	next, failed := s.requester.Expire(s.t.now)
	switch {
	case failed:
		s.l.fail()
		return
	case next > 0:
		s.timing = true
		s.t.queue.push(s.t.now+s.t.c.Timeouts.Requester, taskTimeout, s.subject())
	}
	if !s.requester.Idle() {
		s.armDepart(s.t.now)
	}
}

func (c *Config) ecn() uint8 {
	if c.NotECT {
		return 0
	}
	return 2
}

// window is how many messages a requester may have outstanding.
const window = 16

// newMessage draws a requester's next message.
func (l *live) newMessage(number int) transport.Message {
	r := &l.rng
	var common rng
	if l.t.c.Schedule == Lockstep { // the same for all connections
		common = newRNG(l.t.c.Seed ^ uint64(number)<<8)
		r = &common
	}
	m := transport.Message{Number: uint32(number), Op: l.t.drawOp(l.service, r), Bytes: l.t.drawSize(r)}
	switch {
	case m.Op == transport.Atomic:
		m.Bytes = 8
	case l.service == UD:
		m.Bytes = min(m.Bytes, uint32(l.t.c.MTU))
	}
	return m
}

// ops are the operations in the order of Mix.
var ops = [...]transport.Op{transport.Send, transport.SendImm, transport.Write, transport.WriteImm, transport.Read, transport.Atomic}

func (t *Traffic) drawOp(tr transport.Service, r *rng) transport.Op {
	m := t.c.Mix
	op := ops[r.weighted([]int{m.Send, m.SendImm, m.Write, m.WriteImm, m.Read, m.Atomic})]
	switch {
	case tr == UD && op != transport.SendImm:
		return transport.Send
	case tr == UC && (op == transport.Read || op == transport.Atomic):
		return transport.Write
	}
	return op
}

// drawSize draws a number of bytes. Each range between powers of two has the same probability.
func (t *Traffic) drawSize(r *rng) uint32 {
	lo, hi := uint64(t.c.Sizes[0]), uint64(t.c.Sizes[1])
	if lo == hi {
		return uint32(lo)
	}
	least, most := bits.Len64(lo), bits.Len64(hi)
	n := least + int(r.Below(uint64(most-least+1)))
	from, to := max(lo, 1<<n>>1), min(hi, 1<<n-1)
	return uint32(from + r.Below(to-from+1))
}

// nextDue is when a requester posts the message after the present one.
func (l *live) nextDue(due int64) int64 {
	period := float64(l.t.c.Period) * l.speed
	if l.t.c.Schedule == Free { // exponential intervals
		period *= -math.Log(float64(l.rng.Below(1<<32)+1) / (1 << 32))
	}
	return due + int64(period)
}

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
