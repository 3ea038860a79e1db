package ratelimit

import "sync/atomic"

// Interval is the least time between two events of one flow, in nanoseconds (draft-tian 5.5 recommends the round-trip time);
// 0 or less is no limit.
type Interval int64

// Ready tells whether an event may happen now, the last one having been at last; 0 means never. A last that lies more than a
// second ahead is from before the clock was set back and doesn't count.
func (v Interval) Ready(last, now int64) bool {
	d := now - last
	return v <= 0 || last == 0 || d >= int64(v) || d < -maxSkew/units
}

// Stamp is what to keep as last for an event at now: now, but 1 for 0.
func Stamp(now int64) int64 {
	if now == 0 {
		return 1
	}
	return now
}

// Allow checks and commits at once against a word that any number of goroutines may share: of several at one time one is allowed.
func (v Interval) Allow(word *atomic.Int64, now int64) bool {
	last := word.Load()
	return v.Ready(last, now) && word.CompareAndSwap(last, Stamp(now))
}
