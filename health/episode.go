package health

import "github.com/cnpgate/cnpgate/internal/packet"

const (
	ms    = int64(1e6)
	tick  = ms / 1000 // the unit of most captures' times: one between two of them may be longer by as much
	quiet = 3 * ms    // a requester that was silent for less did not time out, if its time-out isn't known
)

// episode is a time when a requester went back: what had been seen before it, and what came after it. Its cause is decided as late as possible (cause.go):
// when another one needs the memory, or the counts are read. By then it is known best how long the path and both ends take.
type episode struct {
	psn, end uint32 // the first PSN that was sent again, and the one after all that were sent before
	at       int64
	psns     uint32 // of the first request
	sent     int64  // when psn was sent before, and when for the first time of all; 0: not known
	first    int64
	asked    int64 // when an answer was first asked for since the episode before, of psn or what is behind it; 0: not known
	silent   int64 // ns since the request before
	back     int64 // when the requester went back before
	// What may have made the requester go back, by its time, ns; 0: nothing did.
	nak       int64
	rnr       int64
	timer     int64 // ns, of the RNR NAK
	latestNAK int64 // a NAK for any packet, since the episode before, or a short time ago
	beyond    int64 // of a READ: a response beyond one that is missing
	answer    int64 // an answer to psn: it may have been on its way, or lost

	cutOff              uint32 // of a READ: the responses at its end, which have not passed, though those before them have
	answered            int64  // the first answer to psn; 0: not known. Had that one or any since come to the requester, it would not have gone back to psn
	passed              uint32 // answers that had passed before, to psn and what is behind it
	came                int64  // when an answer to psn came after it
	asks                uint32 // how many answers had been asked for, and had not passed
	resent, allResent   uint32 // packets that were sent again since which may be answered: of those before end, and of all
	answers, allAnswers uint32 // answers to any from psn on: before one to a packet that was sent later than the episode, and of all
	awaited             uint32 // of resent, those before the requester sent something new: their answers come before the one to that
	tries, rounds       uint32 // how often the first packet was sent again since, and, until it sent something new, after how many of these an answer was asked for
	tried               int64  // when one was first asked for since the latest of these before came; 0: not yet
	messages            uint32 // that it sent again to their ends
	requests            Amount // that it sent again
	responses           Amount // of READs
	cause               Cause  // as it seemed at its beginning
	flags               uint32
	id                  uint16 // of the first packet that was sent again
}

const (
	ofRead        = 1 << iota // it begins with a READ
	missed                    // the first transmission did not pass here
	wasLate                   // it passed late
	upstream                  // it was left out when it was sent again before
	refusedBefore             // the NAK is for what an RNR NAK has refused, as Soft-RoCE sends it
	overdue                   // an ACK should have come before
	behindLost                // a READ response was lost behind, if it was
	refusedNow                // a NAK or RNR NAK has come for psn, or one before it
	askedBefore               // a READ that has been asked for again before
	sameAgain                 // the episode before began with the same packet
	part                      // of a READ, the rest is asked for again
	done                      // all answers to what was sent before have come
	current                   // more of it may come
	jumped                    // a READ response passed out of order
	repeated                  // the episode before began with the same packet, and no answer came
	wentOn                    // the requester sent something new since
	alone                     // it is of one packet that asks for an answer, and nothing behind it
	perhapsAnew               // or another connection of the QPs begins with it
	beganAnew                 // that is so
	droppedHere               // the gateway has dropped what is missing
	itself                    // the NAK is for just this packet
	due                       // an answer to it was asked for, and nothing before that is missing here
	gap                       // of a READ: its response is missing here, and later ones have passed
	over                      // the requester has gone back to one before it, and sent again what is behind it
	follows                   // it is behind the only one that was sent again before, and was not sent since
	discarded                 // so was that one: the responder had dropped both, as it waited for one before
	heard                     // a READ response that is asked for again passed at a time that is known
	unforeseen                // no reason for it had passed
	laterNAK                  // the NAKs since the episode before are for later packets
	mayBeImplied              // a response, ACK or NAK beyond the first one that is asked for has passed
	gotBefore                 // the answer just before the one to psn has come to the requester
)

