package flowtable

const (
	laps        = 2  // passes of Sweep over the table in an aging period
	sweepWindow = 32 // maximum number of entries that one Sweep checks
)

// Sweep removes flows that have been idle for longer than Aging. The owner calls it once a step. Sweep scans the table twice in an aging
// period: each call checks the entries that are due at that time, but at most 32. Later calls catch up, by at most one pass over the table.
// now is in nanoseconds, by the same clock as for Lookup.
func (t *Table) Sweep(now int64) {
	for n := t.sweep.due(now, t.aging, int64(t.unused.high)); n > 0; n-- {
		t.sweep.at = t.sweep.at%t.unused.high + 1
		if x := Index(t.sweep.at); t.entries[x].idle(t.aging, now) {
			t.end(x, now)
		}
	}
	t.publish()
}

// sweep is how far Sweep is.
type sweep struct {
	at   uint32 // last entry that was checked
	time int64  // time up to which entries have been checked
}

// due returns the number of entries to check now, of those from 1 to high, and counts them as done.
func (s *sweep) due(now, aging, high int64) int64 {
	if aging <= 0 || high == 0 {
		s.time = now
		return 0
	}
	step := max(1, aging/(laps*high)) // nanoseconds an entry
	due := (now - s.time) / step
	if due < 0 || due > high { // the clock went back, or more than a pass is due
		due = min(max(due, 0), high)
		s.time = now - due*step
	}
	due = min(due, sweepWindow)
	s.time += due * step
	return due
}

// idle reports whether a flow has aged.
func (e *entry) idle(aging, now int64) bool { return aging > 0 && now-e.lastSeen > aging }

// LastSeen is the time of the last Lookup that found a flow, ns. Only the owner calls it.
func (t *Table) LastSeen(x Index) int64 { return t.entries[x].lastSeen }

// Renew ends a flow and begins another with the same key and index. now is in nanoseconds, by the same clock as for Lookup.
func (t *Table) Renew(x Index, now int64) { t.renew(x, now, Renewed) }

func (t *Table) renew(x Index, now int64, why Ending) {
	t.dirty = true
	t.insertions++
	if t.observer != nil {
		t.observer.End(x, why)
	}
	k := *t.Key(x)
	begin(&t.entries[x], &k, now)
	if t.observer != nil {
		t.observer.Begin(x)
	}
}

// seen records a packet of a flow. If the flow has been idle for longer than Aging, it ends and another one begins.
func (t *Table) seen(x Index, now int64) {
	e := &t.entries[x]
	if e.idle(t.aging, now) {
		t.aged++
		t.renew(x, now, Aged)
		return
	}
	e.lastSeen = now
}
