package health

import "github.com/cnpgate/cnpgate/internal/packet"

// causeOf says why an episode began, by what is known now.
func (h *Half) causeOf(o *episode) Cause {
	switch {
	case h.flags&blind != 0, h.flags&(answered|unheard) == unheard:
		return Unknown
	case o.rnr != 0 && h.obeysRNR(o.at-o.rnr, o.timer):
		return RNR
	case o.nak != 0 && h.obeys(o.at-o.nak) && o.flags&refusedBefore != 0:
		return RNR
	case o.nak != 0 && h.obeys(o.at-o.nak):
		return NAKSequence
	case o.beyond != 0 && o.flags&(jumped|whole) != whole && h.reacts(o):
		return Implied
	case o.flags&ofRead == 0 && o.latestNAK != 0 && h.Interval.n == 0 && h.prompt(o.at-o.latestNAK):
		return NAKSequence // what it was asked for first was overtaken
	case h.incomplete():
		return Unknown
	case o.nak != 0: // which was lost, too
		return TimeOut
	case !h.longEnough(o):
		return h.unlessTimeOut(o)
	case o.answer != 0 && h.onItsWay(o), o.flags&(ofRead|wentOn) == wentOn && o.passed >= manyAnswers:
		return Spurious
	case o.beyond != 0 && h.reacts(o) && !h.onTime(o) && o.flags&(whole|sameAgain) != whole|sameAgain:
		return Implied
	case o.flags&repeated != 0 && h.concluded == Spurious: // the time-out before for the same packet
		return Spurious
	case o.flags&refusedNow == 0 && h.answeredEarly(o):
		return Spurious
	}
	return TimeOut
}

const fewTries = 3

// incomplete reports whether what was captured doesn't show what the requester has got, and when: frames are missing, or the clocks of the directions differ.
func (h *Half) incomplete() bool {
	const part = 50
	return h.EarlyAnswers > 0 || (h.NotCaptured+h.reads.holes.missing())*part > h.Requests.Packets+h.Responses.Packets
}

// prompt reports whether so long after a NAK a requester obeys it, as far as is known.
func (h *Half) prompt(after int64) bool {
	if h.naks.n > 0 {
		return after <= 4*h.naks.mean
	}
	return !h.slow(after)
}

// shortest is the shortest time-out that a requester has, unless one was seen, ns.
const shortest = ms / 4

// longEnough reports whether a requester may have timed out: the packet was sent long enough ago.
func (h *Half) longEnough(o *episode) bool {
	sent := o.sent
	if sent == 0 {
		sent = o.first
	}
	return sent == 0 || o.at-sent >= min(shortest, h.silence()) || o.silent >= h.silence()
}

// unlessTimeOut is the cause of an episode that began too soon for a time-out. The packets that a NAK asked for first may have been overtaken.
func (h *Half) unlessTimeOut(o *episode) Cause {
	switch {
	case o.beyond != 0:
		return Implied
	case o.latestNAK != 0 && h.obeys(o.at-o.latestNAK):
		return NAKSequence
	}
	return Unknown
}

// manyAnswers are not all lost in a row.
const manyAnswers = 6

// onItsWay reports whether the answer that had passed before an episode can't have come to the requester yet.
func (h *Half) onItsWay(o *episode) bool {
	after := o.at - o.answer
	return after < h.back*9/10 || h.tooSoon(after) && (o.flags&ofRead == 0 || h.mayTimeOut(o.silent) || 2*after < h.reaction())
}

// reacts reports whether a requester asks for a READ response again because one beyond it came: about as long after it as it takes to react.
func (h *Half) reacts(o *episode) bool {
	after := o.at - o.beyond
	return (h.Interval.n > 0 || !h.slow(after)) && h.obeys(after)
}

// onTime reports whether all of a READ is asked for again a time-out after it was asked for before.
func (h *Half) onTime(o *episode) bool {
	late := o.at - o.sent - h.Interval.mean
	return o.flags&whole != 0 && h.Interval.n > 0 && max(late, -late) < h.Interval.mean/8
}

