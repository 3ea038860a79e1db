package health

import "github.com/cnpgate/cnpgate/internal/packet"

// reads are the responses to READ requests.
type reads struct {
	next    uint32 // after the highest PSN of a response
	inside  bool   // a message of responses isn't complete
	known   bool
	holes   holes
	latest  int64 // time of the latest response
	asked   int64 // when READs were last sent again, and from which PSN on
	from    uint32
	upTo    uint32      // before which one: what had been sent then
	latter  uint32      // the PSN of the latest of these READs
	rounds  [2]int64    // when the requester last went back to READs, and before that, or sent something new
	seen    uint32      // the PSN after the highest of a response at that time
	newest  int64       // time of the latest response that had not passed before
	filled  int64       // time of the latest one that was missing before
	after   uint32      // the PSN after the latest response
	times   [32]passing // the latest responses, by PSN
	refused passing     // the latest NAK or RNR NAK: it acknowledges all before it
	jumps   [3]jump
	jump    uint32
	ids     ids
}

// passing is when a response passed last.
type passing struct {
	psn uint32 // plus 1
	at  int64
}

func (r *reads) heard(p *Packet) { r.times[p.PSN%uint32(len(r.times))] = passing{p.PSN + 1, p.Time} }

// heardAt is when the response with a PSN passed last; 0: not lately.
func (r *reads) heardAt(psn uint32) int64 {
	if t := &r.times[psn%uint32(len(r.times))]; t.psn == psn+1 {
		return t.at
	}
	return 0
}

// covers reports whether the response with a PSN, or one behind it, had passed before it was asked for again.
func (r *reads) covers(psn uint32) bool {
	return r.asked != 0 && ahead(psn, r.from) >= 0 && ahead(psn, r.seen) < 0
}

// jump is where a response came out of order.
type jump struct {
	from, to uint32 // the PSN after the response before, and its own
	at       int64
}

// ask notes a READ request.
func (r *reads) ask(p *Packet) {
	if !r.known {
		r.next, r.known = p.PSN, true
	}
}

// again notes a READ request that was sent again.
func (r *reads) again(p *Packet, upTo uint32, reach int32, newest int64) {
	if d := ahead(p.PSN, r.from); r.asked == 0 || d < 0 || d > reach {
		r.from = p.PSN
	}
	if ahead(p.PSN, r.latter) <= 0 || r.asked == 0 {
		r.rounds = [2]int64{p.Time, max(r.rounds[0], newest)}
	}
	r.asked, r.seen, r.upTo, r.latter = p.Time, r.next, upTo, p.PSN
}

// passedLast reports whether the response with a PSN, if it is asked for again, has passed since the requester last asked for it: what it had been sent
// before, it has dropped, as one before it was missing.
func (r *reads) passedLast(h *Half, psn uint32) bool {
	switch {
	case r.jumped(psn):
		return false
	case r.asked == 0, ahead(psn, r.seen) >= 0:
		return r.heardAt(psn) != 0 || ahead(psn, r.next) < 0 && r.holes.find(psn) < 0 && r.holes.more == 0
	}
	o := h.repeat.of(h.repeat.answered)
	return o != nil && o.at == h.repeat.reads && ahead(psn, o.psn) >= 0 && uint64(ahead(psn, o.psn)) < o.responses.Packets
}

// unresolved are the responses that are missing: lost if they were asked for again, else not captured, unless a requester that sends only what is missing may ask yet.
func (r *reads) unresolved(h *Half) (lost, missed uint64) {
	for _, o := range r.holes.list[:r.holes.n] {
		switch {
		case o.at <= r.asked && ahead(o.psn, r.from) >= 0:
			lost += uint64(o.n)
		case h.AgainRequests.Packets > 0 && h.flags&goesBackN == 0 && ahead(h.next, o.psn) <= h.most:
		case o.start:
			missed++ // at least: the rest may be requests without data
		default:
			missed += uint64(o.n)
		}
	}
	return lost, missed + r.holes.more
}

