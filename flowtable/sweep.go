package flowtable

const (
	laps         = 2  // times Sweep goes over the table an aging period
	sweepWindow  = 32 // entries one Sweep looks at, at most
	recheckBatch = 32 // flows one Sweep compares with a new static map, at most
)

// Sweep removes flows that have been idle for longer than Aging and have nothing queued. The owner calls it once a burst; each
// call looks at as many entries as the time since the last one asks for to go over the table twice an aging period, but at most
// 32; what that leaves undone, up to one round, the next calls catch up with.
func (t *Table) Sweep(now int64) {
	if t.pairing != nil {
		if h := t.pairing.hints.Load(); h != t.hints {
			t.hints, t.recheckAt = h, t.high
		}
	}
	t.recheck()
	for n := t.share(now); n > 0; n-- {
		t.sweepAt = t.sweepAt%t.high + 1
		if t.idle(&t.entries[t.sweepAt].flow, now) {
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
	t.recheckAt = t.high
}

func (t *Table) recheck() {
	for range min(recheckBatch, t.recheckAt) {
		e := &t.entries[t.recheckAt]
		t.recheckAt--
		if e.flow.Queued == notInUse {
			continue
		}
		qp := t.initialQP(e.plainKey())
		was := state(e.state.Load()).evidence()
		if state(qp).qpState() == Confirmed || was == EvidenceStatic || was == EvidenceHint {
			e.setQP(qp)
		}
	}
}