// answeredEarly reports whether answers prove that one to a packet that was sent before the episode came after it. One that comes sooner than a round trip
// after what was sent again is to an earlier packet. And a responder gives at most one answer to each packet: if more come than packets were sent again, one is
// to an earlier packet. Answers come in the order of what they answer: all have come once a packet is acknowledged that was sent for the first time later.
func (h *Half) answeredEarly(o *episode) bool {
	if h.repeat.notReady != 0 || h.NAKs[0] > 0 && !h.mayTimeOut(o.silent) { // who isn't ready answers the same packet in different ways
		return false
	}
	if o.came != 0 && o.answer == 0 && o.came-o.at < h.shortestTrip() && (o.sent == 0 || o.came-o.sent < 2*h.clean.most) {
		return true
	}
	if o.flags&ofRead != 0 {
		return o.answers > o.resent && o.flags&askedBefore == 0
	}
	if o.answer == 0 && h.NAKs[0] == 0 && o.answers >= manyAnswers && ahead(o.end, o.psn) >= int32(manyAnswers) && 2*o.requests.Packets >= uint64(ahead(o.end, o.psn)) {
		return true // all of these were lost before, or nothing was: if one of many packets had been lost, a NAK would have come (IBTA 9.7.5.2.8)
	}
	return o.answers > o.resent || o.allAnswers > o.allResent
}

// shortestTrip is the least time from a packet to its answer, ns; 0: not known.
func (h *Half) shortestTrip() int64 {
	const few, enough = 2, 8 // fewer may have missed the shortest one
	switch {
	case h.clean.n >= enough:
		return h.clean.least * 3 / 4
	case h.clean.n >= few:
		return h.clean.least / 2
	}
	return 0
}

// reaction is the least time that the requester takes to react to what passes here, ns; 0: not known.
func (h *Half) reaction() int64 {
	const enough = 3
	if h.back > 0 {
		return h.back * 9 / 10
	}
	if h.turn.n < enough {
		return 0
	}
	if h.naks.n > 0 {
		return min(h.turn.least, h.naks.least) * 9 / 10
	}
	return h.turn.least * 9 / 10
}

// tooSoon reports whether so long after a response the requester can't have got it yet.
func (h *Half) tooSoon(after int64) bool { return after > 0 && after < h.reaction() }

// conclude counts an episode.
func (h *Half) conclude(o *episode) {
	r := &h.repeat
	cause := h.causeOf(o)
	if o.flags&droppedHere != 0 && cause == Spurious {
		cause = TimeOut
	}
	if o.flags&current != 0 && r.active {
		o.cause = cause
	}
	if cause == TimeOut && o.came+o.answer == 0 && o.flags&(wentOn|repeated) == 0 && h.flags&answered != 0 && r.tries < fewTries {
		cause = Unknown // its answer may come yet
	}
	h.concluded = cause
	if o.at == r.reads {
		r.readCause = cause
	}
	h.Retransmitted[cause].plus(o.requests)
	h.Retransmitted[cause].plus(o.responses)
	h.Episodes[cause]++
	if o.flags&droppedHere != 0 { // nothing is in doubt, and nothing was lost elsewhere
		return
	}
	if (cause == TimeOut || cause == Spurious) && o.answer != 0 {
		if h.doubts.rounds++; o.flags&sameAgain == 0 {
			h.doubts.packets++
		}
	}
	switch cause {
	case NAKSequence:
		switch {
		case o.flags&(missed|wasLate) != 0:
		case o.flags&upstream != 0:
			h.LostUpstream++
		default:
			h.LostDownstream++
		}
	case Implied:
		lost := o.answer != 0 && o.flags&behindLost != 0
		if lost {
			h.LostDownstream++
		}
		if o.flags&whole == 0 {
			h.doubts.parts++
		}
		if o.flags&(whole|jumped|wentOn) == whole|wentOn && o.answer != 0 && h.longEnough(o) {
			h.doubtRead(&h.doubts.reads, o, lost)
		}
	case Spurious:
		if o.came != 0 && o.first != 0 {
			h.doubts.took.add(o.came - o.first)
		}
	case TimeOut:
		h.lostByTimeOut(o)
	}
}

// lostByTimeOut counts what was lost before a time-out, and keeps what speaks for a spurious one.
func (h *Half) lostByTimeOut(o *episode) {
	d := &h.doubts
	switch {
	case o.answer != 0 && o.flags&(whole|jumped|wentOn) == whole|wentOn && !h.slow(o.at-o.answer):
		lost := o.at-o.answer > h.silence() && o.flags&behindLost != 0
		if lost {
			h.LostDownstream++
		}
		h.doubtRead(&d.lateReads, o, lost)
	case o.answer != 0:
		late := &d.late
		switch {
		case h.slow(o.at-o.answer) || d.waited.n >= 3 && o.at-o.answer > 2*d.waited.mean:
			late = &doubt{} // longer than others waited
		case o.flags&wentOn == 0:
			late = &d.last
		}
		d.waited.add(o.at - o.answer)
		late.add(o)
		switch {
		case o.at-o.answer <= h.silence(): // a requester that is slow to read an ACK has not lost it
		case o.flags&ofRead == 0:
			h.AcksLost++
			late.acks++
		case o.flags&behindLost != 0:
			h.LostDownstream++
			late.lost++
		}
	case o.flags&missed == 0 && h.flags&answered != 0:
		early := &d.last
		if o.came != 0 && o.first != 0 && o.flags&wentOn != 0 {
			early = &d.early
			d.elapsed.add(o.came - o.first)
		}
		early.add(o)
		if o.flags&overdue != 0 {
			h.LostDownstream++
			early.lost++
		}
	}
}

