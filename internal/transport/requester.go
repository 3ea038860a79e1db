package transport

import (
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/ring"
)

// Message is a work request. The caller chooses ID and Posted.
type Message struct {
	ID     uint64
	Posted int64
	first  uint64 // sequence number
	n      uint32 // number of sequence numbers
	Bytes  uint32
	Number uint32
	Op     Op
}

func (m *Message) end() uint64 { return m.first + uint64(m.n) }

// Packet is a request packet to send.
type Packet struct {
	Message
	Opcode  packet.Opcode
	PSN     uint32
	Index   uint32 // within the message
	Span    uint32 // number of PSNs: more than one for a READ
	Payload uint32 // bytes
	Left    uint32 // bytes of the message from this packet on: the DMA length of the rest of a READ
	AckReq  bool
	Resent  bool // the PSN was sent before
}

// Requester is the half of a QP that sends requests.
type Requester struct {
	c         *Config
	n         *Counters
	service   Service
	completed func(now int64, m Message, failed bool)

	una  uint64 // oldest sequence number that is not acknowledged
	nxt  uint64 // next to send
	end  uint64 // one past the last posted
	high uint64 // one past the highest ever sent

	messages ring.Ring[Message] // posted and not complete
	current  int                // index in messages of the message that nxt lies in
	reads    int                // READs and atomics in messages whose request was sent

	asked      uint64 // one past the last packet sent since the last time-out that wants an acknowledgement or a response
	progressAt int64  // when una last moved, or a packet was sent while none was in flight or none had asked, ns
	tries      int    // time-outs since then
	heldUntil  int64  // an RNR NAK forbids sending before this time, ns

	again, againEnd uint64 // SelectiveRepeat: the range to retransmit, from una on
	burst           uint64 // length of that range last time
	episode         uint64 // NAKs for packets before this one are about packets sent before the first NAK came

	backEnd uint64 // one past the range of the last go-back
	backAt  int64  // time of the last go-back, or when its last packet was sent, ns
	timed   uint64 // sequence number whose acknowledgement gives rtt, plus 1; 0: none
	timedAt int64
	rtt     int64 // last sample, ns
}

// Start initialises a requester whose first PSN is psn. completed, unless nil, is called for each message that completed or failed. It must
// not call Post.
func (r *Requester) Start(c *Config, n *Counters, s Service, psn uint32, completed func(now int64, m Message, failed bool)) {
	first := firstSequence + uint64(psn)
	*r = Requester{c: c, n: n, service: s, completed: completed, una: first, nxt: first, end: first, high: first}
}

// Post adds a message. Its PSNs follow those of the message before.
func (r *Requester) Post(m Message) {
	m.first, m.n = r.end, 1
	if m.Op != Atomic {
		m.n = r.c.Packets(m.Bytes)
	}
	r.messages.Push(m)
	r.end += uint64(m.n)
}

// Posted is the number of messages that are posted and not complete.
func (r *Requester) Posted() int { return r.messages.Len() }

// Idle reports whether everything posted has been sent, and nothing is to be retransmitted.
func (r *Requester) Idle() bool { return r.nxt == r.end && !r.repeats() }

// repeats reports whether SelectiveRepeat has packets to retransmit.
func (r *Requester) repeats() bool { return r.again < r.againEnd }

// Done reports whether everything posted is acknowledged.
func (r *Requester) Done() bool { return r.una == r.end }

// InFlight returns the oldest PSN that is not acknowledged, and the number of PSNs from there on that were ever sent.
func (r *Requester) InFlight() (psn, n uint32) {
	return uint32(r.una) & packet.PSNMask, uint32(r.high - r.una)
}

// HeldUntil is the time before which an RNR NAK forbids sending, ns.
func (r *Requester) HeldUntil() int64 { return r.heldUntil }

// Ready reports whether a packet may be sent while at most limit PSNs may be in flight. One PSN always may be in flight, and a READ may
// exceed the limit.
func (r *Requester) Ready(now int64, limit uint64) bool {
	switch {
	case r.Idle() || now < r.heldUntil:
		return false
	case r.repeats():
		return true
	case r.reads >= MaxReads && r.messages.At(r.current).Op.answered():
		return false
	}
	return r.nxt == r.una || r.nxt-r.una < limit
}

