package health

import "github.com/cnpgate/cnpgate/internal/packet"

// rounds are the latest time-outs, and READs that may have timed out, of which it isn't decided yet whether they were spurious: whether an answer to what was
// sent before comes, or came, to the requester. Two facts prove it of a time-out. An answer that comes sooner than a round trip after the packet that was sent
// again is to an earlier one. And a responder gives at most one answer to each packet: if more answers come than packets were sent again, one is to an earlier
// packet. Answers come in the order of what they answer: all have come once a packet is acknowledged that was sent for the first time after the time-out.
type rounds struct {
	list    [12]round
	n       int
	counted uint32 // how many the number of answers proved to be spurious
}

type round struct {
	psn   uint32 // the first that was sent again
	end   uint32 // the PSN after all that were sent before: the first new one after the time-out
	at    int64
	first int64 // when it was sent for the first time; 0: not known, or it was sent again before
	// Packets that were sent again from the time-out on, and answers to any from psn on: of those before end, and of all. An answer to a new packet counts
	// for neither.
	resent, answers       uint32
	allResent, allAnswers uint32
	took                  int64  // from the first transmission to the answer
	done                  bool   // all answers to those before end have come
	sent                  Amount // what the time-out sent again
	since                 int64  // ns since the latest answer to its packets, if that had passed before; 0: none had
	lost                  bool   // counted as lost downstream
	ackLost               bool   // counted as a lost ACK
	unheard               bool   // the answer before it was lost
	answered              int64  // when the first answer since the time-out came
	wentOn                bool   // the requester did before it can have got that
	read                  bool
	cause                 Cause // that it counts for
	asked                 int64 // of a READ: see sinceAnswer
	silent                int64 // ns since the request before
	current               bool  // the episode isn't over
}

// close ends the present episode.
func (s *rounds) close() {
	if s.n > 0 {
		s.list[s.n-1].current = false
	}
}

func (s *rounds) remove(i int) {
	copy(s.list[i:s.n], s.list[i+1:s.n])
	s.n--
}

// again notes a packet that is sent again.
func (s *rounds) again(psn, psns uint32) {
	for i := range s.list[:s.n] {
		o := &s.list[i]
		if o.read && (ahead(o.psn, psn) < 0 || ahead(o.psn, psn) >= int32(psns)) {
			continue // no answer to it counts
		}
		if o.allResent++; o.read || ahead(psn, o.end) < 0 {
			o.resent++
		}
	}
}

// doubt notes a request that the present episode has caused.
func (s *rounds) doubt(bytes uint32) {
	if s.n > 0 && s.list[s.n-1].current {
		s.list[s.n-1].sent.add(bytes)
	}
}

// doubtResponse notes a READ response that the episode which began at a time has caused.
func (s *rounds) doubtResponse(bytes uint32, began int64) {
	if s.n > 0 && s.list[s.n-1].at == began {
		s.list[s.n-1].sent.add(bytes)
	}
}

// asked notes a NAK or RNR NAK for a packet: the responder has had none from there on.
func (s *rounds) asked(psn uint32) {
	for i := s.n - 1; i >= 0; i-- {
		if ahead(s.list[i].psn, psn) >= 0 {
			s.remove(i)
		}
	}
}

// answeredRounds notes an answer that acknowledges all before a PSN. fresh: it may be the one to a new packet.
func (h *Half) answeredRounds(acked uint32, now int64, fresh bool) {
	s := &h.rounds
	for i := 0; i < s.n; {
		o := &s.list[i]
		if o.read || ahead(acked, o.psn) <= 0 {
			i++
			continue
		}
		if o.took == 0 && o.first != 0 && o.since == 0 {
			o.took = now - o.first
			h.doubts.elapsed.add(o.took)
		}
		if ahead(acked, o.end) > 0 {
			o.done = true
		}
		if !o.done && o.answered == 0 {
			o.answered = now
		}
		if !o.done || !fresh {
			o.allAnswers++
		}
		if !o.done {
			o.answers++
		}
		if h.proves(o, now) {
			h.spurious(i)
		} else {
			i++
		}
	}
}

// responded notes a READ response.
func (h *Half) responded(psn uint32, now int64) {
	s := &h.rounds
	for i := 0; i < s.n; {
		o := &s.list[i]
		switch {
		case !o.read:
			i++
		case o.asked > 0 && h.reaction() == 0:
			i++
		case ahead(psn, o.end) >= 0:
			h.undecided(o)
			s.remove(i)
		case o.psn == psn:
			if o.took == 0 && o.first != 0 && o.since == 0 {
				o.took = now - o.first
				h.doubts.elapsed.add(o.took)
			}
			if o.answers++; h.proves(o, now) {
				h.spurious(i)
				continue
			}
			fallthrough
		default:
			i++
		}
	}
}

