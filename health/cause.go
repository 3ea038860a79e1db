package health

// causeOf says why an episode began, by what is known now.
func (o *episode) causeOf(h *Half) Cause {
	switch {
	case o.flags&perhapsAnew != 0 && (h.repeat.latestPSN != o.psn || h.repeat.tries < 2):
		return undecided
	case h.flags&blind != 0, h.flags&(answered|unheard) == unheard, 2*h.repeat.unasked > h.repeat.begun, h.early.foreign(h):
		return Unknown
	case o.rnr != 0 && h.obeysRNR(o.at-o.rnr, o.timer):
		return RNR
	case o.rnr != 0 && o.at-o.rnr < o.timer*4/5 && !h.tooSoon(o.at-o.rnr):
		return Unknown // it was asked to wait longer
	case o.nak != 0 && h.beforeTimeOut(o.at-o.nak) && o.flags&refusedBefore != 0:
		return RNR
	case h.jumbled() && (o.beyond != 0 && o.latestNAK != 0 && h.obeys(o.at-o.latestNAK) || o.nak != 0 && o.flags&mayBeImplied != 0 && h.obeys(o.at-o.nak)):
		return Unknown // either
	case o.nak != 0 && h.obeys(o.at-o.nak):
		return NAKSequence
	case o.beyond != 0 && o.implied(h):
		return Implied
	case !h.reads.known && o.mayObey(h) && h.Interval.n == 0 && h.obeys(o.at-o.latestNAK):
		return NAKSequence // what it was asked for first was overtaken; with READs that may have been one whose response was missing
	case h.incomplete():
		return Unknown
	case o.nak != 0 && o.flags&itself != 0 && h.farAway():
		return NAKSequence
	case o.nak != 0:
		if most := o.longestReaction(h); most != 0 && o.at-o.nak > 2*most && o.silent >= h.silence() || h.slow(o.at-o.nak) { // it was lost, too
			return TimeOut
		}
		return Unknown
	case !o.longEnough(h):
		return o.unlessTimeOut(h)
	case o.silent < shortest && (o.flags&ofRead != 0 || h.reorders()), // it didn't wait; something that passed late may have been the reason
		o.flags&(ofRead|mayBeImplied) == ofRead|mayBeImplied && h.OutOfOrder+h.overtaken > 0: // or a response beyond it that passed before
		return Unknown
	case o.answer != 0 && o.onItsWay(h), o.flags&(ofRead|wentOn) == wentOn && o.passed >= manyAnswers:
		return Spurious
	case o.flags&repeated != 0 && h.concluded == Spurious: // the time-out before for the same packet
		return Spurious
	case o.flags&refusedNow == 0 && o.answeredEarly(h):
		return Spurious
	case o.lost(h):
		return TimeOut
	}
	return undecided
}

// undecided is the cause of an episode that may be a time-out after a loss, a spurious one, or of a READ an implied NAK. What all of them have in common may
// tell (decide); else it is unknown.
const undecided = Cause(Causes)

// lost reports whether what the requester waited for before a time-out was lost: an answer passed here, and it had longer to react than it ever takes, or it had got
// the one just before: the path would hold up both; or none did, though it was due; or none comes to many tries.
func (o *episode) lost(h *Half) bool {
	const late = 2
	most := o.longestReaction(h)
	switch {
	case o.beyond != 0 && o.at-o.beyond <= most:
		return false
	case o.beyond == 0 && o.flags&(mayBeImplied|jumped) == mayBeImplied|jumped:
		return false
	case o.answer != 0:
		return most != 0 && o.at-o.answer > late*most || h.slow(o.at-o.answer) || o.flags&ofRead == 0 && o.answered != 0 && h.slow(o.at-o.answered) ||
			o.flags&gotBefore != 0 && h.Episodes[Spurious] == 0 && !h.jumbled()
	case o.flags&ofRead != 0 && h.clean.n > 0 && o.at-max(o.sent, o.first, o.back) <= h.clean.most*5/4: // an answer may just have come
		return false
	case o.answeredTooSeldom(h) && (o.beyond == 0 || !h.obeys(o.at-o.beyond)):
		return true
	case o.prompt(h):
		return true
	case h.clean.n > 0 && o.asked != 0 && (h.clean.n > 1 || h.slow(o.at-o.asked)):
		return o.at-o.asked > late*h.clean.most
	}
	return o.came == 0 && h.repeat.tries >= gaveUp
}