// Send returns the next packet. The requester must be ready. A message that isn't acknowledged completes when its last packet is sent.
func (r *Requester) Send(now int64, limit uint64) Packet {
	if r.repeats() {
		return r.repeat(now)
	}
	m := r.messages.At(r.current)
	p := r.packet(m, r.nxt)
	if p.Resent {
		r.n.Retransmitted++
	} else if r.timed == 0 {
		r.timed, r.timedAt = r.nxt+1, now
	}
	if r.una == r.high {
		r.progressAt = now
	}
	if m.Op.answered() {
		r.reads++
	}
	r.nxt += uint64(p.Span)
	r.high = max(r.high, r.nxt)
	if r.nxt == m.end() {
		r.current++
	}
	if !r.service.reliable() {
		p.AckReq = false
		r.release(now, r.nxt)
	} else if !r.c.NoAckIfFull && r.nxt-r.una >= limit {
		p.AckReq = true
	}
	if p.AckReq || m.Op.answered() {
		r.asks(now, r.nxt)
	}
	return p
}

// asks notes that the packet before a sequence number wants an acknowledgement or a response.
func (r *Requester) asks(now int64, until uint64) {
	if r.asked <= r.una {
		r.progressAt = now
	}
	r.asked = max(r.asked, until)
}

// repeat returns the next packet that SelectiveRepeat retransmits.
func (r *Requester) repeat(now int64) Packet {
	i := 0
	for r.messages.At(i).end() <= r.again {
		i++
	}
	p := r.packet(r.messages.At(i), r.again)
	p.AckReq = true
	r.again++
	r.asks(now, r.again)
	r.backAt = now
	r.n.Retransmitted++
	return p
}

// packet describes the packet of a message at a sequence number. For a READ, it requests all data from there on.
func (r *Requester) packet(m *Message, sequence uint64) Packet {
	c, index := r.c, uint32(sequence-m.first)
	p := Packet{Message: *m, Opcode: requestOpcodes[m.Op].opcode(index, m.n, r.service), PSN: uint32(sequence) & packet.PSNMask, Index: index,
		Span: 1, Left: m.Bytes - index*c.MTU, Resent: sequence < r.high}
	switch m.Op {
	case Read:
		p.Span = m.n - index
	case Atomic:
	default:
		p.Payload = c.payload(m.Bytes, index)
	}
	p.AckReq = index+p.Span == m.n || c.AckEvery > 0 && (index+1)%uint32(c.AckEvery) == 0
	return p
}

// Acknowledge processes an acknowledgement. It returns true if the responder has refused a request for good (IBTA 9.9.2.4): call Fail. An
// acknowledgement of PSNs that were never sent changes nothing.
func (r *Requester) Acknowledge(now int64, psn uint32, h packet.AETH) (refused bool) {
	sequence := extend(r.una, psn)
	if sequence >= r.high {
		return false
	}
	if h.IsACK() {
		r.acknowledged(now, sequence+1)
		return false
	}
	if h.IsNAK() {
		r.n.NAKsReceived++
	}
	switch {
	case h.IsRNRNAK():
		r.missing(now, sequence, true)
		if r.una == sequence {
			r.heldUntil = now + rnrDelay(h)
			r.progressAt = r.heldUntil
		}
	case h.Syndrome == SyndromeNAK:
		r.missing(now, sequence, r.c.GoBackAlways)
	default:
		return h.IsNAK()
	}
	return false
}

// Answer processes a response to a READ or an atomic. It acknowledges everything before it. If an earlier response is missing, the
// requester requests it again.
func (r *Requester) Answer(now int64, psn uint32) {
	sequence := extend(r.una, psn)
	if sequence >= r.high {
		return
	}
	r.acknowledged(now, sequence)
	if r.una == sequence && r.messages.At(0).Op.answered() {
		r.release(now, sequence+1)
	}
}

// Awaits returns a response's index in its READ, if it is the response that the requester waits for next. Answer must not have been called for it.
func (r *Requester) Awaits(psn uint32) (index uint32, ok bool) {
	sequence := extend(r.una, psn)
	for i := 0; i < r.messages.Len() && sequence < r.high; i++ {
		if m := r.messages.At(i); m.Op.answered() {
			return uint32(sequence - m.first), sequence == max(r.una, m.first)
		}
	}
	return 0, false
}