// provable reports whether answers can prove that a time-out was spurious. If the receiver isn't ready it answers the same packet in different ways.
func (h *Half) provable(o *round) bool {
	return o.cause == TimeOut && h.repeat.notReady == 0 && (h.NAKs[0] == 0 || h.mayTimeOut(o.silent))
}

// proves reports whether the answers prove that a time-out was spurious.
func (h *Half) proves(o *round, now int64) bool {
	if !h.provable(o) {
		return false
	}
	return !o.done && (o.answers > o.resent || h.cameSoon(o, now)) || o.allAnswers > o.allResent
}

// cameSoon reports whether an answer came sooner than one to what a time-out sent again can. The response to a READ may be the second one, if the first has
// passed.
func (h *Half) cameSoon(o *round, at int64) bool {
	return at-o.at < h.shortestTrip() && (o.first == 0 || at-o.first < 2*h.clean.most) && !(o.read && o.since != 0)
}

// shortestTrip is the least time from a packet to its answer, ns; 0: not known.
func (h *Half) shortestTrip() int64 {
	const enough, many = 8, 16 // fewer may have missed the shortest one
	switch {
	case h.clean.n >= many:
		return h.clean.least * 3 / 4
	case h.clean.n >= enough:
		return h.clean.least / 2
	}
	return 0
}

// spurious decides that a round was.
func (h *Half) spurious(i int) {
	s := &h.rounds
	o := &s.list[i]
	h.wasSpurious(o)
	if o.answers > o.resent || o.allAnswers > o.allResent {
		s.counted++
	}
	s.remove(i)
}

// wasSpurious counts a round as spurious.
func (h *Half) wasSpurious(o *round) {
	h.moveToSpurious(o.cause, o.sent, 1)
	if o.lost {
		h.LostDownstream -= min(h.LostDownstream, 1)
	}
	if o.ackLost {
		h.AcksLost -= min(h.AcksLost, 1)
	}
	r := &h.repeat
	if o.current && r.cause == o.cause {
		r.cause = Spurious
	}
	if o.at == r.readsAt && r.reads == o.cause {
		r.reads = Spurious
	}
}

// moveToSpurious counts what counts for another cause as spurious.
func (h *Half) moveToSpurious(from Cause, sent Amount, episodes uint64) {
	h.Retransmitted[from].minus(sent)
	h.Retransmitted[Spurious].plus(sent)
	h.Episodes[from] -= min(episodes, h.Episodes[from])
	h.Episodes[Spurious] += episodes
}

// freshRounds notes a new packet. If it is farther ahead of what a round sent again than packets ever were, and the requester can't have got an answer to that
// yet, it has got the one to what it had sent before, if that passed not long ago; unless it doesn't wait for answers.
func (h *Half) freshRounds(now int64, next uint32) {
	s := &h.rounds
	s.close()
	for i := range s.list[:s.n] {
		o := &s.list[i]
		early := o.answered == 0 || h.tooSoon(now-o.answered)
		if early && !o.read && o.since != 0 && !h.slow(o.since) && !o.done && h.Window > 0 && ahead(next, o.psn) > int32(h.Window) {
			o.wentOn = true
		}
	}
}

// unheard notes that a packet is sent again so long after an answer to it that the answer must have been lost.
func (h *Half) unheard(p *Packet) {
	s := &h.rounds
	for i := range s.list[:s.n] {
		if o := &s.list[i]; !o.read && o.psn == p.PSN && o.since != 0 && h.reaction() > 0 && p.Time-o.at+o.since > max(h.reaction()*3/2, h.turn.mean*5/4) {
			o.unheard = true
		}
	}
}

// openRound begins a round for a packet that was sent again after a time-out.
func (h *Half) openRound(p *Packet, first int64) *round {
	o := round{psn: p.PSN, end: h.next, at: p.Time, first: first, cause: TimeOut, read: p.Opcode.Role() == packet.ReadRequest, current: true}
	s := &h.rounds
	if s.n == len(s.list) {
		h.undecided(&s.list[0])
		s.remove(0)
	}
	s.list[s.n] = o
	s.n++
	return &s.list[s.n-1]
}