// answeredTooSeldom reports whether fewer answers came than transmissions that asked for one: one, or its answer, was lost. A responder may answer several
// packets at once; those of several transmissions only if they were held up and came together: before here, then they also pass together; behind, that is rare, and taken for a loss.
func (o *episode) answeredTooSeldom(h *Half) bool {
	switch {
	case o.flags&done == 0 || o.answer != 0 || h.Duplicates > 0:
		return false
	case o.flags&(ofRead|alone) != 0:
		return o.answers <= o.awaited
	}
	return o.asked != 0 && o.at-o.asked > h.clean.most && o.answers <= o.rounds && !h.reads.known // a response to a READ may be the answer
}

// prompt reports whether the first answer came just a round trip after the latest transmission that asked for it, or after the only one, of a requester that waits for many of them: an answer
// to an earlier one would have come at any time.
func (o *episode) prompt(h *Half) bool {
	const trips, enough = 64, 3
	return o.flags&ofRead == 0 && o.answer == 0 && o.came != 0 && h.clean.n >= enough && o.silent >= trips*h.clean.most && (o.tripAfter(h, o.tried) || o.tries == 1 && o.tripAfter(h, o.at))
}

// tripAfter reports whether the first answer came just a round trip after a time.
func (o *episode) tripAfter(h *Half, since int64) bool {
	took := o.came - since
	return since != 0 && took >= h.shortestTrip() && took <= 2*h.clean.most
}

// longestReaction is the most time that the requester takes to react to what passes here, ns; 0: not known. That it sent something once an answer had passed
// shows it only of one that always takes about as long, and never went back before an answer came to it; of READs, if there is one at a time, and each comes as
// much later as the answer did. Where packets come late, one that comes after a NAK may be a late one.
func (o *episode) longestReaction(h *Half) (most int64) {
	const enough = 3
	most = 2 * h.back
	if h.OutOfOrder+h.overtaken > 0 {
		return most
	}
	if h.naks.n > 0 {
		most = max(most, h.naks.most)
	}
	if h.implied.n > 1 {
		most = max(most, h.implied.most)
	}
	turn, clean := &h.turn, &h.clean
	steady := h.Episodes[Spurious] == 0 && turn.most < 2*turn.least
	if o.flags&ofRead != 0 { // a clock may have sent them
		steady = o.flags&alone != 0 && 4*(turn.most-turn.least) < clean.most-clean.least
	}
	if most == 0 && steady && turn.n >= enough {
		most = turn.most
	}
	return most
}

// incomplete reports whether what was captured doesn't show what the requester has got, and when: frames are missing, or the clocks of the directions differ.
func (h *Half) incomplete() bool {
	const part = 50
	missed := h.NotCaptured + h.reads.holes.missing()
	if h.provenUp == 0 && h.RNRNAKs > 0 { // all behind what was refused is sent again: also what the capture missed
		missed += h.LostUpstream
	}
	return h.clocksDiffer() || missed*part > h.Requests.Packets+h.Responses.Packets
}

// clocksDiffer reports whether the directions are recorded by different clocks: answers pass before their requests, or a requester goes back before there was
// a reason to.
func (h *Half) clocksDiffer() bool {
	const few = 4
	return h.EarlyAnswers > 0 || h.repeat.unasked*few > h.repeat.begun
}

// reorders reports whether packets of these requests overtake others rather than that they are lost.
func (c *Counts) reorders() bool { return c.OutOfOrder > c.LostUpstream }

// jumbled reports whether what passes here doesn't pass in order, so that a NAK may be for what only comes late, and a response may be missing only for a while.
func (c *Counts) jumbled() bool { return c.OutOfOrder+c.Duplicates+c.overtaken > 0 }