// doubtRead keeps an episode that asks for all of a READ again although its first response had passed.
func (h *Half) doubtRead(d *doubt, o *episode, lost bool) {
	if d.add(o); lost {
		d.lost++
	}
	h.doubts.asked.add(o.at - o.sent)
	if o.beyond != 0 {
		h.doubts.reacted.add(o.at - o.beyond)
	}
	h.doubts.odds = min(max(h.doubts.odds, 1)*o.psns, 1<<20)
}

// doubts are episodes that nothing has proved to be spurious time-outs.
type doubts struct {
	early     doubt  // before an answer. Its responder may answer several packets at once
	elapsed   span   // from the first transmission to the answer, of those
	late      doubt  // after an answer, which the requester had not got yet, or which was lost
	waited    span   // from an answer to a time-out
	last      doubt  // those after which the requester sent nothing new
	took      span   // from the first transmission to the answer, of spurious time-outs
	reads     doubt  // those that ask for all of a READ again after a response beyond its first, and seem to be implied NAKs
	lateReads doubt  // the same, if they seem to be time-outs
	asked     span   // how long after the same request: after a time-out always as long
	reacted   span   // and after a response beyond the first
	odds      uint32 // one in so many that always the first response of a READ is lost, and no other
	parts     uint64 // implied NAKs that ask for a part of a READ only
	rounds    uint32 // all time-outs after an answer, and of how many packets
	packets   uint32
}

type doubt struct {
	sent       Amount
	requests   uint64 // packets of them
	episodes   uint64
	acks, lost uint64 // ACKs, and packets, that count as lost behind
}

func (d *doubt) add(o *episode) {
	d.sent.plus(o.requests)
	d.sent.plus(o.responses)
	d.requests += o.requests.Packets
	d.episodes++
}

// decide concludes all episodes, and says of those that are in doubt whether they were spurious. Loss is rare: if most packets were sent again although no NAK
// had asked for them, and although answers had passed, the requester did not wait for these.
func (h *Half) decide() {
	r := &h.repeat
	for i := range r.list[:r.n] {
		h.conclude(&r.list[i])
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
	if h.NAKs[0] > 0 {
		return
	}
	d := &h.doubts
	again := d.packets >= 3 && d.rounds >= 2*d.packets // again and again, although each transmission was acknowledged
	late := again || h.mostly(&d.late)
	if late {
		h.moveToSpurious(TimeOut, &d.late)
	}
	reads := doubt{requests: d.reads.requests + d.lateReads.requests, episodes: d.reads.episodes + d.lateReads.episodes}
	alone := d.asked.most < d.asked.least*5/4 || d.reacted.most > d.reacted.least*3/2 // not a reaction to the response beyond
	if reads.episodes > 8*d.parts && alone && (h.mostly(&reads) || d.odds > 1000) {
		h.moveToSpurious(Implied, &d.reads)
		h.moveToSpurious(TimeOut, &d.lateReads)
	}
	// Those before an answer were if the first transmission was always answered after the same time, which is that of others.
	e := &d.elapsed
	const enough = 3
	alike := e.n >= enough && e.most < e.least*5/4 && e.least > h.Interval.least*5/4
	if h.clean.n >= enough {
		alike = e.n >= enough && h.clean.mean >= e.least*2/3 && e.most < 2*h.clean.mean
	}
	early := alike || h.mostly(&d.early)
	if early {
		h.moveToSpurious(TimeOut, &d.early)
		if h.clean.n < enough {
			h.clean = *e
		}
	}
	if early || late {
		h.moveToSpurious(TimeOut, &d.last)
	}
}

// mostly reports whether most packets were sent again.
func (h *Half) mostly(d *doubt) bool {
	return (d.episodes >= 2 || d.requests >= 16) && 2*d.requests >= h.Requests.Packets-min(h.Requests.Packets, h.AgainRequests.Packets)
}

// moveToSpurious counts episodes as spurious.
func (h *Half) moveToSpurious(from Cause, d *doubt) {
	h.Retransmitted[from].minus(d.sent)
	h.Retransmitted[Spurious].plus(d.sent)
	h.Episodes[from] -= min(d.episodes, h.Episodes[from])
	h.Episodes[Spurious] += d.episodes
	h.AcksLost -= min(h.AcksLost, d.acks)
	h.LostDownstream -= min(h.LostDownstream, d.lost)
}