// sendsAgain counts a request that was sent again. unseen: its first transmission did not pass here. before is when the request before it was sent.
func (r *repeat) sendsAgain(h *Half, p *Packet, unseen bool, before int64) {
	late := r.lateAgain(h, p, before)
	if !late && !r.continues(h, p, before) {
		r.goesBack(h, p, unseen, before)
	}
	late = late || ahead(p.PSN, r.next) < 0
	if !late && r.skipped == r.skippedTo && p.PSN != r.next {
		r.skipped, r.skippedTo = r.next, p.PSN
	}
	if !late {
		if p.PSN == r.next && p.Time > r.at && !unseen && (h.clean.n == 0 || p.Time-r.at < h.clean.least) { // nothing has asked for that one, too
			h.flags |= goesBackN
		}
		r.next = (p.PSN + h.psnsOf(p)) & packet.PSNMask
	}
	if h.own.n > 0 {
		h.own.sentAgain(p.PSN, h.psnsOf(p), p.Time)
	}
	h.AgainRequests.add(p.Len)
	r.noteAgain(p, h.psnsOf(p))
	if r.n > 0 {
		o := &r.list[r.n-1]
		if o.requests.add(p.Len); placeOf(p.Opcode)&last != 0 {
			o.messages++
		}
	}
	if returnsData(p.Opcode) {
		h.reads.again(p, (h.next+h.loose)&packet.PSNMask, h.reach(), h.newest)
		r.reads = r.at
	}
	h.probes.drop(p.PSN)
	if r.asked == 0 && asks(p) {
		r.asked = p.Time
	}
	h.ids.again(p.ID)
	h.recent.add(p)
}

// lateAgain reports whether a request belongs to the present episode or the latest one, but was overtaken by what was sent later.
func (r *repeat) lateAgain(h *Half, p *Packet, before int64) bool {
	if h.ids.known(p.ID) {
		return r.at != 0 && h.ids.older(p.ID) && (r.active || p.Time-before < h.silence())
	}
	d := ahead(p.PSN, r.skipped)
	if since, asked := r.sinceAsked(h, p); asked && h.naks.n > 0 && since+tick >= h.naks.least*3/4 {
		return false
	}
	return r.active && d >= 0 && d < ahead(r.skippedTo, r.skipped) && p.PSN != r.next && p.Time-before < h.silence()
}

// continues reports whether a packet belongs to the episode of the packets before it.
func (r *repeat) continues(h *Half, p *Packet, before int64) bool {
	if !r.active || r.n == 0 {
		return false
	}
	for _, all := range [...]*refusals{&r.naks, &r.rnrs} {
		n := all.of(h, p.PSN, p.Time)
		if n == nil || n.at <= r.at || p.PSN == r.next {
			continue
		}
		if n.psn == p.PSN || ahead(p.PSN, r.next) < 0 && h.naks.n > 0 && p.Time-n.at >= h.naks.least*3/4 {
			return false // what it was asked for first may be lost again
		}
	}
	first := p.PSN == r.list[r.n-1].psn && p.Time-before >= shortest // who goes back once sends it once
	if p.Time-before < h.silence() && !first {
		return !returnsData(p.Opcode) || ahead(p.PSN, r.next) >= 0
	}
	d := ahead(p.PSN, r.next)
	return d == 0 || d > 0 && ahead(p.PSN, h.answers.acked) > 0 // a time-out begins with the oldest one
}

// goesBack begins an episode.
func (r *repeat) goesBack(h *Half, p *Packet, unseen bool, before int64) {
	r.close()
	if r.n == len(r.list) {
		r.list[0].conclude(h)
		copy(r.list[:], r.list[1:])
		r.n--
	}
	r.n++
	o := &r.list[r.n-1]
	*o = r.opening(h, p, unseen, before)
	if o.nak != 0 && o.flags&itself != 0 && o.at-o.nak > 100*ms {
		h.slowly.add(o.at - o.nak)
	}
	o.cause = o.causeOf(h)
	if r.begun++; o.cause == Unknown && !o.longEnough(h) && !(o.beyond != 0 && h.obeys(o.at-o.beyond)) {
		r.unasked++
	}
	r.active, r.at, r.next, r.asked = true, p.Time, p.PSN, 0
	if o.answer == 0 { // else it came through
		h.big.stuck(p.PSN, sizeOf(p, h.mtu), o.flags&itself != 0, p.Time)
	}
	o.obeyed(h)
	if o.cause == TimeOut || o.cause == Spurious || o.cause == undecided {
		o.timedOut(h)
	} else if r.latestPSN == p.PSN {
		r.latest = p.Time // the next time-out counts from here
	}
	r.skippedTo = r.skipped
}

