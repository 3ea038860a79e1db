package congestion

// AdjustPolicy lets the gateway adjust a queue's parameters by itself (draft-tian 5.8), within the operator's bounds, in percent of the
// calculated or configured values. The zero AdjustPolicy disables this.
type AdjustPolicy struct{ MinPercent, MaxPercent int }

// on reports whether parameters are adjusted.
func (p AdjustPolicy) on() bool { return p.MaxPercent > 0 }

// QueueTotals are a port's counts since it began, and its present state.
type QueueTotals struct {
	Depth     uint64 // bytes waiting, of the class with the most
	Dropped   uint64 // frames for which the queue was full
	Notified  uint64 // notifications because of the queue
	LineBytes uint64 // sent on the line, including each frame's overhead
}

// Adjuster adjusts the parameters of a port's queue to its traffic: K_min, K_max, V_ecn, V_growth and the interval between notifications of a flow,
// all by one percentage. The zero Adjuster doesn't change them.
//
// It evaluates periods of one second. If the queue was full during the period, or above K_max all the time, senders were notified too late
// or too seldom: the percentage falls by an eighth. If senders were notified, and then the queue was empty while the line was not fully
// used, they were notified too early: it rises by 5. Otherwise it stays.
type Adjuster struct {
	percent int // 0: not yet set, which means 100
	began   int64
	totals  QueueTotals // when the period began
	least   uint64      // depth in the period
	looked  bool        // the period has begun
}

// Constants of the algorithm.
const (
	adjustPeriod  = 1e9 // ns
	adjustUp      = 5   // percent
	adjustDown    = 8   // divisor
	lineFullyUsed = 95  // percent of the rate
)

// Percent is the factor for the parameters, 100 at first.
func (a *Adjuster) Percent() int {
	if a.percent == 0 {
		return hundred
	}
	return a.percent
}

// Look evaluates the state of a queue at a time (ns), several times a second, with the present K_max and the port's rate in bit/s. It
// reports whether the percentage has changed.
func (a *Adjuster) Look(p AdjustPolicy, now int64, q QueueTotals, kMax, rate uint64) (changed bool) {
	before := a.Percent()
	if !p.on() {
		*a = Adjuster{}
		return before != hundred
	}
	elapsed := now - a.began
	if !a.looked || elapsed < 0 {
		a.begin(now, q)
		return false
	}
	a.least = min(a.least, q.Depth)
	if elapsed < adjustPeriod {
		return false
	}
	a.percent = min(max(before+a.step(before, elapsed, q, kMax, rate), p.MinPercent), p.MaxPercent)
	a.begin(now, q)
	return a.percent != before
}

func (a *Adjuster) begin(now int64, q QueueTotals) {
	a.began, a.totals, a.least, a.looked = now, q, q.Depth, true
}

// step is the change of the percentage after a period.
func (a *Adjuster) step(percent int, elapsed int64, q QueueTotals, kMax, rate uint64) int {
	possible := bdp(rate, elapsed)
	switch {
	case q.Dropped > a.totals.Dropped, a.least > kMax:
		return -max(percent/adjustDown, 1)
	case q.Notified > a.totals.Notified && a.least == 0 && q.LineBytes-a.totals.LineBytes < timesPercent(possible, lineFullyUsed):
		return adjustUp
	}
	return 0
}

// Adjust returns the triggers with this percentage of their rates (draft-tian 5.8), at least the smallest possible one. The thresholds come
// from Sizing.
func (t *Triggers) Adjust(ofRates int) {
	const most = 1_000_000 // millionths
	if t.Marking > 0 {
		t.Marking = uint32(min(max(timesPercent(uint64(t.Marking), ofRates), 1), most))
	}
	if t.Growth > 0 {
		t.Growth = int64(min(max(timesPercent(uint64(t.Growth), ofRates), 1), 1<<62))
	}
}
