package health

import "github.com/cnpgate/cnpgate/internal/packet"

// response follows a packet of the responder.
func (h *Half) response(p *Packet) {
	h.Responses.add(p.Len)
	if p.CE {
		h.CE++
	}
	if p.HasAETH && p.Syndrome>>5 != 0 && h.refused(p) {
		return
	}
	h.flags |= answered
	if p.Opcode.HasPayload() {
		h.readResponse(p)
	}
	h.acknowledge((p.PSN+1)&packet.PSNMask, p)
}

// refused follows a NAK or RNR NAK. It reports false for an AETH that is neither.
func (h *Half) refused(p *Packet) bool {
	r := &h.repeat
	switch p.Syndrome >> 5 {
	case 1: // RNR NAK
		if n := r.rnrs.of(p.PSN, p.PSN); n == nil || n.psn != p.PSN || p.Time-n.at > ms/20 {
			h.RNRNAKs++
		}
		r.rnrs.add(refusal{psn: p.PSN, at: p.Time, timer: rnrTimers[p.Syndrome&31]})
		r.notReady = p.PSN + 1
	case 3:
		code := min(int(p.Syndrome&31), NAKCodes-1)
		if n := r.naks.of(p.PSN, p.PSN); code == 0 && n != nil && n.psn == p.PSN && p.Time-n.at < ms/20 {
			return true // the same one twice
		}
		h.NAKs[code]++
		if code == 0 {
			h.sequenceError(p)
		}
	default:
		return false
	}
	if r.attempts.psn == p.PSN { // it asks for the packet: what it has got of it doesn't show
		r.attempts.n, r.check.open = 0, false
	}
	h.flags |= answered
	h.acknowledge(p.PSN, p)
	return true
}

// sequenceError is a NAK that asks for a packet.
func (h *Half) sequenceError(p *Packet) {
	r := &h.repeat
	r.nakAt = p.Time
	notReady := r.notReady == p.PSN+1
	again := r.naks.add(refusal{psn: p.PSN, at: p.Time, notReady: notReady})
	if h.flags&started == 0 || again || notReady || h.holes.find(p.PSN) >= 0 {
		return
	}
	for _, late := range r.lateOnes {
		if late == p.PSN+1 {
			return // it was only late
		}
	}
	if d := ahead(p.PSN, r.skipped); d >= 0 && d < ahead(r.skippedTo, r.skipped) {
		h.LostUpstream++ // when it was sent again
		return
	}
	if d := ahead(p.PSN, h.next); d < 0 && ahead(p.PSN, h.base) >= 0 {
		h.LostDownstream++
	}
}

// rnrTimers are in ns (IBTA table 45).
var rnrTimers = func() (t [32]int64) {
	for i, hundredths := range [32]int64{
		65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384,
		24576, 32768, 49152,
	} {
		t[i] = hundredths * ms / 100
	}
	return t
}()

// acknowledge notes that all PSNs before one have come. The packet that says so names a PSN.
func (h *Half) acknowledge(acked uint32, p *Packet) {
	if h.flags&started == 0 {
		h.answers.acked, h.answers.known = acked, true
		return
	}
	if over := ahead(acked, h.next); over > 0 {
		h.beyond(acked, uint32(over))
	}
	more := ahead(acked, h.answers.acked)
	if more <= 0 && h.answers.at != 0 {
		h.acknowledgedAgain(p)
		return
	}
	if s := h.recent.find(p.PSN); s != nil && !s.asks && !p.Opcode.HasPayload() && p.Syndrome>>5 == 0 {
		h.unasked(p.Time)
	}
	if ahead(acked, h.repeat.check.end) > 0 { // answers come in order: those to what was sent again have come
		if h.repeat.check.open {
			dbg("CLOSED at %.3f %+v", float64(p.Time%1e12)/1e6, h.repeat.check)
		}
		h.repeat.check.open = false
	}
	if outstanding := ahead(h.next, h.answers.acked); h.Window > 1 && outstanding >= int32(h.Window-h.Window/10) && p.Time > h.sent {
		h.flags |= blocked
	}
	if probe, ok := h.probes.answer(p.PSN); ok && more > 0 {
		h.timed(&probe, p.Time)
	}
	h.NotCaptured += h.holes.acknowledged(acked)
	h.resolve(acked, p.Time)
	h.delivered(acked)
	h.answers.add(acked, p.Time)
	h.flags &^= partial
}

