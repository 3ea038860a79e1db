// Package ratelimit decides whether one more notification may be sent: a Rate for a port, Destinations for each receiver of notifications,
// an Interval for each flow (draft-tian 5.5 and 9: at least one round trip between notifications for a flow, and a limit for each port).
// All take the time from the caller, in nanoseconds of one clock, and workers can share them without a lock. The package has no clock and
// no configuration, and never waits.
package ratelimit

import "sync/atomic"

// Times are kept in units of 1/16 ns modulo the word, so that a gap is exact to 63 ppm at a million a second. Only differences of times are
// ever used. An Int64 wraps after 36 years and the 48 bits of Destinations after 4.9 hours; a time that is further ahead than a limit
// allows is from before a wrap, or from before the clock was set back, and counts as past.
const (
	units    = 16 // a nanosecond
	second   = 1e9 * units
	maxSkew  = second // maximum difference of the workers' clocks, or step back of a clock, with exact limits
	maxTries = 16
)

// Rate is a limit in events a second, by the generic cell rate algorithm (ITU-T I.371 annex A): a theoretical arrival time (TAT) advances
// by one gap an event and may be ahead of the clock by a tolerance. In any time t at most rate * t + burst events pass; the burst is the
// events of a hundredth of a second, at least 1. The zero Rate is no limit.
type Rate struct {
	gap       int64 // units between events
	tolerance int64 // maximum units of the TAT ahead of the clock
}

// PerSecond is a limit of n events a second; 0 is no limit. The gap is rounded up to 1/16 ns, never in favour of more events.
func PerSecond(n uint64) Rate {
	if n == 0 {
		return Rate{}
	}
	gap := (second-1)/int64(min(n, second)) + 1
	return Rate{gap, (Burst(n) - 1) * gap}
}

// Burst is the number of events that may come at once under a limit of n a second: n / 100 rounded up.
func Burst(n uint64) int64 { return int64((min(n, second) + 99) / 100) }

// Off reports whether r is no limit.
func (r Rate) Off() bool { return r.gap == 0 }

// Allow reports whether an event may happen now (nanoseconds, not negative), and counts it if so. tat is the limit's state and starts as 0;
// any number of goroutines may share it. If sixteen others change it first, each with an event, the result is false.
func (r Rate) Allow(tat *atomic.Int64, now int64) bool {
	if r.Off() {
		return true
	}
	now *= units
	for range maxTries {
		was := tat.Load()
		ahead := r.ahead(was - now)
		if ahead > r.tolerance {
			return false
		}
		if tat.CompareAndSwap(was, now+ahead+r.gap) {
			return true
		}
	}
	return false
}

// Check is what Allow would return. It counts nothing.
func (r Rate) Check(tat *atomic.Int64, now int64) bool {
	return r.Off() || r.ahead(tat.Load()-now*units) <= r.tolerance
}

// ahead is the time by which a TAT is ahead of the clock, given their difference: 0 if it is past, or too far ahead to be valid.
func (r Rate) ahead(d int64) int64 {
	if d < 0 || d > r.tolerance+r.gap+maxSkew {
		return 0
	}
	return d
}

// Refund undoes Allow for an event that did not happen.
func (r Rate) Refund(tat *atomic.Int64) {
	if !r.Off() {
		tat.Add(-r.gap)
	}
}
