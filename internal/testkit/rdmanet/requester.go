package rdmanet

import (
	"slices"
	"sort"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// Op is an operation.
type Op uint8

// Operations.
const (
	Write Op = iota
	Send
	Read
	Atomic
)

// Half is one end's requests and the answers to them.
type Half struct {
	Net   *Network
	Conn  *Conn
	End   int    // the requester
	First uint32 // PSN

	requester
	responder
}

// request is what one packet asks for.
type request struct {
	op      Op
	seq     int64
	psns    int64
	payload int
	length  int // bytes of the whole message
	first   bool
	last    bool
	at      int64 // when it is posted
}

func (r *request) answered() bool { return r.op == Read || r.op == Atomic }

// requester is the state of the end that asks.
type requester struct {
	requests []request
	una      int64 // the oldest PSN that isn't acknowledged; of a READ: whose response is missing
	oldest   int   // its request
	next     int   // the request to send next
	from     int64 // its first PSN, which isn't the request's if only the rest of a READ is missing
	high     int64 // after the highest PSN sent
	resend   []int64
	acked    int64          // of a selective NIC: an ACK came for all before, though of READs responses may be missing
	got      map[int64]bool // READ responses behind a gap, of a selective NIC

	episode  *Episode
	Episodes []*Episode
	resendBy map[int64]*Episode
	implied  int64 // PSN+1 of the response that was asked for again
	retries  int
	refusals int
	waits    int64 // the requester sends nothing before, ns
	due      int64 // after the highest PSN since the requester last went back whose packet asks for an answer
	deadline int64 // of the timer, which runs while such an answer is due; never: it doesn't run
	ticking  int64 // when the timer's event comes; never: none is due
	pumping  bool
	Failed   bool // the connection has ended with an error
	GaveUp   bool // because no answer came to too many retries
}

// Post adds a message of a length in bytes to what the requester sends, at a time.
func (h *Half) Post(op Op, length int, at int64) {
	mtu := h.Conn.NIC.MTU
	seq := int64(0)
	if n := len(h.requests); n > 0 {
		seq = h.requests[n-1].seq + h.requests[n-1].psns
	}
	packets := int64(max((length+mtu-1)/mtu, 1))
	switch op {
	case Read:
		h.requests = append(h.requests, request{op: op, seq: seq, psns: packets, length: length, first: true, last: true, at: at})
	case Atomic:
		h.requests = append(h.requests, request{op: op, seq: seq, psns: 1, length: 8, first: true, last: true, at: at})
	default:
		for i := range packets {
			h.requests = append(h.requests, request{
				op: op, seq: seq + i, psns: 1, payload: min(mtu, length-int(i)*mtu), length: length, first: i == 0, last: i == packets-1, at: at,
			})
		}
	}
}

// Start begins to send.
func (h *Half) Start() {
	h.deadline, h.ticking = never, never
	h.got, h.resendBy = map[int64]bool{}, map[int64]*Episode{}
	if len(h.requests) > 0 {
		h.Net.at(h.requests[0].at, h.wake)
	}
}

// wake looks whether there is something to send, as soon as the line and the sender's pace permit.
func (h *Half) wake() {
	if h.pumping || h.Failed {
		return
	}
	h.pumping = true
	c := h.Conn
	h.Net.at(max(c.Host[h.End].busy, c.pace[h.End].next, h.waits), func() {
		h.pumping = false
		if h.dead() {
			return
		}
		if h.Net.now < max(h.waits, c.Host[h.End].busy) {
			h.wake()
		} else if h.sendOne() {
			h.wake()
		}
	})
}

// dead reports whether the requester sends nothing any more.
func (h *Half) dead() bool {
	h.Failed = h.Failed || h.Conn.Host[h.End].down(h.Net.now)
	return h.Failed
}

// index is the request that has a PSN.
func (h *Half) index(seq int64) int {
	return sort.Search(len(h.requests), func(i int) bool { return h.requests[i].seq+h.requests[i].psns > seq })
}

// sendOne sends a packet if it may.
func (h *Half) sendOne() bool {
	for len(h.resend) > 0 {
		seq := h.resend[0]
		h.resend = h.resend[1:]
		e := h.resendBy[seq]
		delete(h.resendBy, seq)
		if seq < h.una || h.got[seq] {
			continue
		}
		h.emit(&h.requests[h.index(seq)], seq, e)
		return true
	}
	if h.next == len(h.requests) {
		return false
	}
	r := &h.requests[h.next]
	if h.una > h.from { // what was to be sent again has been acknowledged
		h.next, h.from = h.index(h.una), h.una
		return true
	}
	if r.at > h.Net.now {
		h.Net.at(r.at, h.wake)
		return false
	}
	nic := h.Conn.NIC
	if h.from > h.una && r.seq+r.psns-h.una > nic.Window {
		return false
	}
	if r.answered() && h.reads() >= nic.MaxReads {
		return false
	}
	h.emit(r, h.from, h.episode)
	h.next++
	h.from = r.seq + r.psns
	return true
}

// reads is how many READ and ATOMIC requests are outstanding.
func (h *Half) reads() (n int) {
	for i := h.oldest; i < h.next; i++ {
		if r := &h.requests[i]; r.answered() && r.seq+r.psns > h.una {
			n++
		}
	}
	return n
}

// emit sends a request, or of a READ the rest from a PSN.
func (h *Half) emit(r *request, seq int64, e *Episode) {
	c := h.Conn
	p := &Packet{Half: h, From: h.End, Kind: Request, Opcode: opcode(r), Seq: seq, PSNs: r.seq + r.psns - seq, Payload: r.payload, Length: r.length}
	if r.op == Read {
		p.Length -= int(seq-r.seq) * c.NIC.MTU
	}
	i := h.index(seq)
	full := r.seq+2*r.psns-h.una > c.NIC.Window || i+1 < len(h.requests) && h.requests[i+1].at > h.Net.now
	p.AckReq = r.last || c.NIC.AckEvery > 0 && (seq+1)%int64(c.NIC.AckEvery) == 0 || full || c.NIC.Selective && seq < h.high
	if seq < h.high {
		p.Again = e
	}
	h.high = max(h.high, r.seq+r.psns)
	h.Net.transmit(p)
	h.note(p)
	c.pace[h.End].sent(h.Net.now, c.bits(p), c.NIC.Rate)
	if p.AckReq || r.answered() {
		h.due = max(h.due, r.seq+r.psns)
		if h.deadline == never {
			h.arm()
		}
	}
}

func opcode(r *request) packet.Opcode {
	place := func(first, middle, last, only packet.Opcode) packet.Opcode {
		switch {
		case r.first && r.last:
			return only
		case r.first:
			return first
		case r.last:
			return last
		}
		return middle
	}
	switch r.op {
	case Send:
		return place(packet.RCSendFirst, packet.RCSendMiddle, packet.RCSendLast, packet.RCSendOnly)
	case Read:
		return packet.RCReadRequest
	case Atomic:
		return packet.RCFetchAdd
	}
	return place(packet.RCWriteFirst, packet.RCWriteMiddle, packet.RCWriteLast, packet.RCWriteOnly)
}

// arm starts the timer anew.
func (h *Half) arm() {
	t := h.Conn.NIC.TimeOut
	if h.Conn.NIC.Doubling {
		t <<= min(h.retries, 12)
	}
	h.deadline = h.Net.now + t
	h.tick()
}

func (h *Half) tick() {
	if h.ticking <= h.deadline {
		return
	}
	h.ticking = h.deadline
	h.Net.at(h.deadline, func() {
		if h.ticking != h.Net.now {
			return // another one is due before
		}
		h.ticking = never
		switch {
		case h.Failed || h.deadline == never:
		case h.Net.now < h.deadline:
			h.tick()
		default:
			h.timeOut()
		}
	})
}

func (h *Half) timeOut() {
	h.deadline = never
	if h.una >= h.high || h.dead() {
		return
	}
	h.retry(TimedOut, h.una, nil)
}

// retry goes back to a PSN, unless the retry count is exceeded.
func (h *Half) retry(t Trigger, seq int64, by *Packet) {
	h.retries++
	if h.retries > h.Conn.NIC.Retries {
		h.GaveUp = true
		h.fail()
		return
	}
	h.goBack(t, seq, by)
}

func (h *Half) fail() {
	h.Failed, h.deadline = true, never
}

// goBack makes the requester send again from a PSN; a selective one only that one.
func (h *Half) goBack(t Trigger, seq int64, by *Packet) {
	e := &Episode{Half: h, Trigger: t, Seq: seq, At: h.Net.now, By: by}
	h.Episodes = append(h.Episodes, e)
	if h.Conn.NIC.Selective && t != NotReadyNAK {
		if _, waits := h.resendBy[seq]; !waits && seq < h.from {
			h.resend = append(h.resend, seq)
		}
		h.resendBy[seq] = e
		h.arm()
	} else {
		h.episode = e
		h.next, h.from = h.index(seq), seq
		h.due, h.deadline = h.una, never
	}
	h.wake()
}

// progress notes that something was acknowledged.
func (h *Half) progress(before int64) {
	if h.una == before {
		return
	}
	h.retries, h.refusals = 0, 0
	for h.oldest < len(h.requests) && h.requests[h.oldest].seq+h.requests[h.oldest].psns <= h.una {
		h.oldest++
	}
	h.deadline = never
	if h.una < h.due {
		h.arm()
	}
}

// advance acknowledges all PSNs before one. It reports false if READ or ATOMIC responses among them are missing.
func (h *Half) advance(to int64) bool {
	for h.una < to {
		r := &h.requests[h.index(h.una)]
		switch {
		case !r.answered():
			h.una = r.seq + 1
		case h.got[h.una]:
			delete(h.got, h.una)
			h.una++
		default:
			return false
		}
	}
	for h.got[h.una] {
		delete(h.got, h.una)
		h.una++
	}
	return true
}

// response receives an answer.
func (h *Half) response(p *Packet) {
	if h.Failed {
		return
	}
	seq := h.unwrap(p.wire(), h.una)
	if seq >= h.high {
		return // a ghost (IBTA 9.7.5.1)
	}
	before := h.una
	defer func() {
		h.progress(before)
		h.wake()
	}()
	if p.data() {
		h.answer(p, seq)
		return
	}
	code, nak := p.nak()
	switch {
	case p.rnr():
		if seq < h.una || h.Net.now < h.waits {
			return
		}
		if !h.advance(seq) {
			h.missing(p)
			return
		}
		h.progress(before)
		before = h.una
		h.refused(p, seq)
	case nak:
		if seq < h.una {
			return
		}
		if !h.advance(seq) {
			h.missing(p)
			return
		}
		if code != 0 {
			h.fail()
			return
		}
		h.progress(before)
		before = h.una
		h.retry(Asked, seq, p)
	default:
		if h.Conn.NIC.Selective {
			h.acked = max(h.acked, seq+1)
		}
		if !h.advance(seq + 1) {
			h.missing(p)
		}
	}
}

func (h *Half) refused(p *Packet, seq int64) {
	if h.refusals++; h.Conn.NIC.RNRRetries < 7 && h.refusals > h.Conn.NIC.RNRRetries {
		h.fail()
		return
	}
	h.waits = h.Net.now + rnrTimers[p.Syndrome&31]*10*usec
	h.goBack(NotReadyNAK, seq, p)
}

// answer is a READ or ATOMIC response.
func (h *Half) answer(p *Packet, seq int64) {
	if seq < h.una {
		return
	}
	r := &h.requests[h.index(seq)]
	if !r.answered() {
		return
	}
	complete := h.advance(r.seq)
	switch {
	case complete && seq == h.una:
		h.una++
		h.advance(max(h.acked, h.una))
		return
	case h.Conn.NIC.Selective:
		h.got[seq] = true
	}
	h.missing(p)
}

// missing is an implied NAK. It counts once for each response that is missing.
func (h *Half) missing(p *Packet) {
	nic := h.Conn.NIC
	if h.implied == h.una+1 || nic.Selective && nic.Tolerance < 0 {
		return
	}
	h.implied = h.una + 1
	una := h.una
	if !nic.Selective || nic.Tolerance == 0 {
		h.retry(Implied, una, p)
		return
	}
	h.Net.at(h.Net.now+nic.Tolerance, func() {
		if h.una == una && !h.Failed {
			h.retry(Implied, una, p)
		}
	})
}

// note keeps what the truth needs.
func (h *Half) note(p *Packet) { h.sent = append(h.sent, p) }

// latest is the latest transmission of a request, or a READ or ATOMIC response, with a PSN before a time.
func (h *Half) latest(kind Kind, seq int64, before int64) *Packet {
	for _, p := range slices.Backward(h.sent) {
		if p.Sent < before && p.data() && p.Kind == kind && (p.Seq == seq || kind == Request && p.Seq < seq && seq < p.Seq+p.PSNs) {
			return p
		}
	}
	return nil
}
