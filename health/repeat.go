package health

import "github.com/cnpgate/cnpgate/internal/packet"

// repeat is an episode of retransmission, and what may have caused it or the next one.
type repeat struct {
	active    bool
	cause     Cause
	reads     Cause  // of the latest READ request that was sent again
	readsAt   int64  // when its episode began
	at        int64  // when it began
	silent    int64  // ns since the request before that
	next      uint32 // the PSN that follows in the episode
	naks      refusals
	rnrs      refusals
	notReady  uint32 // the PSN of the latest RNR NAK, plus 1
	nakAt     int64  // when the latest NAK passed
	latest    int64  // when the last time-out was, and what it sent again first
	latestPSN uint32
	tries     uint32    // time-outs in a row for it
	lateOnes  [8]uint32 // PSNs of requests that were only late, plus 1
	lates     uint8
	skipped   uint32 // the PSNs from skipped to skippedTo were left out in the episode: lost before they came here, or not needed
	skippedTo uint32
}

const (
	ms    = int64(1e6)
	quiet = 3 * ms // a requester that was silent for less did not time out, if its time-out isn't known

)

// behind is a request whose PSN was passed before.
func (h *Half) behind(p *Packet) {
	i := h.holes.find(p.PSN)
	if i < 0 && h.recent.find(p.PSN) == nil && h.holes.forgotten(p.PSN) {
		i = h.holes.n // it was missing
	}
	follows := h.repeat.active && p.PSN == h.repeat.next
	switch {
	case i >= 0 && h.late(p, follows):
		h.holes.fill(i, p.PSN)
		h.rounds.again(p.PSN, 1) // it may be answered, too
		h.OutOfOrder++
		h.repeat.lateOnes[h.repeat.lates%8] = p.PSN + 1
		h.repeat.lates++
		h.Goodput += uint64(p.Data)
		return
	case i >= 0:
		h.holes.fill(i, p.PSN)
		h.LostUpstream++
		h.Goodput += uint64(p.Data)
		h.again(p, true)
		return
	case i < 0 && h.elsewhere(p, 0): // also in the middle of what is sent again
		h.Duplicates++
		return
	case h.cameAfterAll(p):
		h.rounds.again(p.PSN, 1)
		h.LostUpstream--
		h.OutOfOrder++
		return
	case !follows && h.duplicate(p):
		h.rounds.again(p.PSN, 1)
		h.Duplicates++
		return
	}
	h.again(p, false)
}

// late reports whether a request that was missing is only late: it was sent before others that have passed.
func (h *Half) late(p *Packet, follows bool) bool {
	if h.flags&oneWay != 0 {
		return true
	}
	if h.ids.known(p.ID) {
		return h.ids.older(p.ID)
	}
	if follows {
		return false
	}
	if n := h.repeat.naks.of(p.PSN, h.answers.acked); n != nil {
		soonest := h.naks.least
		if h.naks.n == 0 {
			soonest = h.turn.least
		}
		return p.Time-n.at < max(soonest*3/4, ms/50)
	}
	return !h.repeat.active && p.Time-h.sent < h.silence()
}

// cameAfterAll reports whether a request counts as lost, because it was sent again before it came.
func (h *Half) cameAfterAll(p *Packet) bool {
	s := h.recent.find(p.PSN)
	if s == nil || !s.lost || !h.ids.known(p.ID) || int16(p.ID-s.id) >= 0 || h.LostUpstream == 0 {
		return false
	}
	s.lost = false
	return true
}

// duplicate reports whether the network has made a request that has passed before: the same packet, not another one with its PSN.
func (h *Half) duplicate(p *Packet) bool {
	s := h.recent.find(p.PSN)
	if h.flags&oneWay != 0 {
		return true
	}
	if h.ids.known(p.ID) {
		return s != nil && s.id == p.ID || s == nil && h.ids.older(p.ID) && !h.repeat.active
	}
	if s == nil || h.repeat.asked(p.PSN, h.answers.acked) {
		return false
	}
	if s.id != 0 && s.id != p.ID {
		return false
	}
	limit := min(ms, h.silence())
	if h.clean.n > 0 {
		limit = min(limit, max(h.clean.least/2, ms/20))
	}
	return p.Time-s.time < limit
}

