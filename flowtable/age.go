package flowtable

const (
	laps        = 2  // times that Sweep goes over the table in an aging period
	sweepWindow = 32 // entries that one Sweep looks at, at most
)

// Sweep removes flows that have been idle for longer than Aging and can't have frames queued. The owner calls it once a step. Sweep goes
// over the table twice in an aging period: each call looks at as many entries as are due by the time, but at most 32. The next calls catch
// up with what is left, up to one round of the table.
func (t *Table) Sweep(now int64) {
	for n := t.entriesDue(now); n > 0; n-- {
		t.sweepAt = t.sweepAt%t.high + 1
		if t.idle(&t.entries[t.sweepAt], now) {
			t.end(Index(t.sweepAt), now)
		}
	}
	t.publish()
}

// entriesDue is how many entries Sweep has to look at now. It counts them as done.
func (t *Table) entriesDue(now int64) int64 {
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

// idle reports whether a flow has aged.
func (t *Table) idle(e *entry, now int64) bool {
	return t.aging > 0 && now-e.lastSeen > t.aging && e.lastSeen < t.held
}

// Hold keeps flows that were seen at the time since or later from being aged or evicted, until it is called again: they may have frames queued,
// which name them by their index.
func (t *Table) Hold(since int64) { t.held = min(since, unseen) }

// Keep treats a flow as if it had been seen now. It is for a flow that has frames queued.
func (t *Table) Keep(x Index, now int64) { t.entries[x].lastSeen = now }

// Renew ends a flow and begins another with the same key and index.
func (t *Table) Renew(x Index, now int64) { t.renew(x, now, Renewed) }

func (t *Table) renew(x Index, now int64, why Ending) {
	t.dirty = true
	t.insertions++
	if t.observer != nil {
		t.observer.End(x, why)
	}
	k := *t.Key(x)
	t.entries[x].begin(&k, now)
	if t.observer != nil {
		t.observer.Begin(x)
	}
}

// seen notes a packet of a flow. If the flow has been idle for too long it ends, and another one begins.
func (t *Table) seen(x Index, now int64) {
	e := &t.entries[x]
	if t.idle(e, now) {
		t.aged++
		t.renew(x, now, Aged)
		return
	}
	e.lastSeen = now
}
