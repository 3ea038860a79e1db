package endpoint

import (
	"math/bits"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// FlowID names a flow from the sender's side.
type FlowID struct {
	QP     uint32 // of this host
	Dst    packet.Addr
	DestQP uint32
}

// Flow is the reaction point's state of a QP: its rate, and the end of its pause.
type Flow struct {
	FlowID
	r        *ReactionPoint
	dcqcn    dcqcn
	hpcc     hpcc
	limit    explicitLimit
	pausedTo int64
	reactAt  int64  // when DCQCN obeys a CNP that has come; 0: none has
	reacted  uint64 // how often it has
	last     [maxNotifiers]lastNotification
	before   *Flow // of those to the same QP of the peer, the one that was opened before; nil: none
}

// Rate is the rate at which the QP may send at now, bit/s.
func (f *Flow) Rate(now int64) float64 {
	c := &f.r.c
	f.advance(now)
	rate := float64(c.LineRate)
	if c.Algorithm != NoControl {
		rate = f.dcqcn.rate
	}
	if f.hpcc.window > 0 {
		rate = min(rate, f.hpcc.rate(&c.HPCC))
	}
	if f.limit.rate > 0 {
		rate = min(rate, f.limit.rate)
	}
	return rate
}

// PausedUntil is when the QP may send again, ns; 0 or in the past if it isn't paused.
func (f *Flow) PausedUntil() int64 { return f.pausedTo }

// Sent notes that the QP has sent this many bytes.
func (f *Flow) Sent(now int64, bytes int) {
	f.advance(now)
	f.dcqcn.sent(bytes, &f.r.c.DCQCN, float64(f.r.c.LineRate))
}

// advance executes the timers.
func (f *Flow) advance(now int64) {
	c := &f.r.c
	if f.reactAt != 0 && f.reactAt <= now {
		f.dcqcn.notify(f.reactAt, &c.DCQCN, float64(c.LineRate))
		f.reactAt = 0
		f.reacted++
	}
	f.dcqcn.advance(now, &c.DCQCN, float64(c.LineRate))
	f.hpcc.advance(now, c)
	f.limit.advance(now, c)
}

// SlowDown processes a standard CNP, or another notification that leaves the amount of the reduction to the sender, without a packet.
func (f *Flow) SlowDown(now int64) Decision { return f.slowDown(now) }

// slowDown processes a notification that leaves the amount of the reduction to the sender.
func (f *Flow) slowDown(now int64) Decision {
	if f.r.c.Algorithm == NoControl {
		return Ignored
	}
	if f.r.c.ReactionDelayMax > 0 {
		f.advance(now)
		if f.reactAt == 0 {
			f.reactAt = now + f.reactionDelay()
		}
		return SlowedDown
	}
	f.dcqcn.notify(now, &f.r.c.DCQCN, float64(f.r.c.LineRate))
	return SlowedDown
}

// reactionDelay is the delay of the next reaction. Delays of successive reactions, and of QPs, are spread evenly (Fibonacci hashing).
func (f *Flow) reactionDelay() int64 {
	const golden = 0x9e3779b97f4a7c15
	c := &f.r.c
	spread := uint64(c.ReactionDelayMax - c.ReactionDelay)
	hash := (c.Addr.Lo + uint64(f.QP) + f.reacted) * golden
	above, _ := bits.Mul64(hash, spread+1)
	return c.ReactionDelay + int64(above)
}

// pause stops the QP for a time from now. A pause never shortens an earlier one.
func (f *Flow) pause(now int64, microseconds uint16) Decision {
	const microsecond = 1000
	f.pausedTo = max(f.pausedTo, now+int64(microseconds)*microsecond)
	return Paused
}

// unpause ends a pause.
func (f *Flow) unpause(now int64) Decision {
	if f.pausedTo <= now {
		return NothingToResume
	}
	f.pausedTo = now
	return Unpaused
}