// beyond is an answer to requests that did not pass here.
func (h *Half) beyond(acked, n uint32) {
	if n <= h.loose || n > maxGap {
		return
	}
	h.NotCaptured += uint64(n - h.loose)
	h.next, h.loose = acked, 0
}

func (h *Half) timed(o *probe, now int64) {
	took := now - o.time
	if took < 0 {
		return
	}
	if o.read {
		h.ReadRTT.add(uint64(took))
	} else {
		h.RTT.add(uint64(took))
	}
	h.clean.add(took)
	h.decide()
}

// resolve says which transmission of the oldest packet the ACK answers, now that it has come. Those after that one were spurious.
func (h *Half) resolve(acked uint32, now int64) {
	r := &h.repeat
	a := &r.attempts
	if a.n < 2 || ahead(acked, a.psn) <= 0 {
		return
	}
	const enough = 3 // round trips: one of the first ones may have been long
	if h.clean.n < enough {
		h.undecided(now)
		a.n = 0
		return
	}
	best, nearest := 0, int64(1)<<62
	for i := range a.list[:a.n] {
		if a.list[i].at == 0 {
			continue
		}
		took := now - a.list[i].at
		if d := max(took-h.clean.mean, h.clean.mean-took); took >= h.clean.least*4/5 && d < nearest {
			best, nearest = i, d
		}
	}
	const many = 16 // round trips: fewer may have missed the shortest one
	shortest := h.clean.least / 2
	if h.clean.n >= many {
		shortest = h.clean.least * 9 / 10
	}
	for i := best + 1; i < a.n; i++ {
		if now-a.list[i].at < shortest {
			h.spurious(&a.list[i])
		}
	}
	a.n = 0
}

// acknowledgedAgain is an ACK that acknowledges nothing new (see check and lateAcks).
func (h *Half) acknowledgedAgain(p *Packet) {
	r := &h.repeat
	if p.Opcode.HasPayload() || p.Time-r.check.at < h.clean.least*4/5 {
		return
	}
	if p.Syndrome>>5 != 0 {
		r.check.open = false
		return
	}
	h.repeated(p.Time)
}

// unasked is an ACK of a packet that did not ask for one. If the responder sends no such ACKs otherwise, it is to a packet that it got again.
func (h *Half) unasked(now int64) {
	switch {
	case !h.repeat.check.open:
		h.flags |= coalesces
	case h.flags&coalesces == 0:
		h.repeated(now)
	}
}

// repeated counts an ACK to a packet that the responder got again.
func (h *Half) repeated(now int64) {
	c := &h.repeat.check
	if c.repeated++; c.open && c.repeated >= c.resent && h.repeat.next == c.end { // all was sent again
		h.proved(now)
	}
}

// proved says that all that was sent again had come before: what was in doubt was spurious.
func (h *Half) proved(now int64) {
	r := &h.repeat
	c, a := &r.check, &r.attempts
	dbg("PROVED at %.3f episodes %d packets %d of resent %d", float64(now%1e12)/1e6, c.episodes, c.doubt.Packets, c.resent)
	if c.episodes > 0 {
		if a.n > 1 && a.list[0].at != 0 {
			r.elapsed.add(now - a.list[0].at)
		}
		if r.active && r.cause == TimeOut && !r.late.counting {
			r.cause = Spurious
		}
		a.n, r.episodes, r.undecided = 0, 0, Amount{}
		h.move(c.doubt, c.episodes)
		h.LostDownstream -= min(h.LostDownstream, c.lost)
	}
	*c = check{open: true, at: c.at, end: c.end}
}

// move makes time-outs spurious.
func (h *Half) move(sent Amount, episodes uint64) {
	if h.reads.cause == TimeOut {
		h.reads.cause = Spurious
	}
	h.Retransmitted[TimeOut].minus(sent)
	h.Retransmitted[Spurious].plus(sent)
	episodes = min(episodes, h.Episodes[TimeOut])
	h.Episodes[TimeOut] -= episodes
	h.Episodes[Spurious] += episodes
}

// settleLate decides about all late ACKs, at the end.
func (h *Half) settleLate() {
	l := &h.repeat.late
	const enough = 3
	settled := &l.soon
	switch {
	case l.packets >= enough && l.all.episodes >= 2*l.packets:
		settled = &l.all
	case l.soon.episodes < enough || 2*l.soon.episodes < uint64(h.turn.n):
		return
	case 10*l.soon.episodes > 9*l.all.episodes:
		settled = &l.all // the first ones came before a reaction was seen
	}
	dbg("SETTLE LATE %+v of %+v turn %+v", settled, l, h.turn)
	h.move(settled.sent, settled.episodes)
	h.AcksLost -= min(h.AcksLost, settled.lost)
}

