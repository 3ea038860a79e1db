package flowtable

const (
	laps         = 2  // times Sweep goes over the table an aging period
	sweepWindow  = 32 // entries one Sweep looks at, at most
	recheckBatch = 64 // entries one Sweep compares with a new map of QP pairs, at most
)

// Sweep removes flows that have been idle for longer than Aging and have nothing queued. The owner calls it once a burst; each
// call looks at as many entries as the time since the last one asks for to go over the table twice an aging period, but at most
// 32; what that leaves undone, up to one round, the next calls catch up with.
func (t *Table) Sweep(now int64) {
	if t.pairing != nil {
		if h := t.pairing.hints.Load(); h != t.hints {
			t.hints, t.recheckLeft = h, t.high
		}
	}
	t.recheck()
	for n := t.share(now); n > 0; n-- {
		t.sweepAt = t.sweepAt%t.high + 1
		if t.idle(&t.entries[t.sweepAt], now) {
			t.end(Index(t.sweepAt), now)
		}
	}
	t.publish()
}

// share is how many entries are due, and counts them as done.
func (t *Table) share(now int64) int64 {
	if t.aging <= 0 || t.high == 0 {
		t.sweepTime = now
		return 0
	}
	high := int64(t.high)
	step := max(1, t.aging/(laps*high)) // nanoseconds an entry
	due := (now - t.sweepTime) / step
	if due < 0 || due > high { // the clock went back, or more than a round is owed
		due = min(max(due, 0), high)
		t.sweepTime = now - due*step
	}
	due = min(due, sweepWindow)
	t.sweepTime += due * step
	return due
}

// SetStatic replaces the operator's map of QP pairs. Flows that begin from now on take it at once; the ones there are are gone
// through by the next Sweeps, which give them the source QP of the new map, or take away one that only the old map said.
func (t *Table) SetStatic(m *QPMap) {
	t.static = m
	t.recheckLeft = t.high
}

// recheck goes on round the table from where it was: a map that changes all the time keeps it from no flow.
func (t *Table) recheck() {
	n := min(recheckBatch, t.recheckLeft)
	t.recheckLeft -= n
	for range n {
		t.recheckAt = t.recheckAt%t.high + 1
		if t.InUse(Index(t.recheckAt)) {
			t.reread(Index(t.recheckAt))
		}
	}
}

// reread gives a flow what the maps say of it now, or takes away what they said before. A closed record stays as it is.
func (t *Table) reread(x Index) {
	e := &t.entries[x]
	qp := t.initialQP(e.plainKey())
	for {
		s := state(e.state.Load())
		said := state(qp).qpState() == Confirmed
		if s.ending() != Open || !said && s.evidence() != EvidenceStatic && s.evidence() != EvidenceHint {
			return
		}
		if uint64(s)&^(flowMask|endingMask) == qp {
			return
		}
		if e.change(s, qp) {
			if said {
				t.count(state(qp).evidence())
			}
			return
		}
	}
}
