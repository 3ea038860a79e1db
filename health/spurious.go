package health

// lateAcks are time-outs that came although the ACK had passed here. It was on its way, or was lost behind. It was on its way if the requester times out
// sooner than it was ever seen to react to an ACK, and most that wait for one do; or if it times out again and again for the same packet, although each
// transmission is acknowledged.
type lateAcks struct {
	counting bool // the present episode is one
	quick    bool // and sooner than any reaction
	all      late
	soon     late   // the quick ones
	packets  uint64 // how many different packets were sent again first
}

type late struct {
	sent     Amount
	episodes uint64
	lost     uint64 // of these, those that count as lost ACKs
}

// check counts the ACKs that repeat earlier ones after time-outs. A responder that has all packets already acknowledges each that it gets again. If as many
// come as packets were sent again, nothing was lost, and the ACKs were on their way when the requester timed out.
type check struct {
	open             bool
	at               int64  // of the first time-out
	end              uint32 // the PSN after all that were sent before the last time-out
	resent, repeated uint64
	doubt            Amount // what time-outs sent again that may have been spurious
	episodes, lost   uint64
}

// attempts are the transmissions of the oldest packet without an answer.
type attempts struct {
	psn  uint32
	list [8]attempt
	n    int
}

type attempt struct {
	at   int64
	sent Amount // the packets of the episode that began then
	lost bool   // counted as lost downstream
}

// doubts notes a packet that a time-out sent again. Whether that was spurious shows later.
func (r *repeat) doubts(bytes uint32) {
	if l := &r.late; l.counting {
		l.all.sent.add(bytes)
		if l.quick {
			l.soon.sent.add(bytes)
		}
	} else {
		r.check.doubt.add(bytes)
	}
	switch {
	case r.attempts.n > 0:
		r.attempts.list[r.attempts.n-1].sent.add(bytes)
	case r.episodes > 0:
		r.undecided.add(bytes)
	}
}

// resolve says which transmission of the oldest packet the ACK answers, now that it has come. Those after that one were spurious.
func (r *repeat) resolve(c *Counts, t *timing, acked uint32, now int64) {
	a := &r.attempts
	if a.n < 2 || ahead(acked, a.psn) <= 0 {
		return
	}
	const enough = 3 // round trips: one of the first ones may have been long
	if t.clean.n < enough {
		r.keepUndecided(now)
		a.n = 0
		return
	}
	best, nearest := 0, int64(1)<<62
	for i := range a.list[:a.n] {
		if a.list[i].at == 0 {
			continue
		}
		took := now - a.list[i].at
		if d := max(took-t.clean.mean, t.clean.mean-took); took >= t.clean.least*4/5 && d < nearest {
			best, nearest = i, d
		}
	}
	const many = 16 // round trips: fewer may have missed the shortest one
	shortest := t.clean.least / 2
	if t.clean.n >= many {
		shortest = t.clean.least * 9 / 10
	}
	for i := best + 1; i < a.n; i++ {
		if now-a.list[i].at < shortest {
			r.spurious(c, &a.list[i])
		}
	}
	a.n = 0
}

// repeated counts an ACK to a packet that the responder got again.
func (r *repeat) repeated(c *Counts, now int64) {
	k := &r.check
	if k.repeated++; k.open && k.repeated >= k.resent && r.next == k.end { // all was sent again
		r.proved(c, now)
	}
}

// proved says that all that was sent again had come before: what was in doubt was spurious.
func (r *repeat) proved(c *Counts, now int64) {
	k, a := &r.check, &r.attempts
	if k.episodes > 0 {
		if a.n > 1 && a.list[0].at != 0 {
			r.elapsed.add(now - a.list[0].at)
		}
		if r.active && r.cause == TimeOut && !r.late.counting {
			r.cause = Spurious
		}
		a.n, r.episodes, r.undecided = 0, 0, Amount{}
		r.move(c, k.doubt, k.episodes)
		c.LostDownstream -= min(c.LostDownstream, k.lost)
	}
	*k = check{open: true, at: k.at, end: k.end}
}

// move makes time-outs spurious.
func (r *repeat) move(c *Counts, sent Amount, episodes uint64) {
	if r.reads == TimeOut {
		r.reads = Spurious
	}
	c.Retransmitted[TimeOut].minus(sent)
	c.Retransmitted[Spurious].plus(sent)
	episodes = min(episodes, c.Episodes[TimeOut])
	c.Episodes[TimeOut] -= episodes
	c.Episodes[Spurious] += episodes
}

// settleLate decides about all late ACKs, at the end.
func (r *repeat) settleLate(c *Counts, t *timing) {
	l := &r.late
	const enough = 3
	settled := &l.soon
	switch {
	case l.packets >= enough && l.all.episodes >= 2*l.packets:
		settled = &l.all
	case l.soon.episodes < enough || 2*l.soon.episodes < uint64(t.turn.n):
		return
	case 10*l.soon.episodes > 9*l.all.episodes:
		settled = &l.all // the first ones came before a reaction was seen
	}
	r.move(c, settled.sent, settled.episodes)
	c.AcksLost -= min(c.AcksLost, settled.lost)
}

// spurious moves an attempt to the spurious ones.
func (r *repeat) spurious(c *Counts, a *attempt) {
	r.move(c, a.sent, 1)
	k := &r.check
	k.doubt.minus(a.sent)
	k.episodes -= min(k.episodes, 1)
	if a.lost {
		c.LostDownstream -= min(c.LostDownstream, 1)
		k.lost -= min(k.lost, 1)
	}
	if n := r.attempts.n; n > 0 && a == &r.attempts.list[n-1] && r.cause == TimeOut {
		r.cause = Spurious
	}
}

// keepUndecided keeps apart what was sent again before a round trip was measured.
func (r *repeat) keepUndecided(now int64) {
	a := &r.attempts
	if a.list[0].at == 0 {
		return
	}
	r.elapsed.add(now - a.list[0].at)
	for i := range a.list[1:a.n] {
		r.undecided.plus(a.list[i+1].sent)
		r.episodes++
	}
}

// decide says whether the undecided ones were spurious: they were if the first transmission was answered after one round trip.
func (r *repeat) decide(c *Counts, t *timing) {
	const enough = 3
	if r.episodes == 0 || t.clean.n < enough {
		return
	}
	if t.clean.mean >= r.elapsed.least*2/3 && r.elapsed.most < 2*t.clean.mean {
		r.moveUndecided(c)
	}
	r.episodes, r.undecided = 0, Amount{}
}

func (r *repeat) moveUndecided(c *Counts) {
	r.move(c, r.undecided, r.episodes)
	r.check.doubt.minus(r.undecided)
	r.check.episodes -= min(r.check.episodes, r.episodes)
	c.LostDownstream -= min(c.LostDownstream, r.episodes)
}