// shortest is the shortest time-out that a requester has, unless one was seen, ns.
const shortest = ms / 4

// longEnough reports whether a requester may have timed out: its timer runs since it sent the packet, or went back, at the latest.
func (o *episode) longEnough(h *Half) bool {
	since := max(o.sent, o.back)
	if since == 0 {
		since = o.first
	}
	return since == 0 || o.at-since >= min(shortest, h.silence()) || o.silent >= h.silence()
}

// unlessTimeOut is the cause of an episode that began too soon for a time-out. The packets that a NAK asked for first may have been overtaken.
func (o *episode) unlessTimeOut(h *Half) Cause {
	asked, implied := o.mayObey(h) && h.obeys(o.at-o.latestNAK), o.flags&(ofRead|mayBeImplied) == ofRead|mayBeImplied || o.flags&ofRead == 0 && h.reads.known
	switch {
	case o.beyond != 0, implied && !asked && o.flags&ofRead != 0:
		return Implied
	case asked && !implied:
		return NAKSequence
	}
	return Unknown
}

// manyAnswers are not all lost in a row.
const manyAnswers = 6

// onItsWay reports whether the answer that had passed before an episode can't have come to the requester yet.
func (o *episode) onItsWay(h *Half) bool {
	after := o.at - o.answer
	return after < h.back*9/10 || h.tooSoon(after) && (o.flags&ofRead == 0 || h.mayTimeOut(o.silent) || 2*after < h.reaction())
}

// implied reports whether a requester asks for a READ response again because one beyond it came: as long after that as it takes to react. If it may have timed
// out, the response that it asks for did not pass, or those before it did, so that nothing else was due; or it is known how long it takes to react.
func (o *episode) implied(h *Half) bool {
	const busy = ms / 20
	after := o.at - o.beyond
	least, _ := h.quickest()
	switch {
	case after < max(h.fastest(), h.back*15/16):
		return false
	case !o.longEnough(h), h.idle.n > 0 && o.silent < h.idle.least/2, h.waits(o.at - max(o.sent, o.back)):
	case h.incomplete():
		return false
	case o.flags&(jumped|part) == 0:
		return (h.naks.n > 1 || h.implied.n > 1 || h.back > 0) && after <= least*17/16+busy
	}
	if h.naks.n < 2 && h.back == 0 {
		return !h.slow(after) && h.beforeTimeOut(after)
	}
	return h.obeys(after)
}

// waits reports whether a requester is known to wait for so long, as it has waited as long for other answers.
func (h *Half) waits(since int64) bool {
	const enough = 8
	return h.clean.n >= enough && since <= h.clean.most && h.Interval.n == 0 && h.Episodes[Spurious] == 0
}

// answeredEarly reports whether answers prove that one to a packet that was sent before the episode came after it. One that comes sooner than a round trip
// after what was sent again is to an earlier packet. And a responder gives at most one answer to each packet: if more come than packets were sent again, one is
// to an earlier packet. Answers come in the order of what they answer: all have come once a packet is acknowledged that was sent for the first time later.
func (o *episode) answeredEarly(h *Half) bool {
	const trips = 4
	if o.flags&missed != 0 || h.repeat.notReady != 0 || h.NAKs[0] > 0 && !h.mayTimeOut(o.silent) { // who isn't ready answers the same packet in different ways
		return false
	}
	if o.came != 0 && o.answer == 0 && o.came-o.at < h.shortestTrip() && (o.sent == 0 || o.came-o.sent < 2*h.clean.most) {
		return true
	}
	if o.flags&ofRead != 0 {
		return o.answers > o.resent && o.flags&askedBefore == 0
	}
	// The last answer comes a trip after the last packet. So the first one is to a packet that was sent a trip before.
	if trip := h.answers.latest - h.sent; o.flags&wentOn == 0 && o.answer == 0 && o.came != 0 && trip > 0 && o.at-(o.came-trip) > (o.at-max(o.first, o.back))/2 && o.first != 0 {
		return true
	}
	if o.answer == 0 && !o.prompt(h) && ahead(o.psn, h.base) > 0 && h.NAKs[0] == 0 && o.answers >= manyAnswers && !(o.asks == 1 && o.at-o.sent >= trips*h.clean.most && o.tripAfter(h, o.at)) && ahead(o.end, o.psn) >= int32(manyAnswers) && 2*o.requests.Packets >= uint64(ahead(o.end, o.psn)) {
		return true // all of these were lost before, or nothing was: if one of many packets had been lost, a NAK would have come (IBTA 9.7.5.2.8); unless what was lost is the only answer that was asked for
	}
	return (o.answers > o.resent || o.allAnswers > o.allResent) && o.requests.Packets >= uint64(ahead(o.end, o.psn))
}