// elsewhere reports whether a packet that has come before was captured at another place of the path: a router has decremented its TTL or hop limit. What the
// sender sends again takes as many hops as what it sends for the first time. kind: 0 for a request, 1 for a response.
func (h *Half) elsewhere(p *Packet, kind int) bool {
	return p.Hops != h.hops[kind] && h.hops[kind] != 0
}

// asked reports whether a NAK has asked for a PSN.
func (r *repeat) asked(psn, acked uint32) bool {
	return r.naks.of(psn, acked) != nil || r.rnrs.of(psn, acked) != nil
}

// again counts a request that was sent again. missed: its first transmission did not pass here.
func (h *Half) again(p *Packet, missed bool) {
	r := &h.repeat
	late := h.lateAgain(p)
	if !late && !h.continues(p) {
		h.beginRepeat(p, missed)
	}
	if !late && r.skipped == r.skippedTo && p.PSN != r.next {
		r.skipped, r.skippedTo = r.next, p.PSN
	}
	if !late {
		r.next = (p.PSN + h.psnsOf(p)) & packet.PSNMask
	}
	h.Retransmitted[r.cause].add(p.Len)
	h.AgainRequests.add(p.Len)
	if h.rounds.n > 0 {
		h.rounds.again(p.PSN, h.psnsOf(p))
		h.rounds.doubt(p.Len)
	}
	if p.Opcode.Role() == packet.ReadRequest {
		h.reads.again(p)
		r.reads, r.readsAt = r.cause, r.at
	}
	h.probes.drop(p.PSN)
	h.ids.again(p.ID)
	h.recent.add(p, missed)
}

// lateAgain reports whether a request belongs to the present episode or the latest one, but was overtaken by what was sent later.
func (h *Half) lateAgain(p *Packet) bool {
	r := &h.repeat
	if h.ids.known(p.ID) {
		return r.at != 0 && h.ids.older(p.ID) && (r.active || p.Time-h.sent < h.silence())
	}
	d := ahead(p.PSN, r.skipped)
	return r.active && d >= 0 && d < ahead(r.skippedTo, r.skipped) && p.PSN != r.next && p.Time-h.sent < h.silence()
}

// psnsOf is how many PSNs a request that is sent again takes.
func (h *Half) psnsOf(p *Packet) uint32 {
	if p.Opcode.Role() == packet.ReadRequest && h.mtu != 0 {
		return h.responsesTo(p.Message)
	}
	return 1
}

// continues reports whether a packet belongs to the episode of the packets before it.
func (h *Half) continues(p *Packet) bool {
	r := &h.repeat
	if !r.active {
		return false
	}
	for _, all := range [...]*refusals{&r.naks, &r.rnrs} {
		if n := all.of(p.PSN, h.answers.acked); n != nil && n.psn == p.PSN && n.at > r.at {
			return false
		}
	}
	d := ahead(p.PSN, r.next)
	return d == 0 || d > 0 && (p.Time-h.sent < h.silence() || ahead(p.PSN, h.answers.acked) > 0) // a time-out begins with the oldest one
}

