package congestion

import "math"

// Law is the control law of a class of an egress queue: it keeps a short queue in front of a line that is always busy, and gives every sender the
// same share of it, which its flows divide (LawShare). It has one number, the fair rate F. Senders that arrive faster are asked to come down to F; one below F is
// never asked. The flows of a sender that are too slow for a rate of their own count as one.
//
// F is found by water-filling. S is what would arrive if every sender obeyed F: the sum of bytes_i * min(1, F/r_i) over a time, where r_i is the
// rate of sender i. F is multiplied by target/S again and again, which has a fixed point where S is the target, whatever the number of senders. F
// falls before the senders have reacted.
//
// Rates are bytes on the line per ns, times ns, sizes bytes on the line. The zero Law is off.
type Law struct {
	Line      float64 // rate of the line
	Reference float64 // depth that the queue should have
	Full      float64 // depth from which on senders are notified as if the queue overflowed; the rest of its capacity is for what arrives before they slow down
	ByFlow    bool    // F is the fair rate of a flow instead; those of a sender that are too slow for a rate of their own count as one
}

// Constants of the law. scripts/effect sensitivity prints the effect of half and double of each.
const (
	lawPeriod      = 20_000    // ns, least time between two updates of F
	lawSlowest     = 200_000   // ns, time after which F is updated with few bytes, too
	lawEnough      = 1 << 17   // bytes that are enough for an update
	lawTau         = 500_000   // ns in which the law would remove what the queue has too much
	lawTauDelays   = 2         // least tau, in delays of the loop
	lawLeastTarget = 0.8       // of the line, while a queue drains
	lawIncrease    = 9.1e-8    // bytes/ns^2, of a flow: DCQCN's additive increase, 40 Mbps in 55 us
	lawDown, lawUp = 0.5, 1.05 // bounds of a change of F in lawPeriod
	lawLeastFair   = 1e-6      // of the line
	lawQueueTime   = 80_000    // ns of the line: reference of the queue
	lawQueueLeast  = 4_000_000 // bytes: the same, at least
	lawQueuePart   = 8         // the reference is at most this part of the capacity
	lawFullTime    = 5_000_000 // ns of the line: depth of a full queue
	lawFullLeast   = 32_000_000
	lawFullMost    = 256_000_000
	lawSpacing     = 60_000 // ns, about the time between two requests to a flow; DCQCN's rate timer is 55 us
)

// FullQueue is Law.Full of a queue that has the capacity for it, in bytes, in front of a line of rate bit/s.
func FullQueue(rate uint64) uint64 {
	return uint64(min(max(float64(rate)/8e9*lawFullTime, lawFullLeast), lawFullMost))
}

// NewLaw returns the law of a class with a capacity (bytes) in front of a line of rate bit/s. delay is the operator's target for the delay in the queue, ns; 0: the
// default.
func NewLaw(rate, capacity uint64, delay int64) Law {
	l := Law{Line: float64(rate) / 8e9}
	l.Reference = max(lawQueueTime*l.Line, lawQueueLeast)
	if delay > 0 {
		l.Reference = l.Line * float64(delay)
	}
	l.Full = float64(min(capacity, FullQueue(rate)))
	l.Reference = max(min(l.Reference, float64(capacity)/lawQueuePart), 1)
	return l
}

// On reports whether the law is used.
func (l *Law) On() bool { return l.Line > 0 }

// Due reports whether F is to be updated, after a time (ns) in which so many bytes have come. If flows are paused, they come in bursts, so that it takes longer.
func (l *Law) Due(elapsed int64, bytes uint64, paused bool) bool {
	return elapsed >= lawPeriod && bytes >= lawEnough && !paused || elapsed >= lawSlowest
}

// Inflow is what has arrived since the last update of F.
type Inflow struct {
	Elapsed int64   // ns
	Obeyed  float64 // bytes that would have come if every flow had obeyed F
	Largest float64 // rate of the fastest sender, 0 if none was measured
	Senders float64 // their number, 0 if it isn't known
	Resumes bool    // a sender can be asked for more, so that F may be above all rates
}

// Next is F after the arrivals a, in front of a queue of a depth. loop is the delay of the control loop, ns.
func (l *Law) Next(fair float64, a Inflow, depth float64, loop int64) float64 {
	rate := max(a.Obeyed, 1) / float64(max(a.Elapsed, 1))
	periods := float64(a.Elapsed) / lawPeriod
	change := l.target(fair, depth, loop, a.Resumes) / rate
	if change < 1 {
		change = max(change, math.Pow(lawDown, periods))
	} else {
		change = min(change, math.Pow(lawUp, periods))
	}
	most := l.most(&a)
	if change < 1 {
		fair = min(fair, most)
	}
	fair *= change
	if a.Resumes {
		most *= 2
	}
	return min(max(fair, lawLeastFair*l.Line), most, l.Line)
}

// most is the highest F that can matter: the rate of the fastest sender, and at least an equal share of the line. Senders that were all slowed down too far come back to that,
// some of them at once: below it, F would slow them down too far again.
func (l *Law) most(a *Inflow) float64 {
	switch {
	case a.Largest == 0:
		return l.Line
	case a.Senders == 0:
		return a.Largest
	}
	return max(a.Largest, l.Line/a.Senders)
}

// target is the rate that should arrive at a queue of a depth. An integrator with the gain 1/tau and a delay has a phase margin of 90 - 57.3 delay/tau degrees:
// with lawTauDelays at least 60. Senders that can't be asked for more should need no longer for what the queue has too much than to return to their share of the
// line by their own increase.
func (l *Law) target(fair, depth float64, loop int64, resumes bool) float64 {
	tau := max(lawTau, lawTauDelays*float64(loop+lawPeriod+lawSpacing))
	excess := depth - l.Reference
	drain := min(excess/tau, (1-lawLeastTarget)*l.Line)
	if excess > 0 && !resumes {
		drain = min(drain, math.Sqrt(2*excess*lawIncrease*l.Line/fair))
	}
	return l.Line - drain
}

// Space is how many bytes a queue of a depth takes until senders are to be slowed down at any price, if it takes so many until it overflows: half a
// queue is left for what comes until then.
func (l *Law) Space(depth, left float64) float64 {
	return min(left, max(max(l.Full, (depth+left)/2)-depth, 0))
}

// Drained is F once a queue of a depth has drained, as a multiple of F: 1 to 1/lawLeastTarget.
func (l *Law) Drained(fair, depth float64, loop int64, resumes bool) float64 {
	if depth <= l.Reference {
		return 1
	}
	return max(l.Line/l.target(fair, depth, loop, resumes), 1)
}

// urgency is how far the queue is above its reference: 1 up to there.
func (l *Law) urgency(depth float64) float64 { return max(1, depth/l.Reference) }

// Notifies reports whether senders are notified of a queue of a depth.
func (l *Law) Notifies(depth float64) bool { return depth > l.NotifiesAbove() }

// NotifiesAbove is the depth above which senders are notified.
func (l *Law) NotifiesAbove() float64 { return l.Reference / 2 }

// Resumes reports whether senders may be asked to resume.
func (l *Law) Resumes(depth float64) bool { return depth < l.Reference }

// Measures reports whether flows' rates are measured.
func (l *Law) Measures(depth float64) bool { return depth > l.Reference/8 }