// opening is what is known of an episode at its beginning.
func (r *repeat) opening(h *Half, p *Packet, unseen bool, before int64) episode {
	o := episode{psn: p.PSN, id: p.ID, end: h.next, at: p.Time, silent: p.Time - before, back: r.at, psns: h.psnsOf(p), flags: current}
	if r.nakAt > r.at || h.naks.n > 0 && p.Time-r.nakAt < 8*h.naks.least {
		o.latestNAK = r.nakAt
	}
	set := func(flag uint32, is bool) {
		if is {
			o.flags |= flag
		}
	}
	set(ofRead, returnsData(p.Opcode))
	set(laterNAK, ahead(p.PSN, r.nakPSN) < 0)
	set(missed, unseen)
	set(perhapsAnew, h.flags&mayBegin != 0)
	set(beganAnew, h.flags&mayBegin != 0 && h.fell-before >= Silent) // its answer was recorded before it
	set(wasLate, r.wasLate(p.PSN))
	d := ahead(p.PSN, r.skipped)
	set(over, r.n > 1 && h.flags&goesBackN != 0 && h.DroppedHere == [2]uint64{} && // what a gateway's own queue dropped isn't remembered as sent
		ahead(p.PSN, r.list[r.n-2].psn) > 0 && ahead(r.next, p.PSN) > 0)
	if o.asked = r.asked; h.probes.n > 0 {
		o.asked = h.probes.list[0].time
	}
	if o.asks = uint32(h.probes.n); o.asks == 0 && r.n > 1 && r.list[r.n-2].psn == p.PSN {
		o.asks = r.list[r.n-2].asks
	}
	set(overdue, r.overdue(h, p))
	set(due, h.probes.n > 0 && !h.holes.between(p.PSN, h.probes.list[0].psn) || r.asked != 0 && r.latestPSN == p.PSN)
	set(askedBefore, h.reads.covers(p.PSN))
	set(jumped, h.reads.jumped(p.PSN))
	set(sameAgain, r.n > 1 && r.list[r.n-2].psn == p.PSN)
	waited := o.flags&sameAgain != 0 && o.silent >= shortest                                               // since it was sent again
	if n := r.naks.of(h, p.PSN, p.Time); n != nil && !(waited && !n.notReady && n.at < r.list[r.n-2].at) { // it was obeyed then
		o.nak = n.at
		set(refusedBefore, n.notReady)
		set(itself, n.psn == p.PSN)
	}
	if n := r.rnrs.of(h, p.PSN, p.Time); n != nil && (o.nak == 0 || n.psn == p.PSN || n.at > o.nak) {
		o.rnr, o.timer = n.at, n.timer
	}
	again := r.latest != 0 && r.latestPSN == p.PSN
	if s := h.recent.find(p.PSN); s != nil {
		o.sent = s.time
		set(alone, s.asks && h.next == (p.PSN+1)&packet.PSNMask)
		set(due, s.asks)
		if o.asked == 0 && s.asks {
			o.asked = s.time
		}
	} else if o.flags&(over|ofRead) == over && r.skipped == r.skippedTo {
		o.sent = o.back // the requester has sent all from there on again
	}
	set(upstream, d >= 0 && d < ahead(r.skippedTo, r.skipped) || o.flags&over != 0 && o.sent != 0 && o.sent < o.back)
	if at, ok := h.sends.since(p.PSN); ok && !unseen {
		o.first = at
	}
	if o.first == 0 && !again {
		o.first = o.sent
	}
	set(follows, h.flags&goesBackN == 0 && p.PSN == r.next && max(o.sent, o.first) < o.back)
	set(discarded, o.flags&follows != 0 && r.n > 1 && r.list[r.n-2].flags&follows != 0)
	m := h.answers.mark(p.PSN)
	if m != nil && m.at > p.Time { // what the packet is was said only after its answer
		o.came = m.at
	} else if h.hasAnswer(p.PSN) {
		o.answer, o.passed = h.answers.latest, 1
		if !o.mayObey(h) { // else the NAK that it obeys is an earlier one than that which acknowledges it
			o.answer = max(o.answer, h.answers.at)
		}
		if m != nil {
			const together = 64
			n := h.answers.before(p.PSN)
			set(gotBefore, n != nil && o.flags&ofRead == 0 && together*(m.at-n.at) < p.Time-m.at)
			o.passed, o.answered = uint32(h.Responses.Packets)-m.n+1, m.at
			if o.flags&ofRead != 0 {
				o.answer = m.at
			}
		}
		if at := h.reads.heardAt(p.PSN); o.flags&ofRead != 0 && at != 0 {
			o.answer = at
			o.flags |= heard
		}
	}
	if o.flags&ofRead != 0 {
		if o.beyond = h.reads.responseBeyond(h, p); o.nak <= o.back && o.beyond > o.back && o.flags&refusedBefore == 0 && !h.jumbled() { // who goes back has done with the NAKs before
			o.nak, o.flags = 0, o.flags&^itself
		}
		set(part, h.recent.between(p.PSN))
		set(upstream, o.flags&(part|itself) == part|itself && !unseen && (h.flags&goesBackN != 0 || r.at == 0)) // a NAK is for the first PSN of a request
		set(behindLost, o.answer != 0 && h.reads.passedLast(h, p.PSN))
		if d := ahead(h.reads.after, p.PSN); h.reads.inside && d >= 0 && uint32(d) < o.psns {
			o.cutOff = o.psns - uint32(d)
		}
		set(gap, h.reads.holes.find(p.PSN) >= 0)
		set(mayBeImplied, !h.slow(p.Time-max(h.answers.latest, h.reads.latest)) && (ahead(h.answers.acked, p.PSN) > 1 || ahead(h.reads.next, p.PSN) > 1))
		if o.sent == 0 { // the rest of a READ: since the response before
			o.sent = h.reads.heardAt((p.PSN - 1) & packet.PSNMask)
		}
	}
	set(unforeseen, o.rnr+o.beyond == 0 && o.flags&itself == 0)
	set(droppedHere, h.own.n+int(h.own.ack) > 0 && o.byGateway(h))
	return o
}

