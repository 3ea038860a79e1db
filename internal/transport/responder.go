package transport

import (
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/ring"
)

// maxJobs bounds the READs and atomics that a responder queues: those that a requester may have outstanding, and as many repetitions.
const maxJobs = 2 * MaxReads

// job is a READ or an atomic, or the rest of one, that the responder has to answer.
type job struct {
	next, end uint64 // sequence numbers of the responses
	n         uint32 // responses of the whole request
	bytes     uint32 // of the whole request
	msn       uint32
	op        Op
}

// Request is the responder's view of a request packet.
type Request struct {
	PSN    uint32
	Bytes  uint32 // READ: DMA length
	Op     Op
	Last   bool // of a message
	AckReq bool
}

// Response is a response packet to send.
type Response struct {
	Opcode  packet.Opcode
	PSN     uint32
	Payload uint32 // bytes
	AETH    packet.AETH
}

// Responder is the half of a QP that answers requests.
type Responder struct {
	c       *Config
	n       *Counters
	service Service

	expect uint64 // sequence number of the next request
	msn    uint32 // messages that are complete, 24 bits

	asked  int // requests with AckReq since the last acknowledgement
	ackDue bool
	nakDue bool
	nak    uint8 // syndrome of the NAK that refuses expect; no other NAK follows until it arrives; 0: none
	nakAt  int64 // when it was refused, ns
	jobs   ring.Ring[job]

	held *heldPackets // SelectiveRepeat; else nil
}

// Start initialises a responder whose first expected PSN is psn.
func (r *Responder) Start(c *Config, n *Counters, s Service, psn uint32) {
	*r = Responder{c: c, n: n, service: s, expect: firstSequence + uint64(psn)}
	if c.SelectiveRepeat {
		r.held = new(heldPackets)
	}
}

// Expects reports whether a PSN is the next one.
func (r *Responder) Expects(psn uint32) bool { return uint32(r.expect)&packet.PSNMask == psn }

// Refused is the syndrome of the NAK that refused the next PSN, 0 if there is none.
func (r *Responder) Refused() uint8 { return r.nak }

// Request processes a request.
func (r *Responder) Request(now int64, q *Request) {
	switch sequence := extend(r.expect, q.PSN); {
	case sequence == r.expect:
		r.execute(now, q)
	case sequence < r.expect:
		r.n.Duplicates++
		if q.Op.answered() {
			r.answer(q, sequence)
		} else {
			r.acknowledge()
		}
	default:
		r.n.OutOfSequence++
		if r.held != nil && !q.Op.answered() {
			r.held.keep(r.expect, sequence, q.Last)
		}
		if r.nak == 0 || r.c.NAKInterval > 0 && now-r.nakAt >= r.c.NAKInterval {
			r.refuse(now, SyndromeNAK)
		}
	}
}

// NotReady refuses the next request because there is no receive buffer for it (IBTA 9.7.5.2.8).
func (r *Responder) NotReady(now int64) { r.refuse(now, SyndromeRNR) }

func (r *Responder) refuse(now int64, syndrome uint8) { r.nak, r.nakAt, r.nakDue = syndrome, now, true }

// execute processes the request that is in sequence, and the packets kept after it.
func (r *Responder) execute(now int64, q *Request) {
	r.n.InSequence++
	r.nak, r.nakDue = 0, false
	if q.Last {
		r.msn = (r.msn + 1) & packet.PSNMask
	}
	sequence := r.expect
	r.expect++
	switch {
	case q.Op.answered():
		if q.Op == Read {
			r.expect = sequence + uint64(r.c.Packets(q.Bytes))
		}
		r.ackDue, r.asked = false, 0 // its responses acknowledge the requests before it
		r.answer(q, sequence)
	case q.AckReq:
		if r.asked++; r.asked >= r.c.Coalesce {
			r.acknowledge()
		}
	}
	if r.held != nil {
		r.held.forget(sequence, r.expect)
		r.executeHeld(now)
	}
}

// executeHeld processes the kept packets. If another gap follows, a NAK reports it at once.
func (r *Responder) executeHeld(now int64) {
	ended, more := r.held.release(&r.expect)
	r.msn = (r.msn + ended) & packet.PSNMask
	if more {
		r.refuse(now, SyndromeNAK)
	} else if ended > 0 {
		r.acknowledge()
	}
}

// answer queues the responses to a READ or an atomic. If the queue is full, the request counts as lost: the requester repeats it.
func (r *Responder) answer(q *Request, sequence uint64) {
	if r.jobs.Len() == maxJobs {
		r.n.ReadsDropped++
		return
	}
	n := uint32(1)
	if q.Op == Read {
		n = r.c.Packets(q.Bytes)
	}
	r.jobs.Push(job{next: sequence, end: sequence + uint64(n), n: n, bytes: q.Bytes, msn: r.msn, op: q.Op})
}

func (r *Responder) acknowledge() { r.ackDue, r.asked = true, 0 }

// Coalescing reports whether requests wait to be acknowledged together with later ones.
func (r *Responder) Coalescing() bool { return r.asked > 0 }

// Flush acknowledges the requests that wait.
func (r *Responder) Flush() {
	if r.asked > 0 {
		r.acknowledge()
	}
}

// Answers reports whether the responder has a response to a READ or an atomic to send.
func (r *Responder) Answers() bool { return r.jobs.Len() > 0 }

// Answer returns the next response to the oldest READ or atomic; there must be one.
func (r *Responder) Answer() Response {
	j := r.jobs.At(0)
	index := j.n - uint32(j.end-j.next)
	p := Response{Opcode: packet.RCAtomicAcknowledge | packet.Opcode(r.service), PSN: uint32(j.next) & packet.PSNMask,
		AETH: packet.AETH{Syndrome: SyndromeACK, MSN: j.msn}}
	if j.op == Read {
		p.Opcode, p.Payload = readResponses.opcode(index, j.n, r.service), r.c.payload(j.bytes, index)
	}
	if j.next++; j.next == j.end {
		r.jobs.Pop()
	}
	return p
}

// Acknowledges reports whether the responder has an acknowledgement or a NAK to send. Earlier responses go first.
func (r *Responder) Acknowledges() bool { return (r.ackDue || r.nakDue) && r.jobs.Len() == 0 }

// Acknowledgement returns the acknowledgement or NAK that is due; there must be one.
func (r *Responder) Acknowledgement() Response {
	p := Response{Opcode: packet.RCAcknowledge | packet.Opcode(r.service), PSN: uint32(r.expect-1) & packet.PSNMask,
		AETH: packet.AETH{Syndrome: SyndromeACK, MSN: r.msn}}
	if r.nakDue {
		p.PSN, p.AETH.Syndrome = uint32(r.expect)&packet.PSNMask, r.nak
	}
	r.ackDue, r.nakDue = false, false
	return p
}
