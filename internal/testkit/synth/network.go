package synth

// flight is a packet on its way. Its PSN counts on beyond 24 bits.
type flight struct {
	conn, to int32 // of the sender; of the receiver, which is another one for UD only
	psn      uint32
	span     uint32 // PSNs that a request takes
	number   uint32 // of the requester's message, from 0
	left     uint32 // octets of the message from here on: the DMA length
	msn      uint32
	mad      int32 // place in mads
	octets   uint16
	port     uint16
	from     End
	kind     kind
	op       uint8
	syndrome uint8
	dscp     uint8
	ecn      uint8
	first    bool // of a message
	last     bool
	ackReq   bool
	resent   bool
	lost     bool // behind the tap
	marked   bool // CE behind the tap
}

// launch sends a packet towards the tap.
func (t *Traffic) launch(l *live, f flight) {
	f.port = t.port(&f)
	if f.ecn == 2 && hasData(f.op) && t.rng.hit(t.c.ce) {
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

// fly makes a packet pass the tap at a time.
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

// lost draws whether a packet gets lost before the tap or behind it.
func (t *Traffic) lost(f *flight) (before, after bool) {
	if t.rng.hit(t.c.lossBefore[f.from]) {
		return true, false
	}
	after = t.rng.hit(t.c.lossAfter[f.from])
	if f.kind > answer { // CNPs and MADs are neither requests nor responses
		return false, after
	}
	l := &t.c.kindLoss[0]
	if f.kind >= ack {
		l = &t.c.kindLoss[1]
	}
	before = t.rng.hit(l.before[f.from])
	return before, t.rng.hit(l.after[f.from]) || after
}

// tap lets a packet pass the tap; true if it is seen there.
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

// idle tells whether the packet's arrival would change nothing.
func (f *flight) idle() bool {
	return f.kind == cnp || f.op>>5 == highBits[UC]>>5 && f.ecn != 3 && !f.marked ||
		f.op>>5 == highBits[UD]>>5 && f.kind != mad && f.ecn != 3 && !f.marked
}

// arrive hands a packet to its receiver, if that is still there.
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
	switch {
	case f.kind == mad:
		t.managed(l, to, t.mads[f.mad])
	case f.kind < kinds:
		t.requested(l, to, &f)
	default:
		t.acknowledged(l, to, &f)
	}
}

// congested is the receiver's notification point (IBTA Annex A17): it tells the sender of a CE-marked packet, but not too often.
func (t *Traffic) congested(l *live, end End, f *flight) {
	s := &l.sides[end]
	if s.dead || t.now-s.lastCNP < t.c.CNPInterval {
		return
	}
	s.lastCNP = t.now
	t.launch(l, flight{conn: l.id, to: f.conn, from: end, kind: cnp, op: 0x81, dscp: cnpDSCP, octets: cnpReserved})
}

const (
	cnpReserved = 16 // length of what follows the BTH of a CNP, octets of 0
	cnpDSCP     = 48
)

// hasData tells whether an operation carries a message's data: only that is marked CE.
func hasData(op uint8) bool {
	op &= 0x1f
	return op <= 0x0b || op >= 0x0d && op <= 0x10
}
