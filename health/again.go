package health

import "github.com/cnpgate/cnpgate/internal/packet"

// passed is what a request is whose PSN was passed before.
type passed uint8

const (
	unclear   passed = iota // the next request tells
	sentAgain               // by the requester
	late                    // sent before others that have passed
	copied                  // by the network, or the capture
)

// pending is a request of which the next one tells what it is.
type pending struct {
	packet Packet
	before int64 // time of the request before it
	hole   bool  // it was missing
	set    bool
}

// behind follows a request whose PSN was passed before.
func (h *Half) behind(p *Packet) {
	if p.Time-h.sent >= farthest {
		h.hops.next(p, h.Requests.Packets)
	}
	if i := h.unsure.find(p.PSN); i >= 0 { // whether more is missing there is no longer known
		h.unsure.fill(i, h.unsure.list[i].psn, h.unsure.list[i].n)
	}
	psns := h.psnsOf(p)
	if p.Opcode.Role() == packet.ReadRequest && h.mtu == 0 { // it may take so many
		psns = responsesTo(p.Message, minimum)
	}
	hole, since := h.holes.comes(p.PSN, psns, &h.recent)
	if hole {
		h.Goodput += uint64(p.Data)
	}
	if what := h.passed(p, hole, since); what != unclear {
		h.take(p, what, h.sent, hole)
		return
	}
	h.pending = pending{*p, h.sent, hole, true}
}

// passed says what a request is, if that can be said at once: by its number or its hops; as it can't have been sent again yet, or as there was a reason to.
func (h *Half) passed(p *Packet, hole bool, missing int64) passed {
	before := h.recent.find(p.PSN)
	switch {
	case h.flags&oneWay != 0 && hole:
		return late
	case h.flags&oneWay != 0, !hole && h.hops.elsewhere(p, 0, h.Requests.Packets):
		return copied
	case h.ids.known(p.ID):
		return h.byID(p, hole, before)
	case h.repeat.active && !hole && (ahead(p.PSN, h.repeat.next) >= 0 || before != nil && before.time < h.repeat.at && (returnsData(p.Opcode) || h.repeat.lost(p.PSN) == nil)):
		return sentAgain // not since the requester went back
	case h.repeat.active && p.PSN == h.repeat.next:
		return sentAgain
	}
	since, asked := h.repeat.sinceAsked(h, p)
	switch {
	case asked && h.naks.n == 0:
		return unclear
	case asked && since+tick >= h.naks.least*3/4 && !(hole && sendsAll(h, p)), p.Time-h.sent >= h.silence():
		return sentAgain
	case hole && (asked && since+tick < h.naks.least*3/4 || p.Time-missing < h.clean.least*9/10):
		return late
	case !hole && p.Time-h.sends.lastLike(p, before) < h.copiedWithin():
		switch {
		case returnsData(p.Opcode) && h.reads.responseBeyond(h, p) > h.sends.lastLike(p, before):
			return sentAgain
		case h.repeat.at != 0 && !h.twins():
			return unclear
		}
		return copied
	case !hole && returnsData(p.Opcode):
		return sentAgain
	}
	return unclear
}

// byID says what a request is if the sender numbers its packets.
func (h *Half) byID(p *Packet, hole bool, before *sent) passed {
	older := h.ids.older(p.ID)
	switch {
	case hole && older:
		return late
	case !hole && before != nil && before.id == p.ID:
		return copied
	case !hole && older && (before != nil || h.read.Time == 0) && // it has passed: how many PSNs a READ took may not have been known
		h.repeat.beganAfter(p) && int32(h.ids.latest-p.ID) == ahead(h.next, p.PSN)-1: // what was new since took one number each
		return copied
	}
	return sentAgain
}

// beganAfter reports whether a packet was sent before the requester went back for the first time, if that is remembered. One that was sent then, but was overtaken,
// has a number as much lower as its PSN.
func (r *repeat) beganAfter(p *Packet) bool {
	if r.begun == 0 {
		return true
	}
	began := &r.list[0]
	lower := int32(int16(p.ID - began.id))
	return int(r.begun) == r.n && lower < 0 && lower != ahead(p.PSN, began.psn)
}

// lastLike is when a packet like one passed before, at the latest; 0: it isn't known. before is the one with its PSN that is remembered, nil: none is.
func (a *answers) lastLike(p *Packet, before *sent) int64 {
	if before == nil {
		at, _ := a.since(p.PSN)
		return at
	}
	if before.data != clamp(p.Data) {
		return 0
	}
	return before.time
}

// atOnce is how soon after a packet comes a copy that a network or a capture makes, if the requester is known to send again, ns.
const atOnce = 5 * ms / 1000

