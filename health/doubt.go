package health

import "github.com/cnpgate/cnpgate/internal/packet"

// doubt is what an episode has in common with others that may be spurious time-outs; nil: it can't be one.
func (o *episode) doubt(h *Half, cause Cause) *doubt {
	d := &h.doubts
	switch cause {
	case TimeOut, Implied, undecided:
	default:
		return nil
	}
	switch {
	case !o.longEnough(h) || o.flags&(jumped|perhapsAnew) != 0 || o.answer != 0 && h.slow(o.at-o.answer) || cause == TimeOut && (o.prompt(h) || o.flags&ofRead == 0 && o.answeredTooSeldom(h)):
		return nil
	case o.flags&wentOn == 0:
		return &d.last
	case o.answer != 0 && o.beyond != 0:
		if age := o.at - o.sent; o.flags&sameAgain == 0 || age < d.asked.least*3/2 || age > d.asked.most*5/2 { // a time-out may double
			d.asked.add(age)
		}
		d.silent.add(o.silent)
		d.reacted.add(o.at - o.beyond)
		return &d.reads
	case cause == Implied:
		return nil
	case o.answer != 0:
		return &d.late
	case o.came != 0 && o.first != 0 && o.flags&missed == 0:
		d.elapsed.add(o.came - o.first)
		return &d.early
	}
	return nil
}

// doubts are episodes of which nothing has proved that they are no spurious time-outs.
type doubts struct {
	early   doubt // before an answer. Its responder may answer several packets at once
	elapsed span  // from the first transmission to the answer, of those
	late    doubt // after an answer, which the requester had not got yet, or which was lost
	last    doubt // those after which the requester sent nothing new
	reads   doubt // those that ask for a READ again after a response beyond the one that it begins with
	asked   span  // how long after the same request, or after any: after a time-out always as long
	silent  span
	reacted span   // and after the response beyond
	parts   uint64 // implied NAKs that ask for a part of a READ only
	waited  span   // from the latest transmission to the next one, of those and of spurious time-outs
	took    span   // from the first transmission to the answer, of spurious time-outs
	begun   uint32 // packets that were sent again, of those and of spurious time-outs
	rounds  uint32 // all that may be time-outs after an answer, and of how many packets
	packets uint32
}

// doubtful are the causes that episodes in doubt have been counted with.
var doubtful = [...]Cause{Implied, TimeOut, Unknown}

type doubt struct {
	sent       [len(doubtful)]Amount
	episodes   [len(doubtful)]uint32
	requests   uint64 // packets
	acks, lost uint32 // ACKs, and packets, that count as lost behind
}

func (d *doubt) add(o *episode, cause Cause) {
	for i, c := range doubtful {
		if c == cause {
			d.sent[i].plus(o.requests)
			d.sent[i].plus(o.responses)
			d.episodes[i]++
		}
	}
	d.requests += o.requests.Packets
}

func (d *doubt) number() (n uint64) {
	for _, e := range d.episodes {
		n += uint64(e)
	}
	return n
}

// stoodStill reports whether all that was sent again too early was one packet, though the round trips of others are far shorter: something stood still once.
func (d *doubts) stoodStill(clean *span) bool {
	const trips, enough = 8, 3
	return d.begun < 2 && clean.n >= enough && d.waited.least > trips*clean.most
}

// decide concludes all episodes, and says of those that are in doubt whether they were spurious. Loss is rare: if most packets were sent again although no NAK
// had asked for them, and although answers had passed, the requester did not wait for these.
func (h *Half) decide() {
	r := &h.repeat
	for i := range r.list[:r.n] {
		r.list[i].conclude(h)
	}
	r.n = 0
	for i := range r.naks { // they are lost, though not sent again yet
		n := &r.naks[i]
		if n.at != 0 && !n.notReady && ahead(n.psn, h.base) >= 0 && ahead(n.psn, h.next) < 0 && ahead(h.answers.acked, n.psn) <= 0 && h.holes.find(n.psn) < 0 && !r.wasLate(n.psn) &&
			!h.own.has(n.psn, (n.psn+1)&packet.PSNMask, n.at) {
			h.LostDownstream++
		}
	}
	if h.incomplete() { // also what was decided before that was known
		for _, cause := range [...]Cause{TimeOut, Spurious} {
			h.Retransmitted[Unknown].plus(h.Retransmitted[cause])
			h.Episodes[Unknown] += h.Episodes[cause]
			h.Retransmitted[cause], h.Episodes[cause] = Amount{}, 0
		}
		return
	}
	if h.NAKs[0]+h.RNRNAKs > 0 {
		return
	}
	d := &h.doubts
	again := d.packets >= 3 && d.rounds >= 2*d.packets // again and again, although each transmission was acknowledged
	late := again || d.late.most(h)
	if late {
		d.late.moveTo(h, Spurious)
	}
	const several = 4
	timed := d.asked.alike() || d.silent.alike() || d.reacted.n >= several && d.reacted.most > d.reacted.least*3/2 // not a reaction to the response beyond
	proven := d.parts == 0 && h.Episodes[Spurious] >= 2 && 2*h.Episodes[Spurious] >= d.reads.number()              // and never was only a part of a READ missing
	if again || h.OutOfOrder+h.overtaken == 0 && (proven || d.reads.number() > 8*d.parts && timed && d.reads.most(h)) {
		d.reads.moveTo(h, Spurious)
	}
	// Those before an answer were if the first transmission was always answered after the same time, which is that of others.
	e := &d.elapsed
	const enough = 3
	alike := e.n >= enough && e.alike() && e.least > h.Interval.least*5/4
	if h.clean.n >= enough {
		alike = e.n >= enough && h.clean.mean >= e.least*2/3 && e.most < 2*h.clean.mean
	}
	// One that waits many round trips before it times out doesn't begin too early: what was sent was lost, or the path stood still.
	const patient = 8
	early := alike || d.early.most(h)
	switch {
	case early && !alike && h.clean.n >= enough && d.waited.least >= patient*h.clean.most:
		d.early.moveTo(h, Unknown)
		early = false
	case early:
		d.early.moveTo(h, Spurious)
		d.took.merge(*e)
		if h.clean.n < enough {
			h.clean = *e
		}
	}
	if early || late {
		d.last.moveTo(h, Spurious)
	}
}

// most reports whether most packets were sent again.
func (d *doubt) most(h *Half) bool {
	return (d.number() >= 2 || d.requests >= 16) && 2*d.requests >= h.Requests.Packets-min(h.Requests.Packets, h.AgainRequests.Packets)
}

// moveTo counts episodes as spurious time-outs, or with another cause.
func (d *doubt) moveTo(h *Half, to Cause) {
	for i, cause := range doubtful {
		h.Retransmitted[cause].minus(d.sent[i])
		h.Retransmitted[to].plus(d.sent[i])
		h.Episodes[cause] -= min(uint64(d.episodes[i]), h.Episodes[cause])
		h.Episodes[to] += uint64(d.episodes[i])
	}
	h.AcksLost -= min(h.AcksLost, uint64(d.acks))
	h.LostDownstream -= min(h.LostDownstream, uint64(d.lost))
}
