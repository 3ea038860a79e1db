package ratelimit

// Interval is the minimum time between two events of one flow, in nanoseconds (draft-tian 5.5 recommends the round-trip time);
// 0 or less is no limit.
type Interval int64

// Ready reports whether an event may happen now. last is the time of the last event, 0 for none. If last is more than a second ahead, the
// clock was set back, and last doesn't count.
func (v Interval) Ready(last, now int64) bool {
	d := now - last
	return v <= 0 || last == 0 || d >= int64(v) || d < -maxSkew/units
}

// Stamp returns the value of last for an event at now: now, but 1 for 0.
func Stamp(now int64) int64 {
	if now == 0 {
		return 1
	}
	return now
}