// copiedWithin is how soon after a packet the same one is a copy, as the requester can't have sent it again yet, or doesn't send anything again, ns.
func (h *Half) copiedWithin() int64 {
	if h.repeat.at != 0 {
		return atOnce
	}
	return min(h.soonest(), ms/4)
}

// twins reports whether the capture has many packets twice.
func (c *Counts) twins() bool { return 4*c.Duplicates > c.Requests.Packets+c.Responses.Packets }

// eachTwice reports whether the capture may have each request twice.
func (c *Counts) eachTwice() bool { return 5*c.Duplicates > 2*c.Requests.Packets }

// soonest is how soon after a request the same one can come again because of an answer, ns.
func (t *timing) soonest() int64 {
	if t.clean.n == 0 || t.naks.n == 0 {
		return max(ms/20, t.clean.least*9/10)
	}
	return (t.clean.least + t.naks.least) * 9 / 10
}

// sinceAsked is how long ago a NAK asked for just this request, or an RNR NAK permitted it, ns.
func (r *repeat) sinceAsked(h *Half, p *Packet) (since int64, asked bool) {
	for _, all := range [...]*refusals{&r.naks, &r.rnrs} {
		if n := all.of(h, p.PSN, p.Time); n != nil && n.psn == p.PSN {
			return p.Time - n.at - n.timer*4/5, true
		}
	}
	return 0, false
}

// settle says what the request is that waits. A requester that goes back sends what follows next; if it sends only what is missing, it was asked to.
func (h *Half) settle(next *Packet) {
	p := &h.pending.packet
	h.pending.set = false
	hole, before := h.pending.hole, h.recent.find(p.PSN)
	since, asked := h.repeat.sinceAsked(h, p)
	asked = asked && since >= 0
	end := (p.PSN + h.psnsOf(p)) & packet.PSNMask
	what := copied
	goesOn := next != nil && (ahead(next.PSN, h.next) >= 0 || h.repeat.active && next.PSN == h.repeat.next)
	alone := goesOn && next.PSN != end && end != h.next && (sendsAll(h, p) || !asked && !returnsData(p.Opcode) && h.repeat.lost(p.PSN) != nil)
	switch soon := !asked && !hole && p.Time-h.sends.lastLike(p, before) < h.copiedWithin(); {
	case soon: // copies of others come between those
		r := &h.repeat
		if next != nil && next.PSN == end && (r.active && ahead(end, r.next) < 0 || !r.active && r.nakAt > r.at) {
			what = sentAgain
		}
	case next != nil && !alone && ahead(next.PSN, h.next) < 0 && ahead(next.PSN, end) >= 0 &&
		(!h.holes.has(next.PSN, &h.recent) || h.repeat.active && ahead(p.PSN, h.repeat.next) >= 0 && h.OutOfOrder+h.overtaken == 0): // or it follows what was sent again before, and so does the next
		what = sentAgain
	case asked && !alone && (!hole || since+tick >= h.naks.least*3/4):
		what = sentAgain
	case hole:
		what = late
	case alone:
	case returnsData(p.Opcode), end == h.next && (before == nil || p.Time-before.time >= h.soonest()), h.repeat.at != 0 && (before == nil || p.Time-before.time >= atOnce):
		what = sentAgain
	}
	h.take(p, what, h.pending.before, hole)
}

// sendsAll reports whether a requester that goes back to a packet sends all that follows it, too.
func sendsAll(h *Half, p *Packet) bool { return h.flags&goesBackN != 0 && !returnsData(p.Opcode) }

// take counts a request whose PSN was passed before. The one before it was sent at a time.
func (h *Half) take(p *Packet, what passed, before int64, hole bool) {
	switch {
	case what == sentAgain && hole:
		h.LostUpstream++
		h.repeat.lostOnes[h.repeat.losses%16] = lostOne{p.PSN + 1, p.ID}
		h.repeat.losses++
		h.repeat.sendsAgain(h, p, true, before)
	case what != late && h.cameAfterAll(p, what):
		h.OutOfOrder++
		h.repeat.noteAgain(p, 1)
	case what == sentAgain:
		h.repeat.sendsAgain(h, p, false, before)
	case what == late:
		h.OutOfOrder++
		h.repeat.noteLate(p.PSN)
		h.repeat.noteAgain(p, 1)
	default:
		h.copied[0].add(&h.Counts, p, h.hops.elsewhere(p, 0, h.Requests.Packets) || h.ids.known(p.ID))
		h.repeat.noteAgain(p, 1)
	}
}

// copies are packets in a row that seem to have been copied.
type copies struct {
	next uint32 // the PSN after them
	row  Amount
}

// add counts a packet that seems to have been copied. elsewhere: it was captured at another place, too.
func (s *copies) add(c *Counts, p *Packet, elsewhere bool) {
	c.Duplicates++
	switch {
	case elsewhere:
		c.copies++
		return
	case p.PSN != s.next:
		s.row = Amount{}
	}
	s.next = (p.PSN + 1) & packet.PSNMask
	s.row.add(p.Len)
}

