package health

import "github.com/cnpgate/cnpgate/internal/packet"

// firstAnswers are so many that they tell whether a responder acknowledges what did not ask for it.
const firstAnswers = 64

// response follows a packet of the responder.
func (h *Half) response(p *Packet) {
	if h.pending.set && carriesData(p.Opcode) && returnsData(h.pending.packet.Opcode) {
		h.settle(nil)
	}
	h.Responses.add(p.Len)
	h.dscp[1] = p.DSCP
	h.big.heard = h.big.heard || h.big.attempts > 0
	if p.CE {
		h.CE++
	}
	if ahead((p.PSN+1)&packet.PSNMask, h.answers.acked) > 0 || h.hops.latest[1] == 0 || p.Time-max(h.answers.latest, h.reads.latest) >= farthest {
		h.hops.latest[1] = p.Hops
	} else if h.hops.elsewhere(p, 1, h.Requests.Packets) {
		h.copied[1].add(&h.Counts, p, true)
		return
	}
	if p.HasMSN {
		if h.msn != 0 {
			h.repeat.noteMSN(p.MSN, h.msn-1)
			if ahead(p.MSN, h.msn-1) < 0 {
				h.fell = p.Time
			}
		}
		h.msn = p.MSN + 1
	}
	if p.HasAETH && p.Syndrome>>5 != 0 && h.refused(p) {
		return
	}
	if p.Cut && p.Opcode == packet.RCAcknowledge { // an ACK or a NAK
		h.flags |= answered | blind
		return
	}
	h.flags |= answered
	if carriesData(p.Opcode) {
		h.reads.readResponse(h, p)
	} else {
		h.reads.heard(p)
	}
	h.acknowledge((p.PSN+1)&packet.PSNMask, p)
}

// refused follows a NAK or RNR NAK. It reports false for an AETH that is neither.
func (h *Half) refused(p *Packet) bool {
	r := &h.repeat
	switch p.Syndrome >> 5 {
	case 1: // RNR NAK
		if n := r.rnrs.of(h, p.PSN, p.Time); n == nil || n.psn != p.PSN || p.Time-n.at > ms/20 {
			h.RNRNAKs++
			if s := h.recent.find(p.PSN); s != nil && s.read {
				h.unpaged++
			}
		}
		r.wait = max(r.wait, rnrTimers[p.Syndrome&31])
		r.rnrs.add(refusal{psn: p.PSN, at: p.Time, timer: rnrTimers[p.Syndrome&31]})
		h.big.delivered((p.PSN+1)&packet.PSNMask, h.recent.find(p.PSN)) // it came
		r.notReady = p.PSN + 1
	case 3:
		code := min(int(p.Syndrome&31), NAKCodes-1)
		if n := r.naks.of(h, p.PSN, p.Time); code == 0 && n != nil && n.psn == p.PSN && p.Time-n.at < ms/20 {
			return true // the same one twice
		}
		h.NAKs[code]++
		switch s := h.recent.find(p.PSN); {
		case code == 0:
			r.noteNAK(p.PSN, p.Time)
			r.naks.add(refusal{psn: p.PSN, at: p.Time, notReady: r.notReady == p.PSN+1})
		case s != nil && s.read:
			h.flags |= noRead
		case s != nil:
			h.flags |= noOther
		}
	default:
		return false
	}
	h.repeat.noteRefusal(p.PSN)
	r.reasonPasses(h, p.PSN, p.Time)
	h.reads.refused = passing{p.PSN, p.Time}
	h.flags |= answered
	h.acknowledge(p.PSN, p)
	return true
}

// acknowledge notes that all PSNs before one have come. The packet that says so names a PSN.
func (h *Half) acknowledge(acked uint32, p *Packet) {
	if h.flags&started == 0 {
		h.answers.acked, h.answers.known = acked, true
		return
	}
	if p.Opcode&31 == packet.RCAcknowledge && p.Syndrome>>5 == 0 {
		h.early.disproved(h, acked)
	}
	if over := ahead(acked, h.next); over > int32(h.loose) && over <= maxGap {
		h.early.note(acked, p.Time)
	}
	if h.repeat.n > 0 {
		h.toEpisodes(acked, p)
	} else if h.Responses.Packets <= firstAnswers {
		if s := h.recent.find(p.PSN); s != nil && !s.asks && !s.read {
			h.flags |= unasked
		}
	}
	if p.Syndrome>>5 == 0 {
		h.answers.latest = p.Time
	}
	more := ahead(acked, h.answers.acked)
	if more >= 0 {
		h.own.ack = 0
	}
	if more <= 0 && h.answers.at != 0 {
		return
	}
	if outstanding := ahead(h.next, h.answers.acked); h.Window > 1 && outstanding >= int32(h.Window-h.Window/10) && p.Time > h.sent {
		h.flags |= blocked
	}
	if probe, ok := h.probes.answer(p.PSN); ok && more > 0 {
		h.timed(&probe, p.Time)
	}
	h.NotCaptured += h.holes.acknowledged(acked)
	h.big.delivered(acked, h.recent.find((acked-1)&packet.PSNMask))
	moment := h.clean.mean / 16
	if h.clean.n == 0 {
		moment = ms / 8
	}
	h.answers.add(acked, p.Time, moment, uint32(h.Responses.Packets))
	h.flags &^= partial
}

func (h *Half) timed(o *probe, now int64) {
	took := now - o.time
	if took < 0 || h.EarlyAnswers > 0 { // the clocks or queues of the two directions differ
		return
	}
	if o.read {
		h.ReadRTT.add(uint64(took))
	} else {
		h.RTT.add(uint64(took))
	}
	h.clean.add(took)
}

// toEpisodes shows an answer to the episodes.
func (h *Half) toEpisodes(acked uint32, p *Packet) {
	if carriesData(p.Opcode) {
		h.repeat.noteResponse(p.PSN, p.Time)
	} else if p.Syndrome>>5 == 0 {
		s := h.recent.find(p.PSN)
		h.repeat.noteAnswer(acked, p.Time, ahead(acked, h.answers.acked) > 0 && (s == nil || s.asks || h.flags&unasked != 0))
	}
}

// finish completes the counts of a copy.
func (h *Half) finish() {
	if h.pending.set {
		h.settle(nil)
	}
	h.unresolved()
	h.decide()
}

// unresolved ends the holes that nothing has filled. UC sends nothing again: they were lost. RC can't go on without a packet: what was neither sent again
// nor acknowledged is undecided while the answers pass here, and else did not pass because the capture missed it. Missing READ responses were lost if they
// were asked for again.
func (h *Half) unresolved() {
	switch {
	case h.flags&oneWay != 0:
		h.LostUpstream += h.holes.missing()
	case h.flags&answered == 0:
		h.NotCaptured += h.holes.missing()
	}
	switch {
	case h.early.foreign(h):
		h.EarlyAnswers, h.Lead = h.EarlyAnswers-min(h.early.n, h.EarlyAnswers), 0
	case ahead(h.early.acked, h.next) > 0 && h.early.at != 0 && h.flags&sequel != 0:
		h.NotCaptured += uint64(ahead(h.early.acked, h.next))
	}
	lost, missed := h.reads.unresolved(h)
	h.LostUpstream += lost
	h.NotCaptured += missed
}

// hasAnswer reports whether the answer to a request has passed here.
func (h *Half) hasAnswer(psn uint32) bool {
	return ahead(h.answers.acked, psn) > 0 && h.reads.holes.find(psn) < 0
}