// shortestTrip is the least time from a packet to its answer, ns; 0: not known.
func (t *timing) shortestTrip() int64 {
	const few, enough = 3, 8 // fewer may have missed the shortest one
	if t.clean.n < enough {
		return min(int64(t.clean.n)/few, 1) * t.clean.least / 4
	}
	return t.clean.least * 3 / 4
}

// reaction is the least time that the requester takes to react to what passes here, ns; 0: not known.
func (t *timing) reaction() int64 {
	const enough = 3
	if t.back > 0 {
		return t.back * 9 / 10
	}
	if t.turn.n < enough {
		return 0
	}
	if t.naks.n > 0 {
		return min(t.turn.least, t.naks.least) * 9 / 10
	}
	return t.turn.least * 9 / 10
}

// tooSoon reports whether so long after a response the requester can't have got it yet.
func (t *timing) tooSoon(after int64) bool { return after > 0 && after < t.reaction() }

// conclude counts an episode.
func (o *episode) conclude(h *Half) {
	r, d := &h.repeat, &h.doubts
	if o.flags&beganAnew != 0 {
		h.AgainRequests.minus(o.requests)
		h.AgainResponses.minus(o.responses)
		return
	}
	if o.flags&(missed|ofRead|wentOn) == missed|wentOn && h.flags&goesBackN != 0 && o.requests.Packets == 1 && ahead(o.end, o.psn) > 1 { // it came late: the rest would follow
		h.LostUpstream -= min(h.LostUpstream, 1)
		h.OutOfOrder++
		h.AgainRequests.minus(o.requests)
		return
	}
	cause := o.causeOf(h)
	if o.flags&droppedHere != 0 && (cause == Spurious || cause == undecided) {
		cause = TimeOut
	}
	if o.flags&current != 0 && r.active {
		o.cause = cause
	}
	h.concluded = cause
	if o.at == r.answered || o.at == r.reads {
		r.readCause = min(cause, Unknown)
	}
	if o.flags&droppedHere != 0 { // nothing is in doubt, and nothing was lost elsewhere
		h.again(o, cause)
		return
	}
	if cause != NAKSequence && cause != RNR && o.answer != 0 && o.longEnough(h) && o.flags&(jumped|wentOn) == wentOn {
		if d.rounds++; o.flags&sameAgain == 0 {
			d.packets++
		}
	}
	lost, acks := o.lostBehind(h, cause)
	if o.lostBefore(h, cause) {
		h.provenUp++
	}
	switch {
	case cause == NAKSequence && o.flags&(missed|wasLate|upstream) == upstream:
		h.LostUpstream++
	case o.endLost(h, cause):
		h.LostUpstream += uint64(o.cutOff)
	case cause == Implied && o.flags&part != 0:
		d.parts++
	case cause == Spurious && o.came != 0 && o.first != 0 && o.flags&sameAgain == 0:
		d.took.add(o.came - o.first)
	}
	h.LostDownstream += uint64(lost)
	h.AcksLost += uint64(acks)
	doubt := o.doubt(h, cause)
	if cause == undecided {
		cause = Unknown
		if o.flags&perhapsAnew != 0 {
			h.Perhaps.plus(o.requests)
		}
	}
	if since := max(o.sent, o.first); since != 0 && (doubt != nil || cause == Spurious) {
		d.waited.add(o.at - since)
		if o.flags&sameAgain == 0 {
			d.begun++
		}
	}
	if doubt != nil {
		doubt.add(o, cause)
		doubt.lost, doubt.acks = doubt.lost+lost, doubt.acks+acks
	}
	h.again(o, cause)
}