// beginRepeat begins an episode.
func (h *Half) beginRepeat(p *Packet, missed bool) {
	r := &h.repeat
	h.rounds.close()
	r.cause = h.causeOf(p)
	r.active, r.at, r.silent, r.next = true, p.Time, p.Time-h.sent, p.PSN
	h.Episodes[r.cause]++
	h.big.stuck(p)
	switch r.cause {
	case NAKSequence:
		if n := r.naks.of(p.PSN, h.answers.acked); n != nil {
			h.naks.add(p.Time - n.at)
			r.naks.obeyed(n.psn)
		}
		r.rnrs.obeyed(p.PSN)
	case RNR:
		psn := p.PSN
		if n := r.rnrs.of(psn, h.answers.acked); n != nil { // a NAK for the same one remains
			psn--
		}
		r.naks.obeyed(psn & packet.PSNMask)
		r.rnrs.obeyed(p.PSN)
	case TimeOut:
		h.timedOut(p, missed)
	case Implied:
		lost := h.hasAnswer(p.PSN) && h.reads.lostBehind(p.PSN)
		if lost {
			h.LostDownstream++
		}
		since := h.sinceAnswer(p)
		if since == 0 {
			h.doubts.parts++
		}
		if h.mayTimeOut(r.silent) && !h.reads.jumped(p.PSN) {
			o := h.openRound(p, 0)
			o.cause, o.lost, o.asked, o.silent = Implied, lost, since, r.silent
		}
	}
	if p.Opcode.Role() == packet.ReadRequest && r.cause != TimeOut {
		h.doubts.reads.add(p.Time, h.recent.find(p.PSN))
	}
	if r.cause != TimeOut && r.latestPSN == p.PSN {
		r.latest = p.Time // the next time-out counts from here
	}
	r.skippedTo = r.skipped
}

// causeOf says why an episode begins with a packet.
func (h *Half) causeOf(p *Packet) Cause {
	r := &h.repeat
	if h.flags&blind != 0 {
		return Unknown
	}
	nak, rnr := r.naks.of(p.PSN, h.answers.acked), r.rnrs.of(p.PSN, h.answers.acked)
	if rnr != nil && h.obeysRNR(p.Time-rnr.at, rnr.timer) && (nak == nil || nak.psn != p.PSN || rnr.psn == p.PSN) {
		return RNR
	}
	if nak != nil && (h.obeys(p.Time-nak.at) || p.Time-nak.at < h.reaction()*3/2) {
		if nak.notReady {
			return RNR
		}
		return NAKSequence
	}
	if h.flags&selective != 0 && r.nakAt != 0 && p.Time-r.nakAt < h.silence() {
		return NAKSequence // one NAK is obeyed step by step
	}
	if h.hasAnswer(p.PSN) && p.Time-h.answers.latest < h.back*9/10 {
		return Spurious
	}
	if p.Opcode.Role() == packet.ReadRequest {
		if h.onItsWay(p) {
			return Spurious
		}
		if h.missesResponse(p) {
			return Implied
		}
	}
	if r.nakAt > r.latest && p.Time-r.nakAt < 400*ms && h.idle.n+h.Interval.n > 0 && !h.mayTimeOut(p.Time-h.sent) {
		return NAKSequence // that it was slow to obey
	}
	return TimeOut
}

// onItsWay reports whether a READ was asked for again before a response to it could have come from here to the requester.
func (h *Half) onItsWay(p *Packet) bool {
	return h.notYetThere(h.sinceAnswer(p), p.Time-h.sent) && !h.reads.jumped(p.PSN)
}

// reaction is the least time that the requester takes to react to what passes here, ns; 0: not known. It asks again a little sooner than it goes on, and if
// something was lost, some of the times are those of what was sent again.
func (h *Half) reaction() int64 {
	enough, margin := uint32(3), int64(0)
	if h.NAKs[0] > 0 || h.doubts.parts > 0 {
		enough, margin = 8, 2*ms
	}
	if h.turn.n < enough {
		return 0
	}
	return h.turn.least*9/10 - margin
}

// tooSoon reports whether so long after a response the requester can't have got it yet.
func (h *Half) tooSoon(after int64) bool { return after > 0 && after < h.reaction() }

// notYetThere reports whether a requester that asks for a READ so long after a response, and was silent for so long, can't have got the response yet. If it was
// silent for less than its time-outs seem to take, the time that a reaction takes may be wrong.
func (h *Half) notYetThere(after, silent int64) bool {
	return h.tooSoon(after) && (h.mayTimeOut(silent) || 2*after < h.reaction())
}

// sinceAnswer is how long ago the answer to a READ passed, ns; 0: none did, it isn't known, or the requester has got a part of it, as it asks only for the
// rest.
func (h *Half) sinceAnswer(p *Packet) int64 {
	at, ok := h.answers.since(p.PSN)
	if !ok || h.recent.find(p.PSN) == nil {
		return 0
	}
	return p.Time - at
}