// end says by the next new one what the packets were: who goes back sends all that follows, too, and nobody is asked for the last packet alone that it has
// sent, as a NAK needs one behind it (IBTA 9.7.5.2.8). So one, or several that end before the latest, were copied; several in a row up to the latest were sent
// again, unless all packets come twice: of a network that copies some, so many next to each other are rare.
func (s *copies) end(c *Counts, sentAgain *Amount, next uint32) {
	const several = 3
	switch n := s.row.Packets; {
	case n == 1 || ahead(next, s.next) > 0:
		c.copies += n
	case n >= several && !c.eachTwice():
		c.Duplicates -= min(n, c.Duplicates)
		sentAgain.plus(s.row)
		c.Retransmitted[Unknown].plus(s.row)
	}
	s.row = Amount{}
}

// lostOne is a request that counts as lost before it came here, as it was sent again.
type lostOne struct {
	psn uint32 // plus 1; 0: none
	id  uint16 // of the one that was sent again
}

// lost is the note of a request that counts as lost; nil: there is none.
func (r *repeat) lost(psn uint32) *lostOne {
	for i := range r.lostOnes {
		if r.lostOnes[i].psn == psn+1 {
			return &r.lostOnes[i]
		}
	}
	return nil
}

// cameAfterAll reports whether a request counts as lost, because it was sent again before it came. By its number it was sent before that, or the requester
// can't have sent it alone.
func (h *Half) cameAfterAll(p *Packet, what passed) bool {
	l, o := h.repeat.lost(p.PSN), h.repeat.beganWith(p.PSN)
	if o != nil && (o.flags&(missed|upstream) == 0 || o.flags&wasLate != 0) {
		o = nil
	}
	switch {
	case l == nil && o == nil:
		return false
	case h.ids.known(p.ID):
		if what != sentAgain || !(l != nil && int16(p.ID-l.id) < 0 || o != nil && int16(p.ID-o.id) < 0) {
			return false
		}
	case what == sentAgain, h.twins(), h.hops.elsewhere(p, 0, h.Requests.Packets), returnsData(p.Opcode):
		return false
	}
	if o != nil {
		o.flags |= wasLate
	}
	if l != nil {
		*l = lostOne{}
		h.LostUpstream -= min(h.LostUpstream, 1)
	}
	return true
}

// farthest is how long the path takes between two places of a capture at most, ns: package replay leaves out copies that come later.
const farthest = 5 * ms

// hops are the TTL or hop limit of the latest new request, and of the latest new response, and how often that of requests changed: one is forgotten each changesLast requests.
type hops struct {
	latest  [2]uint8
	changes uint8
	at      uint32 // of the latest change: how many requests had come
}

const (
	changesLast = 8
	mostChanges = 256 / changesLast
)

// next takes a new request, and how many had come before it.
func (h *hops) next(p *Packet, requests uint64) {
	if p.Hops != h.latest[0] {
		h.change(p, uint32(requests))
	}
}

func (h *hops) change(p *Packet, requests uint32) {
	if h.latest[0] != 0 {
		h.changes, h.at = min(h.changesBy(requests)+1, mostChanges), requests
	}
	h.latest[0] = p.Hops
}

func (h *hops) changesBy(requests uint32) uint8 {
	return h.changes - uint8(min(uint32(h.changes), (requests-h.at)/changesLast))
}

// elsewhere reports whether a packet that has come before was captured at another place of the path: a router has decremented its TTL or hop limit. What the
// sender sends again takes as many hops as what it sends for the first time, unless it was silent, as the path may have failed, or its packets take paths of
// different lengths. kind: 0 for a request, 1 for a response; requests: how many have come.
func (h *hops) elsewhere(p *Packet, kind int, requests uint64) bool {
	const several = 4
	had := h.latest[kind]
	return p.Hops != had && had != 0 && (kind != 0 || h.changesBy(uint32(requests)) < several)
}

// earlier is a request from before the first one that was followed: sent again, late, or the capture began in a retransmission.
func (h *Half) earlier(p *Packet) {
	if h.flags&oneWay != 0 || h.ids.older(p.ID) || p.Time-h.Begun < atOnce {
		h.OutOfOrder++
		return
	}
	what := sentAgain
	if before := h.recent.find(p.PSN); h.hops.elsewhere(p, 0, h.Requests.Packets) || before != nil && p.Time-before.time < atOnce {
		what = copied
	}
	if what == sentAgain && p.Time-h.Begun < shortest {
		h.Perhaps.add(p.Len) // late, unless the capture began just before
	}
	h.take(p, what, h.sent, false)
}