// acknowledged processes a positive acknowledgement of everything before limit. It stops at a READ or an atomic without a response: if
// something after it is acknowledged, the response was lost.
func (r *Requester) acknowledged(now int64, limit uint64) {
	limit = min(limit, r.high)
	for r.una < limit {
		m := r.messages.At(0)
		if m.Op.answered() {
			r.goBack(now, false)
			return
		}
		r.release(now, min(m.end(), limit))
	}
}

// missing processes a NAK (IBTA 9.7.5.2): everything before it arrived.
func (r *Requester) missing(now int64, sequence uint64, always bool) {
	r.acknowledged(now, sequence)
	if r.una == sequence {
		r.goBack(now, always)
	}
}

// release moves una on within the oldest message.
func (r *Requester) release(now int64, una uint64) {
	r.una, r.progressAt, r.tries, r.again = una, now, 0, max(r.again, una)
	if r.timed != 0 && una >= r.timed {
		r.rtt, r.timed = now-r.timedAt, 0
	}
	m := r.messages.At(0)
	done := una == m.end()
	var whole Message
	if done {
		whole = r.messages.Pop()
		r.current = max(0, r.current-1)
		if whole.Op.answered() {
			r.reads = max(0, r.reads-1) // 0 if the requester went back since it sent the request
		}
	}
	if r.nxt < una { // packets that were to be retransmitted have arrived
		r.nxt = una
	}
	if done && r.completed != nil {
		r.completed(now, whole, false)
	}
}

// goBack makes the requester retransmit after a NAK or a missing response: everything that isn't acknowledged, or with SelectiveRepeat the
// oldest packets. Unless always is set, it does so once a round-trip time for the same packet, as what was sent since then can't have been
// answered yet.
func (r *Requester) goBack(now int64, always bool) {
	if r.una == r.high || !always && r.una < r.backEnd && (r.repeats() || now-r.backAt < r.rtt) {
		return
	}
	r.backEnd, r.backAt, r.timed = r.una+1, now, 0
	r.n.WentBack++
	if r.c.SelectiveRepeat && !r.messages.At(0).Op.answered() {
		r.repeatMore()
		return
	}
	r.sendAgain()
}

// repeatMore retransmits packets from una on: one at first, and twice as many for each further NAK about packets sent before the first NAK
// came. A NAK names only one lost packet, so the requester would learn of the next one a round trip later.
func (r *Requester) repeatMore() {
	if r.una >= r.episode {
		r.burst, r.episode = 1, r.high
	} else {
		r.burst = min(2*r.burst, HeldPSNs)
	}
	r.again, r.againEnd = r.una, min(r.una+r.burst, r.nxt)
	for i := 0; i < r.messages.Len() && r.messages.At(i).first < r.againEnd; i++ {
		if m := r.messages.At(i); m.Op.answered() { // a responder doesn't keep a READ after a gap: it is sent in order
			r.againEnd = m.first
		}
	}
	r.backEnd = max(r.backEnd, r.againEnd)
}

// sendAgain restarts at the oldest packet that isn't acknowledged.
func (r *Requester) sendAgain() { r.nxt, r.current, r.reads, r.againEnd = r.una, 0, 0, 0 }

// Expire goes back if nothing was acknowledged for Config.Timeout. While a slow sender has not sent the packet that asks for an acknowledgement, none can come. Even with SelectiveRepeat, it retransmits everything, as nothing shows
// how much was lost. It returns when to call it next; 0 if nothing waits for an acknowledgement. failed is true after too many time-outs:
// call Fail.
func (r *Requester) Expire(now int64) (next int64, failed bool) {
	if r.una == r.high {
		return 0, false
	}
	if r.asked <= r.una && r.nxt < r.end && !r.c.NoAckIfFull { // with NoAckIfFull a full window ends the sending, too
		return now + r.c.Timeout, false
	}
	if now-r.progressAt >= r.c.Timeout {
		r.n.TimedOut++
		if r.tries == r.c.Retries {
			return 0, true
		}
		r.tries++
		r.progressAt, r.timed = now, 0
		r.n.WentBack++
		r.sendAgain()
		r.asked = 0
	}
	return r.progressAt + r.c.Timeout, false
}

// Fail makes all messages fail.
func (r *Requester) Fail(now int64) {
	for r.messages.Len() > 0 {
		if m := r.messages.Pop(); r.completed != nil {
			r.completed(now, m, true)
		}
	}
}