// doubts are time-outs that nothing has proved to be spurious yet.
type doubts struct {
	// Those before an answer. Its responder may answer several packets at once.
	sent     Amount
	episodes uint64
	lost     uint64
	elapsed  span // from the first transmission to the answer, of all
	// Those after an answer, which the requester had not got yet, or which was lost. Soon are those that came sooner than any reaction to an ACK.
	late    late
	soon    uint32
	unheard uint32 // of late: the answer was lost
	wentOn  uint64 // those after which the requester went on before it can have got another answer: all spurious
	rounds  uint32 // all time-outs after an answer, and of how many packets
	packets uint32
	near    [2]late // READs that were asked for again about as long after a response as a reaction takes: those that count as implied, and as time-outs
	reads   readTimes
	parts   uint32 // READs of which the requester asked only for the rest again
}

type late struct {
	sent           Amount
	episodes, lost uint64
	responses      uint64 // of READs, that count as lost
}

func (l *late) add(o *round) {
	l.sent.plus(o.sent)
	l.episodes++
	if o.ackLost {
		l.lost++
	}
	if o.lost {
		l.responses++
	}
}

// undecided keeps a round apart that is complete.
func (h *Half) undecided(o *round) {
	d := &h.doubts
	if h.notYetThere(o.asked, o.silent) {
		h.wasSpurious(o)
		return
	}
	if (o.asked > 0 || o.cause == Implied) && o.asked < h.turn.least*11/10 && h.mayTimeOut(o.silent) {
		d.near[o.cause-Implied].add(o)
		return
	}
	if o.cause != TimeOut {
		return
	}
	if o.answered != 0 && h.provable(o) && h.cameSoon(o, o.answered) { // a round trip may be known only now
		h.wasSpurious(o)
		return
	}
	if o.unheard {
		d.unheard++
	} else if !o.read && h.tooSoon(o.since) && h.repeat.notReady == 0 {
		d.soon++
		h.wasSpurious(o)
		return
	}
	if o.wentOn && h.repeat.notReady == 0 {
		d.wentOn++
		h.wasSpurious(o)
		return
	}
	if o.since != 0 {
		d.late.add(o)
		return
	}
	d.sent.plus(o.sent)
	d.episodes++
	if o.lost {
		d.lost++
	}
}

// decide says of all that are in doubt whether they were spurious.
func (h *Half) decide() {
	for i := range h.rounds.list[:h.rounds.n] {
		if o := &h.rounds.list[i]; o.since != 0 || o.asked != 0 || o.cause != TimeOut || o.done || o.answered != 0 {
			h.undecided(o)
		}
	}
	h.decideNear()
	h.decideLate()
	h.decideEarly()
}

// decideNear: if most READs that were asked for again timed out before a response came, the others did, too.
func (h *Half) decideNear() {
	d := &h.doubts
	for cause := Implied; cause <= TimeOut; cause++ {
		l := &d.near[cause-Implied]
		if l.episodes > 0 && h.Episodes[Spurious] > 2*l.episodes && h.Episodes[Spurious] > 8*uint64(d.parts) {
			h.lateToSpurious(cause, l)
		}
	}
}

// decideLate: time-outs after an answer were spurious if the requester timed out again and again for the same packets, although each transmission was
// acknowledged; or if it timed out sooner than it was ever seen to react, for most packets.
func (h *Half) decideLate() {
	const enough = 3
	d := &h.doubts
	again := d.packets >= enough && d.rounds >= 2*d.packets && d.late.episodes+d.wentOn >= enough
	early := h.NAKs[0] == 0 && d.soon >= enough && 2*d.soon >= h.turn.n && uint64(d.soon) > 4*d.late.episodes && d.soon > 30*d.unheard
	if (h.back == 0 || h.NAKs[0] == 0) && (again || early) {
		h.lateToSpurious(TimeOut, &d.late) // also the first ones, which came before a reaction was seen
	}
}

func (h *Half) lateToSpurious(from Cause, l *late) {
	h.moveToSpurious(from, l.sent, l.episodes)
	h.AcksLost -= min(h.AcksLost, l.lost)
	h.LostDownstream -= min(h.LostDownstream, l.responses)
}

// decideEarly: those before an answer were if the first transmission was always answered after the same time, which is that of others.
func (h *Half) decideEarly() {
	const enough = 3
	d := &h.doubts
	e := &d.elapsed
	alike := e.n >= enough && e.most < e.least*5/4 && e.least > h.Interval.least*5/4
	if h.clean.n >= enough {
		alike = e.n >= enough && h.clean.mean >= e.least*2/3 && e.most < 2*h.clean.mean
	}
	if !alike || h.rounds.counted > 0 { // a responder that answers each packet leaves no doubt
		return
	}
	h.moveToSpurious(TimeOut, d.sent, d.episodes)
	h.LostDownstream -= min(h.LostDownstream, d.lost)
	if h.clean.n < enough {
		h.clean = *e
	}
}