// mayObey reports whether the requester may have obeyed the latest NAKs, though none of them is known to be for the packet that it goes back to. A NAK acknowledges
// all before what it asks for, so those for later packets are no reason. If packets don't pass in order, it isn't known which of them it has obeyed.
func (o *episode) mayObey(h *Half) bool {
	return o.latestNAK != 0 && (o.flags&laterNAK == 0 || h.jumbled())
}

// timedOut notes when a requester went back without having been asked to.
func (o *episode) timedOut(h *Half) {
	r := &h.repeat
	again := r.latest != 0 && r.latestPSN == o.psn
	if r.latest == 0 {
		h.turn = span{} // it may have sent one packet after the other, and waited for none of the answers that passed between
	} else {
		h.spacing.add(o.at - r.latest)
		const shortest = ms / 2 // a shorter one is no time-out, but a second beginning
		if again && o.at-r.latest > shortest && h.RNRNAKs == 0 && o.nak+o.beyond == 0 {
			h.Interval.add(o.at - r.latest)
			o.flags |= repeated
		}
	}
	r.latest, r.latestPSN, r.latestEnd = o.at, o.psn, o.end
	if r.tries++; !again {
		r.tries = 1
	}
	if idle := o.at - max(o.at-o.silent, h.answers.latest); o.flags&ofRead != 0 && h.slow(idle) {
		h.idle.add(idle)
	}
	if o.answer != 0 {
		return
	}
	if o.sent != 0 {
		age := o.at - max(o.sent, h.answers.at)
		if o.nak == 0 && o.rnr == 0 {
			h.idle.add(age)
		}
		if o.flags&overdue == 0 {
			h.soon.add(age)
		}
	}
}

// obeyed notes that the requester has gone back to where a NAK or RNR NAK asked it to.
func (o *episode) obeyed(h *Half) {
	r := &h.repeat
	switch o.cause {
	case Implied:
		if o.beyond != 0 {
			h.implied.add(o.at - o.beyond)
		}
	case NAKSequence:
		if o.nak != 0 {
			h.naks.add(o.at - o.nak)
		}
		if n := r.naks.of(h, o.psn, o.at); n != nil {
			r.naks.obeyed(n.psn)
		}
		r.rnrs.obeyed(o.psn)
	case RNR:
		psn := o.psn
		if n := r.rnrs.of(h, psn, o.at); n != nil { // a NAK for the same one remains
			psn--
		}
		r.naks.obeyed(psn & packet.PSNMask)
		r.rnrs.obeyed(o.psn)
	}
}

// overdue reports whether an ACK should have come before a packet was sent again: a packet from there on asked for it longer than a round trip ago.
func (r *repeat) overdue(h *Half, p *Packet) bool {
	if h.clean.n == 0 || h.probes.n == 0 {
		return h.probes.n > 0 || r.tries > 0 && r.latestPSN == p.PSN || p.AckReq
	}
	o := &h.probes.list[0]
	return p.Time-o.time > 2*h.clean.mean
}