// readResponse follows a READ response.
func (r *reads) readResponse(h *Half, p *Packet) {
	h.learnMTU(p, &h.mtus.responder)
	at := placeOf(p.Opcode)
	if at&first != 0 && h.flags&started != 0 && r.latest == 0 {
		r.next, r.known = p.PSN, true
	}
	before, back := r.heardAt(p.PSN), ahead(p.PSN, r.after) < 0
	r.follow(h, p)
	d := ahead(p.PSN, r.next)
	switch {
	case !r.known, d > maxGap, d < -h.reach():
		r.holes, r.known = holes{}, true
	case d > 0:
		if !r.inside { // between are requests that ACKs answer
			read := r.firstRead(h, r.next, p.PSN)
			if none := read == p.PSN; none && h.Messages[Send]+h.Messages[Write] == 0 && h.Messages[ReadOp] > 0 && ahead(r.next, h.base) >= 0 && ahead(p.PSN, h.next) < 0 { // all are READs
				read = r.next
			} else if none && at&first == 0 { // it begins before this one
				read = (p.PSN - 1) & packet.PSNMask
			}
			r.next = read
			d = ahead(p.PSN, r.next)
		}
		h.repeat.reasonPasses(h, r.next, p.Time)
		if d > 0 {
			r.holes.add(r.next, min(uint32(d), r.restOfRead(h, uint32(d))), p.Time, !h.recent.since(r.next))
		}
	case d < 0:
		if before > r.asked+h.shortestTrip() && p.Time-before < atOnce && (h.twins() || r.rounds[0]-r.rounds[1] >= atOnce) { // else it was asked for twice
			h.copied[1].add(&h.Counts, p, false)
			return
		}
		r.readAgain(h, p, before != 0, back)
		r.latest = p.Time
		return
	}
	h.ReadGoodput += uint64(p.Data)
	h.copied[1].end(&h.Counts, &h.AgainResponses, p.PSN)
	r.ids.next(p.ID)
	r.newest = p.Time
	r.next = (p.PSN + 1) & packet.PSNMask
	r.latest = p.Time
	if r.inside = at&last == 0; !r.inside {
		h.unsure.endRead(h, r.next)
	}
}

// restOfRead is how many PSNs from the next response on belong to the READ that isn't complete, up to the next request that is known.
func (r *reads) restOfRead(h *Half, most uint32) uint32 {
	for i := range h.recent.list {
		s := &h.recent.list[i]
		if d := ahead(s.psn-1, r.next); s.psn != 0 && d > 0 && uint32(d) < most && !s.read {
			most = uint32(d)
		}
	}
	return most
}

// follow notes where responses come out of order.
func (r *reads) follow(h *Half, p *Packet) {
	r.heard(p)
	// A requester that asks only for what is missing goes on with what is new.
	if d := ahead(p.PSN, r.after); r.latest != 0 && d > 0 && d < maxGap && (p.PSN != r.next || h.flags&goesBackN != 0) {
		at := r.jump
		if j := &r.jumps[at%uint32(len(r.jumps))]; j.at > r.asked && r.holes.find(j.from) >= 0 { // it asks for that one first
			at--
		}
		r.jumps[at%uint32(len(r.jumps))] = jump{r.after, p.PSN, p.Time}
		r.jump = at + 1
	}
	r.after = (p.PSN + 1) & packet.PSNMask
}

// jumped reports whether a response behind one with a PSN came before it, since READs were last sent again.
func (r *reads) jumped(psn uint32) bool {
	for i := range r.jumps {
		if j := &r.jumps[i]; j.at > r.asked && ahead(psn, j.from) >= 0 && ahead(psn, j.to) < 0 {
			return true
		}
	}
	return false
}