// spurious moves an attempt to the spurious ones.
func (h *Half) spurious(t *attempt) {
	dbg("SPURIOUS attempt at %.3f psn %d sent %+v", float64(t.at%1e12)/1e6, h.repeat.attempts.psn, t.sent)
	h.move(t.sent, 1)
	c := &h.repeat.check
	c.doubt.minus(t.sent)
	c.episodes -= min(c.episodes, 1)
	if t.lost {
		h.LostDownstream -= min(h.LostDownstream, 1)
		c.lost -= min(c.lost, 1)
	}
	if h.repeat.attempts.n == 0 {
		return
	}
	if t == &h.repeat.attempts.list[h.repeat.attempts.n-1] && h.repeat.cause == TimeOut {
		h.repeat.cause = Spurious
	}
}

// undecided keeps apart what was sent again before a round trip was measured.
func (h *Half) undecided(now int64) {
	r := &h.repeat
	a := &r.attempts
	if a.list[0].at == 0 {
		return
	}
	r.elapsed.add(now - a.list[0].at)
	for _, t := range a.list[1:a.n] {
		r.undecided.plus(t.sent)
		r.episodes++
	}
}

// decide says whether the undecided ones were spurious: they were if the first transmission was answered after one round trip.
func (h *Half) decide() {
	r := &h.repeat
	const enough = 3
	if r.episodes == 0 || h.clean.n < enough {
		return
	}
	if h.clean.mean >= r.elapsed.least*2/3 && r.elapsed.most < 2*h.clean.mean {
		h.moveUndecided()
	}
	r.episodes, r.undecided = 0, Amount{}
}

func (h *Half) moveUndecided() {
	dbg("UNDECIDED moved")
	r := &h.repeat
	h.move(r.undecided, r.episodes)
	r.check.doubt.minus(r.undecided)
	r.check.episodes -= min(r.check.episodes, r.episodes)
	h.LostDownstream -= min(h.LostDownstream, r.episodes)
}

// finish completes the counts of a copy.
func (h *Half) finish(now int64) {
	r := &h.repeat
	const alike = 3 // all were answered after the same time: a loss each time would not be so regular
	if r.episodes > 0 && r.elapsed.n >= alike && r.elapsed.most < r.elapsed.least*5/4 && r.elapsed.least > h.Interval.least*5/4 {
		h.moveUndecided()
		h.clean = r.elapsed
	}
	h.settleLate()
	h.LostUpstream += h.holes.missing() + h.reads.holes.missing()
}

// big follows packets of the largest size: a path whose MTU is too small loses all of these, and no others.
type big struct {
	psn      uint32 // one that is outstanding
	waiting  uint32 // its payload; 0: there is none
	Passed   uint32 // the largest payload that was acknowledged
	Stuck    uint32 // the smallest payload of a packet that was sent stuckTries times without being acknowledged
	attempts uint32 // of the packet at again
	again    uint32
}

const stuckTries = 3

// outstanding notes a request.
func (b *big) outstanding(p *Packet) {
	if b.waiting == 0 && p.Data > b.Passed {
		b.psn, b.waiting = p.PSN, p.Data
	}
}

// delivered notes an ACK.
func (h *Half) delivered(acked uint32) {
	b := &h.big
	if b.waiting != 0 && ahead(acked, b.psn) > 0 {
		b.Passed, b.waiting = max(b.Passed, b.waiting), 0
	}
	if s := h.recent.find((acked - 1) & packet.PSNMask); s != nil {
		b.Passed = max(b.Passed, uint32(s.data))
	}
	if ahead(acked, b.again) > 0 {
		b.attempts = 0
	}
}

// stuck notes that a packet is sent again.
func (h *Half) stuck(p *Packet) {
	b := &h.big
	if b.attempts == 0 || b.again != p.PSN {
		b.again, b.attempts = p.PSN, 0
	}
	if b.attempts++; b.attempts >= stuckTries && p.Data > 0 && (b.Stuck == 0 || p.Data < b.Stuck) {
		b.Stuck = p.Data
	}
}
