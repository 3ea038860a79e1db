package synth

import (
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/transport"
)

// kind is the function of a packet.
type kind uint8

const (
	request kind = iota
	ack
	answer // READ response, ATOMIC Acknowledge
	cnp
	mad
)

// flight is a packet on the path.
type flight struct {
	conn, to int32 // of the sender; of the receiver, which differs for UD only
	psn      uint32
	number   uint32 // of the requester's message, from 0; of responses, the MSN
	left     uint32 // bytes of the message from here on: the DMA length
	mad      int32  // index in mads
	aeth     packet.AETH
	octets   uint16
	port     uint16
	from     End
	kind     kind
	op       packet.Opcode
	dscp     uint8
	ecn      uint8
	ackReq   bool
	resent   bool
	lost     bool // after the tap
	marked   bool // CE after the tap
}

// launch sends a packet towards the tap.
func (t *Traffic) launch(l *live, f flight) {
	f.port = t.port(&f)
	if f.ecn == 2 && f.op.HasPayload() && t.rng.hit(t.c.ce) {
		if t.rng.next()&1 == 0 {
			f.ecn = 3
		} else {
			f.marked = true
		}
	}
	before, after := t.lost(&f)
	if before {
		return
	}
	f.lost = after
	at := t.now + t.c.Delay[f.from] + l.offset + t.rng.upTo(t.c.PathJitter)
	if t.rng.hit(t.c.reorder) {
		at += t.rng.upTo(t.c.ReorderDelay)
	} else {
		s := &l.sides[f.from]
		at = max(at, s.lastTap+1)
		s.lastTap = at
	}
	t.fly(f, at)
}

// fly schedules a packet to pass the tap.
func (t *Traffic) fly(f flight, at int64) {
	var i uint32
	if n := len(t.free); n > 0 {
		i = t.free[n-1]
		t.free = t.free[:n-1]
		t.flights[i] = f
	} else {
		i = uint32(len(t.flights))
		t.flights = append(t.flights, f)
	}
	t.queue.push(at, taskTap, i)
}

// lost decides at random whether a packet is lost before or after the tap.
func (t *Traffic) lost(f *flight) (before, after bool) {
	if t.rng.hit(t.c.lossBefore[f.from]) {
		return true, false
	}
	after = t.rng.hit(t.c.lossAfter[f.from])
	if f.kind > answer { // CNPs and MADs are neither requests nor responses
		return false, after
	}
	l := &t.c.kindLoss[0]
	if f.kind != request {
		l = &t.c.kindLoss[1]
	}
	before = t.rng.hit(l.before[f.from])
	return before, t.rng.hit(l.after[f.from]) || after
}

// tap passes a packet through the tap; true if it is seen there.
func (t *Traffic) tap(i uint32, e *Event) bool {
	f := &t.flights[i]
	queued := int64(0)
	if t.c.Bottleneck.Rate > 0 && f.from == t.c.Bottleneck.From && !f.lost {
		fits := false
		queued, fits = t.enqueue(f)
		f.lost = !fits
	}
	c := &t.conns[f.conn]
	seen := c.Seen[f.from] && t.now >= t.c.TapStart && t.rng.hit(t.c.sampled)
	if seen {
		t.show(f, e)
		c.Packets[f.from]++
		if t.rng.hit(t.c.onPath) {
			t.mimic(e)
		}
		if f.kind == mad && t.c.fakeREP > 0 {
			t.answerFirst(f, e)
		}
	}
	if f.lost || f.idle() {
		t.free = append(t.free, i)
		return seen
	}
	to := 1 - f.from
	at := t.now + queued + t.c.Delay[to] + t.rng.upTo(t.c.PathJitter)
	l := t.live[f.conn]
	if l != nil {
		at += l.offset
	}
	if t.rng.hit(t.c.reorder) {
		at += t.rng.upTo(t.c.ReorderDelay)
	} else if l != nil {
		s := &l.sides[f.from]
		at = max(at, s.lastArrival+1)
		s.lastArrival = at
	}
	t.queue.push(at, taskArrive, i)
	return seen
}

// idle reports whether the packet's arrival would change nothing.
func (f *flight) idle() bool {
	service := transport.Service(f.op &^ 0x1f)
	unreliable := service == transport.UC || service == transport.UD
	return f.kind == cnp || unreliable && f.kind != mad && f.ecn != 3 && !f.marked
}

// arrive delivers a packet to its receiver, if that still exists.
func (t *Traffic) arrive(i uint32) {
	f := t.flights[i]
	t.free = append(t.free, i)
	to := 1 - f.from
	l := t.live[f.to]
	if l == nil || !l.up && f.kind != mad {
		return
	}
	if f.ecn == 3 || f.marked {
		t.congested(l, to, &f)
	}
	switch f.kind {
	case mad:
		t.managed(l, to, t.mads[f.mad])
	case request:
		t.requested(l, to, &f)
	default:
		t.acknowledged(l, to, &f)
	}
}

// congested is the receiver's notification point (IBTA Annex A17): it sends a CNP for a CE-marked packet, at a limited rate.
func (t *Traffic) congested(l *live, end End, f *flight) {
	s := &l.sides[end]
	if s.dead || t.now-s.lastCNP < t.c.CNPInterval {
		return
	}
	s.lastCNP = t.now
	t.launch(l, flight{conn: l.id, to: f.conn, from: end, kind: cnp, op: packet.CNP, dscp: cnpDSCP, octets: cnpReserved})
}

const (
	cnpReserved = 16 // bytes of zeros after the BTH of a CNP
	cnpDSCP     = 48
)