// firstRead is the first PSN from one on at which a READ or ATOMIC was asked for, as far as is known; end if none was before it.
func (r *reads) firstRead(h *Half, from, end uint32) uint32 {
	found := end
	for i := range h.recent.list {
		s := &h.recent.list[i]
		if psn := s.psn - 1; s.psn != 0 && s.read && ahead(psn, from) >= 0 && ahead(psn, found) < 0 {
			found = psn
		}
	}
	return found
}

// readAgain is a READ response whose PSN was passed before; heard: it was itself, lately; back: the one before it was behind it. What comes again although no request for it was seen to is sent
// again, too, but for a copy: the capture may show one direction only.
func (r *reads) readAgain(h *Half, p *Packet, heard, back bool) {
	i := r.holes.find(p.PSN)
	if i < 0 && !heard && r.holes.forgotten(p.PSN) {
		i = r.holes.n
	}
	repeated := r.asked != 0 && ahead(p.PSN, r.from) >= 0 && ahead(p.PSN, r.upTo) < 0
	if i >= 0 {
		h.ReadGoodput += uint64(p.Data)
		since := int64(0)
		if i < r.holes.n {
			since = r.holes.list[i].at
		}
		switch {
		case repeated && (r.ids.older(p.ID) || p.Time-r.asked < h.shortestTrip() && !h.recent.asked(p.PSN, since, p.Time-h.shortestTrip())), !repeated && (h.Requests.Packets > 0 || r.ids.older(p.ID)):
			repeated = false
			h.OutOfOrder++
		case repeated && since <= r.asked: // else it may be of what was asked for before, and late
			h.LostUpstream++
		}
		r.holes.fill(i, p.PSN, 1)
		r.newest, r.filled = p.Time, p.Time
	}
	switch {
	case repeated:
		r.ids.again(p.ID)
		h.AgainResponses.add(p.Len)
		h.repeat.respondsAgain(h, p, heard && back)
	case i >= 0:
	case h.twins(), heard && h.Requests.Packets > 0 && h.repeat.at == 0:
		h.copied[1].add(&h.Counts, p, false)
	default:
		h.AgainResponses.add(p.Len)
		h.Retransmitted[Unknown].add(p.Len)
	}
}

// respondsAgain counts a READ response that was sent again for the cause of the READ that it answers: of the latest one from its first response on, or once the
// responder has gone back.
func (r *repeat) respondsAgain(h *Half, p *Packet, back bool) {
	if o := r.of(r.reads); o != nil && (back || o.psn == p.PSN || r.answered == 0) {
		r.answered = r.reads
	}
	if o := r.of(r.answered); o != nil {
		o.responses.add(p.Len)
		return
	}
	h.Retransmitted[r.readCause].add(p.Len)
}

// of is the episode that began at a time; nil: it isn't one of the latest.
func (r *repeat) of(at int64) *episode {
	for i := range r.list[:r.n] {
		if o := &r.list[i]; o.at == at {
			return o
		}
	}
	return nil
}

// responseBeyond is when the first response passed beyond the one that a READ asks for again, since it was last asked for; 0: none did.
func (r *reads) responseBeyond(h *Half, p *Packet) (first int64) {
	after := max(r.heardAt((p.PSN-1)&packet.PSNMask)-1, 0) // when the requester began to expect the one that is missing, at the earliest; many pass in a tick of the capture's clock
	if after == 0 && r.covers(p.PSN) {
		after = r.asked
	}
	for i := range r.times {
		t := &r.times[i]
		if d := ahead(t.psn-1, p.PSN); d > 0 && d <= h.reach() && t.psn != 0 && t.at > after && (first == 0 || t.at < first) {
			first = t.at
		}
	}
	if n := &r.refused; n.at > after && ahead(n.psn, p.PSN) > 0 && (first == 0 || n.at < first) {
		first = n.at
	}
	if i := r.holes.find(p.PSN); first == 0 && i >= 0 && !r.covers(p.PSN) {
		return r.holes.list[i].at
	}
	return first
}
