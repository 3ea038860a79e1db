package endpoint

import (
	"math/bits"

	"github.com/cnpgate/cnpgate/cnpdec"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// maxNotifiers is the number of sources whose last Long-haul CNP a flow remembers; a path rarely has more congested nodes.
const maxNotifiers = 4

// lastNotification is the last Long-haul CNP from a source.
type lastNotification struct {
	src       packet.Addr
	timestamp uint64 // NTP, of the last one that had a timestamp; 0: none had one
	content   packet.LongHaul
	at        int64 // ns
}

// longHaul obeys a Long-haul CNP of either format (draft-tian 5.6).
func (r *ReactionPoint) longHaul(now int64, n *cnpdec.Notification) (*Flow, Decision) {
	if n.Kind == packet.LongHaulCNPICMPv6 && !r.c.LongHaulICMPv6 {
		return nil, Disabled
	}
	f := r.byQP[n.LongHaul.SourceQP]
	if !f.consistent(n) {
		return nil, Inconsistent
	}
	last, refusal := f.fresh(now, n)
	if last == nil {
		return nil, refusal
	}
	if last.src != n.Src {
		*last = lastNotification{src: n.Src}
	}
	if n.LongHaul.HasTimestamp {
		last.timestamp = n.LongHaul.Timestamp
	}
	last.content, last.at = n.LongHaul.LongHaul, now
	return f, f.obey(now, &n.LongHaul.LongHaul)
}

// consistent makes the checks that cnpdec can't (draft-tian 9): the BTH names one of the flow's QPs, no action comes without congestion,
// and there is something to do.
func (f *Flow) consistent(n *cnpdec.Notification) bool {
	l := &n.LongHaul
	if n.Kind == packet.LongHaulCNP && n.BTH.DestQP != f.QP && n.BTH.DestQP != f.DestQP {
		return false
	}
	switch l.Action {
	case packet.ActionPause, packet.ActionRateReduce:
		return l.Level > 0 && l.Parameter > 0
	}
	return true
}

// fresh returns the entry in which to record the notification, or nil and the reason to refuse it: it is too old, or repeats one that was
// obeyed.
func (f *Flow) fresh(now int64, n *cnpdec.Notification) (*lastNotification, Decision) {
	c := &f.r.c
	l := &n.LongHaul
	if l.HasTimestamp && !near(l.Timestamp, packet.NTPTime(now+c.UnixTime), c.maxAge()) {
		return nil, Stale
	}
	oldest := &f.last[0]
	for i := range f.last {
		last := &f.last[i]
		if last.src == n.Src {
			if last.repeatedBy(now, l, c.replayWindow()) {
				return nil, Replayed
			}
			return last, 0
		}
		if last.at < oldest.at {
			oldest = last
		}
	}
	return oldest, 0
}

// repeatedBy reports whether a Long-haul CNP from the same source repeats the last one: its timestamp isn't later or, without timestamps,
// it has the same content and comes shortly after.
func (last *lastNotification) repeatedBy(now int64, l *cnpdec.LongHaul, window int64) bool {
	if l.HasTimestamp {
		return int64(l.Timestamp-last.timestamp) <= 0 && last.timestamp != 0
	}
	return last.content == l.LongHaul && now-last.at < window
}

// near reports whether two NTP timestamps differ by at most a time in ns.
func near(a, b uint64, ns int64) bool {
	difference := a - b
	if int64(difference) < 0 {
		difference = -difference
	}
	high, low := bits.Mul64(difference, second) // a timestamp counts seconds in 2^-32
	return high<<32|low>>32 <= uint64(ns)
}

// obey applies the action (draft-tian 5.5.1, 5.6). After any action, the rate recovers by itself only once RecoveryInterval has passed.
func (f *Flow) obey(now int64, l *packet.LongHaul) Decision {
	c := &f.r.c
	f.advance(now)
	f.limit.raiseAt = now + c.RecoveryInterval
	switch l.Action {
	case packet.ActionPause:
		return f.pause(now, l.Parameter)
	case packet.ActionRateReduce:
		f.limit.reduce(c, l.Parameter, f.Rate(now))
		return Reduced
	case packet.ActionResume:
		resumed := f.limit.resume(c, l.Parameter)
		if f.unpause(now) == Unpaused || resumed {
			return Resumed
		}
		return NothingToResume
	}
	return f.SlowDown(now)
}

// explicitLimit is the rate limit that Long-haul CNPs have set for a QP (draft-tian 5.6). It ends when it reaches the line rate.
type explicitLimit struct {
	rate    float64 // bit/s; 0: none
	before  float64 // the QP's rate before the last reduction
	reduced float64 // the amount of that reduction
	raiseAt int64   // when it rises next, ns
}

// reduce sets the rate to a percentage below current.
func (l *explicitLimit) reduce(c *ReactionConfig, percent uint16, current float64) {
	const whole = 100
	l.before = current
	l.rate = max(float64(c.DCQCN.MinRate), current*float64(whole-percent)/whole)
	l.reduced = l.before - l.rate
}

// resume restores a percentage of the last reduction, or with 0 percent all reductions, but at most MaxResume. It returns false if there is
// nothing to restore.
func (l *explicitLimit) resume(c *ReactionConfig, percent uint16) bool {
	const whole = 100
	if l.rate == 0 {
		return false
	}
	to := float64(c.LineRate)
	if percent > 0 {
		to = min(l.before, l.rate+l.reduced*float64(percent)/whole)
	}
	l.raise(min(to, l.rate+float64(c.MaxResume)), c)
	return true
}

// advance executes the recovery timer: additive increase once no notification has come for RecoveryInterval.
func (l *explicitLimit) advance(now int64, c *ReactionConfig) {
	if l.rate == 0 || l.raiseAt > now {
		return
	}
	times := (now-l.raiseAt)/c.RTT + 1
	l.raiseAt += times * c.RTT
	l.raise(l.rate+float64(times)*c.recoveryIncrease(), c)
}

func (l *explicitLimit) raise(to float64, c *ReactionConfig) {
	if l.rate = to; to >= float64(c.LineRate) {
		*l = explicitLimit{}
	}
}