// lostBefore reports whether an episode proves that a packet was lost before this place, and not just missed by the capture: the responder asked for the one
// that is missing here; a READ response beyond it came, and it was asked for again; or the requester sends just that one again.
func (o *episode) lostBefore(h *Half, cause Cause) bool {
	switch cause {
	case NAKSequence:
		return o.flags&itself != 0 && o.flags&wasLate == 0 && o.flags&(missed|upstream) != 0
	case Implied, TimeOut, undecided:
		return o.endLost(h, cause) || o.flags&(jumped|gap) != 0 && !o.responseLate(h) && (o.answer == 0 && cause != undecided || o.flags&part != 0 && (o.answer == 0 || o.answer < o.back)) ||
			o.flags&missed != 0 && (cause == TimeOut && o.answer == 0 || cause != undecided && o.flags&part == 0 && o.requests.Packets == 1 && ahead(o.end, o.psn) > 1)
	}
	return false
}

// endLost reports whether the last responses to a READ were lost before this place: nothing passed since those before them, and after a time-out they are asked
// for. Where packets pass out of order, they may just be late.
func (o *episode) endLost(h *Half, cause Cause) bool {
	return cause == TimeOut && o.cutOff != 0 && !h.jumbled()
}

// lostBehind is how many packets, or ACKs, an episode proves to have been lost behind this place. A packet that was asked for passed here a round trip before
// the NAK at least, and nothing acknowledged it until it was sent again: it was not overtaken only. No answer came to one that passed here since the requester
// last went back; or it did, and was asked for again.
func (o *episode) lostBehind(h *Half, cause Cause) (lost, acks uint32) {
	sent := o.sent
	if sent == 0 {
		sent = o.first
	}
	switch response := o.flags&behindLost != 0 && !o.endLost(h, cause); cause {
	case NAKSequence:
		switch {
		case o.flags&wasLate != 0 || !h.clocksDiffer() && (o.answer != 0 || o.came != 0 && o.came-o.at < h.shortestTrip()):
			h.overtaken++
		case o.flags&(missed|upstream|itself|part|discarded) == itself && (ahead(o.psn, h.base) >= 0 || o.sent != 0) && o.nak-sent >= h.shortestTrip() && (o.flags&over == 0 || o.sent >= o.back): // sent long ago, if it isn't remembered
			lost = 1
			h.lostAsked++
		case o.flags&discarded != 0:
			h.discarded++
		}
	case Unknown:
		if o.latestNAK != 0 && (o.flags&wasLate != 0 || o.responseLate(h)) {
			h.overtaken++
		}
	case Implied, TimeOut:
		switch {
		case cause == Implied && o.responseLate(h):
			h.overtaken++
		case response:
			lost = 1
			h.lostBack++
		case cause == Implied:
		case o.answer != 0 && o.flags&ofRead == 0:
			acks = 1
		case o.came != 0 && o.answer == 0 && o.flags&(missed|jumped|gap|due) == due && sent != 0 && sent >= o.back:
			lost = 1
		}
	}
	return lost, acks
}

// responseLate reports whether the READ response that is asked for again passed here behind one that was sent after it: before it was asked for again, or
// sooner than an answer to that can come.
func (o *episode) responseLate(h *Half) bool {
	return o.flags&jumped != 0 && (o.beyond != 0 && o.flags&heard != 0 && o.answer > o.beyond || o.came != 0 && o.came-o.at < h.shortestTrip())
}

// again counts what an episode has sent again.
func (c *Counts) again(o *episode, cause Cause) {
	c.Retransmitted[cause].plus(o.requests)
	c.Retransmitted[cause].plus(o.responses)
	c.Episodes[cause]++
}