// missesResponse reports whether a requester asks again for a READ because a response has come out of order. If it has asked before, and got nothing new
// since, it is more likely a time-out, unless it was silent for less than that.
func (h *Half) missesResponse(p *Packet) bool {
	r := &h.reads
	if r.latest == 0 || ahead(r.next, p.PSN) <= 1 {
		return false
	}
	after := p.Time - r.latest
	if !h.mayTimeOut(h.withoutProgress(p)) || r.jumped(p.PSN) && !h.slow(after) {
		return true
	}
	return !h.slow(after) && h.obeys(after) && (r.newest > h.repeat.at || ahead(p.PSN, r.from) > 0 || after < 4*h.clean.mean)
}

// withoutProgress is how long a requester that asks for a READ again has got nothing, at most: since its latest request, or since the response before the rest
// that it asks for, ns.
func (h *Half) withoutProgress(p *Packet) int64 {
	latest := h.sent
	if h.recent.find(p.PSN) == nil {
		if at, ok := h.answers.since((p.PSN - 1) & packet.PSNMask); ok {
			latest = max(latest, at)
		}
	}
	return p.Time - latest
}

// hasAnswer reports whether the answer to a request has passed here.
func (h *Half) hasAnswer(psn uint32) bool {
	return ahead(h.answers.acked, psn) > 0 && h.reads.holes.find(psn) < 0
}

// timedOut notes a transmission after a time-out.
func (h *Half) timedOut(p *Packet, missed bool) {
	r := &h.repeat
	overdue, again := h.overdue(p), r.latest != 0 && r.latestPSN == p.PSN
	if r.latest == 0 {
		if p.Opcode.Role() != packet.ReadRequest {
			h.turn = span{}
		}
	} else {
		h.spacing.add(p.Time - r.latest)
		const shortest = ms / 2 // a shorter one is no time-out, but a second beginning
		if again && p.Time-r.latest > shortest && h.RNRNAKs == 0 {
			h.Interval.add(p.Time - r.latest)
		}
	}
	r.latest, r.latestPSN = p.Time, p.PSN
	if r.tries++; !again {
		r.tries = 1
	}
	h.unheard(p)
	first := int64(0)
	if s := h.recent.find(p.PSN); s != nil && !again {
		first = s.time
	} else if at, ok := h.sends.since(p.PSN); ok && !again && !missed {
		first = at
	}
	o := h.openRound(p, first)
	if idle := p.Time - max(h.sent, h.answers.latest); o.read && h.slow(idle) {
		h.idle.add(idle)
	}
	if o.silent = r.silent; o.read && !h.reads.jumped(p.PSN) {
		o.asked = h.sinceAnswer(p)
	}
	if h.hasAnswer(p.PSN) {
		o.since = max(p.Time-h.answers.latest, 1)
		if h.doubts.rounds++; !again {
			h.doubts.packets++
		}
		at, ok := h.answers.since(p.PSN)
		switch lost := ok && p.Time-at > h.silence(); { // a requester that is slow to read an ACK has not lost it
		case lost && o.read && h.reads.lostBehind(p.PSN):
			o.lost = true
			h.LostDownstream++
		case o.read:
		case lost:
			o.ackLost = true
			h.AcksLost++
		}
		return
	}
	if first != 0 {
		age := p.Time - max(first, h.answers.at)
		if !r.asked(p.PSN, h.answers.acked) {
			h.idle.add(age)
		}
		if !overdue {
			h.soon.add(age)
		}
	}
	if o.lost = !missed && overdue && h.flags&answered != 0; o.lost {
		h.LostDownstream++
	}
}

// overdue reports whether an ACK should have come before a packet was sent again: a packet from there on asked for it longer than a round trip ago.
func (h *Half) overdue(p *Packet) bool {
	if h.clean.n == 0 || h.probes.n == 0 {
		return h.probes.n > 0 || h.repeat.tries > 0 && h.repeat.latestPSN == p.PSN || p.AckReq
	}
	o := &h.probes.list[0]
	return p.Time-o.time > 2*h.clean.mean
}
