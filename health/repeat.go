package health

// repeat has the latest episodes, and what may cause the next one.
type repeat struct {
	list      [12]episode
	n         int
	active    bool // the latest one isn't over
	next      uint32
	at        int64 // when it began
	asked     int64 // when it first asked for an answer
	naks      refusals
	rnrs      refusals
	wait      int64  // ns, the longest that an RNR NAK asked for
	notReady  uint32 // the PSN of the latest RNR NAK, plus 1
	nakAt     int64  // when the latest NAK passed
	nakPSN    uint32 // the first PSN that it or another one since the latest episode asks for
	latest    int64  // when the latest time-out was, and what it sent again first
	latestPSN uint32
	latestEnd uint32    // after all that had been sent then
	tries     uint32    // time-outs in a row for it
	lateOnes  [8]uint32 // PSNs of requests that were only late, plus 1
	lates     uint8
	losses    uint8
	lostOnes  [16]lostOne
	skipped   uint32 // the PSNs from skipped to skippedTo were left out in the episode: lost before they came here, or not needed
	skippedTo uint32
	reads     int64 // when the episode of the latest READ that was sent again began
	answered  int64 // and that of the one that is answered now, and its cause once decided
	readCause Cause
	begun     uint32 // episodes, and those of them for which no reason passed here
	unasked   uint32
	foreseen  uint32 // of these, those whose reason passed soon after, and by how much at most, ns
	lag       int64
}

// reasonPasses notes a reason to go back to a PSN, which passes sooner after the requester has done so than an answer to that can: another clock has recorded it.
func (r *repeat) reasonPasses(h *Half, psn uint32, now int64) {
	if o := r.beganWith(psn); o != nil && o.flags&unforeseen != 0 && now-o.at < max(h.shortestTrip(), shortest) {
		o.flags &^= unforeseen
		r.foreseen, r.lag = r.foreseen+1, max(r.lag, now-o.at)
	}
}

func (r *repeat) latestEpisode() *episode {
	if r.n == 0 || r.list[r.n-1].flags&current == 0 {
		return nil
	}
	return &r.list[r.n-1]
}

// beganWith is the latest episode that began with a PSN; nil: none of the latest ones did.
func (r *repeat) beganWith(psn uint32) *episode {
	for i := r.n - 1; i >= 0; i-- {
		if r.list[i].psn == psn {
			return &r.list[i]
		}
	}
	return nil
}

func (r *repeat) close() {
	if o := r.latestEpisode(); o != nil {
		o.flags &^= current
	}
}

// goesOn ends the present episode: the requester sends something new, after what it had sent before end. If it has sent again more than the first packet, it
// sends all of that again.
func (r *repeat) goesOn(end uint32) {
	if o := r.latestEpisode(); o != nil && o.requests.Packets > 1 && r.skipped == r.skippedTo {
		r.skipped, r.skippedTo = r.next, end
	}
	r.close()
	for i := range r.list[:r.n] {
		r.list[i].flags |= wentOn
	}
}

// ends corrects where what had been sent ends: where the next request begins, or once it is known how many PSNs the last READ takes.
func (r *repeat) ends(was, is uint32) {
	for i := range r.list[:r.n] {
		if o := &r.list[i]; o.end == was {
			o.end = is
		}
	}
}

// noteAgain notes a packet that came again: it may be answered.
func (r *repeat) noteAgain(p *Packet, psns uint32) {
	psn := p.PSN
	for i := range r.list[:r.n] {
		o := &r.list[i]
		if o.flags&ofRead != 0 && (ahead(o.psn, psn) < 0 || ahead(o.psn, psn) >= int32(psns)) {
			continue // no answer to it counts
		}
		if psn == o.psn {
			if o.tries++; o.came == 0 {
				o.tried = 0
			}
		}
		if o.came == 0 && o.tried == 0 && asks(p) {
			o.tried = p.Time
			if o.flags&wentOn == 0 {
				o.rounds++
			}
		}
		if o.allResent++; o.flags&ofRead != 0 || ahead(psn, o.end) < 0 {
			o.resent++
		}
		if o.flags&wentOn == 0 {
			o.awaited = o.resent
		}
	}
}

// clear reports whether a packet was sent once only: after the latest time-out.
func (r *repeat) clear(psn uint32) bool { return r.latest == 0 || ahead(psn, r.latestEnd) >= 0 }

func (r *repeat) noteLate(psn uint32) {
	r.lateOnes[r.lates%8] = psn + 1
	r.lates++
}

func (r *repeat) wasLate(psn uint32) bool {
	for _, late := range r.lateOnes {
		if late != 0 && near(psn, late-1) {
			return true // or it was refused because that one was late
		}
	}
	return false
}

// noteRefusal notes a NAK or RNR NAK for a packet: the responder has had none from there on.
func (r *repeat) noteRefusal(psn uint32) {
	for i := range r.list[:r.n] {
		if o := &r.list[i]; ahead(o.psn, psn) >= 0 {
			o.flags |= refusedNow
		}
	}
}

// noteNAK notes that a NAK for a sequence error passed.
func (r *repeat) noteNAK(psn uint32, now int64) {
	if r.nakAt <= r.at || ahead(psn, r.nakPSN) < 0 {
		r.nakPSN = psn
	}
	r.nakAt = now
}

// noteAnswer notes an ACK of all before a PSN. fresh: it may be the answer to a packet that was sent for the first time after the episodes.
func (r *repeat) noteAnswer(acked uint32, now int64, fresh bool) {
	for i := range r.list[:r.n] {
		o := &r.list[i]
		if o.flags&ofRead != 0 || ahead(acked, o.psn) <= 0 {
			continue
		}
		if o.came == 0 {
			o.came = now
		}
		if ahead(acked, o.end) > 0 {
			o.flags |= done
		}
		if o.flags&done == 0 || !fresh {
			o.allAnswers++
		}
		if o.flags&done == 0 {
			o.answers++
		}
	}
}

// noteResponse notes a READ response.
func (r *repeat) noteResponse(psn uint32, now int64) {
	for i := range r.list[:r.n] {
		o := &r.list[i]
		if o.flags&ofRead == 0 {
			continue
		}
		if ahead(psn, o.end) >= 0 {
			o.flags |= done
		}
		if o.psn == psn && o.flags&done == 0 {
			if o.answers++; o.came == 0 {
				o.came = now
			}
		}
	}
}

// noteMSN notes the number of messages that the responder has completed, if it had completed before of them. It counts anew in another connection.
func (r *repeat) noteMSN(msn, before uint32) {
	o := r.latestEpisode()
	if o == nil || o.flags&perhapsAnew == 0 {
		return
	}
	switch d := ahead(msn, before); {
	case d < 0:
		o.flags |= beganAnew
	case msn > o.messages:
		o.flags &^= perhapsAnew
	}
}
