package health

// readDoubts are READs that were asked for again, although responses to them had passed here. If that was nearly always before one could have come to the
// requester, it timed out.
type readDoubts struct {
	implied, timeOuts caused // by the cause that they count for
	lost              uint64 // responses that count as lost downstream because of them
	since, silent     span   // ns since the response passed here, and since the request before
	other             uint64 // episodes without a response, or of which the requester has got a part
	// Of episodes that don't count as time-outs: how long after the same request they began, ns, and after one another.
	age, spacing span
	latest       int64
}

type caused struct {
	sent     Amount
	episodes uint64
}

// impliedBy notes an episode that counts as caused by a response out of order.
func (d *readDoubts) impliedBy(since, silent int64, lost bool) {
	d.implied.episodes++
	d.note(since, silent, lost)
}

// timedOut notes a time-out of which nothing is decided.
func (d *readDoubts) timedOut(o *round) {
	d.timeOuts.sent.plus(o.sent)
	d.timeOuts.episodes++
	d.note(o.asked, o.silent, o.lost)
}

func (d *readDoubts) note(since, silent int64, lost bool) {
	if lost {
		d.lost++
	}
	d.silent.add(silent)
	if since == 0 {
		d.other++
		return
	}
	d.since.add(since)
}

// repeated notes when an episode began, and the same request before.
func (d *readDoubts) repeated(now int64, before *sent) {
	if before != nil {
		d.age.add(now - before.time)
	}
	if d.latest != 0 {
		d.spacing.add(now - d.latest)
	}
	d.latest = now
}

// decideReads decides whether the READs in doubt timed out before a response could have come to the requester.
func (h *Half) decideReads() (spurious bool) {
	const enough = 3
	d := &h.doubts.reads
	react := h.turn.least
	if d.since.n == 0 || 4*d.other > uint64(d.since.n) || h.turn.n < enough || d.since.most >= react*11/10 || d.since.mean >= react*8/10 ||
		!h.mayTimeOut(d.silent.least) {
		return false
	}
	h.Retransmitted[Implied].minus(d.implied.sent)
	h.Retransmitted[Spurious].plus(d.implied.sent)
	h.Episodes[Implied] -= d.implied.episodes
	h.Episodes[Spurious] += d.implied.episodes
	h.moveToSpurious(d.timeOuts.sent, d.timeOuts.episodes)
	h.LostDownstream -= min(h.LostDownstream, d.lost)
	return true
}
