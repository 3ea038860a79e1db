package congestion

import "math/bits"

// Cause is the reason for the second-level response (draft-tian 5.4), a bit for each condition that holds.
type Cause uint8

const (
	ByDepth   Cause = 1 << iota // (a) the depth exceeds K_max
	ByMarking                   // (b) the ECN Marking Rate exceeds V_ecn
	ByGrowth                    // (c) the Queue Growth Rate exceeds V_growth
	ByArrival                   // a packet arrived with CE, marked in the sender's own data centre; not in the draft
	ByProxy                     // another gateway asked this one, a proxy, to notify the sender (draft-xiao-proxy 3)
)

// Elsewhere reports whether a notification with this cause is about another queue than one of this gateway.
func (c Cause) Elsewhere() bool { return c&(ByArrival|ByProxy) != 0 }

// Causes is the number of causes.
const Causes = 5

var causeNames = [Causes]string{"depth", "marking", "growth", "ce-on-arrival", "proxy"}

// First is the number, from 0, of the first condition that holds. At least one must hold.
func (c Cause) First() int { return bits.TrailingZeros8(uint8(c)) }

// CauseName is the name of cause number n in reports and metrics.
func CauseName(n int) string { return causeNames[n] }

// Triggers are the conditions of the second-level response.
type Triggers struct {
	Thresholds
	Depth   bool   // whether (a) counts
	Marking uint32 // V_ecn, millionths; 0: (b) doesn't count
	Growth  int64  // V_growth, bytes per millisecond; 0: (c) doesn't count
}

// Threshold is that of the first of the conditions that hold, in the unit of its metric.
func (t *Triggers) Threshold(c Cause) uint64 {
	switch {
	case c&ByDepth != 0:
		return t.KMax
	case c&ByMarking != 0:
		return uint64(t.Marking)
	}
	return uint64(t.Growth)
}

// Trigger stores which conditions hold. The zero Trigger: none.
type Trigger struct{ on Cause }

// Update returns the conditions that hold. A condition begins above its threshold, and ends at a lower value: the depth a quarter of the
// way down from K_max to K_min, the rates at half of their thresholds. So a queue near a threshold doesn't switch the response on and off.
func (t *Trigger) Update(p *Triggers, m Metrics) Cause {
	on := p.begin(m)
	if t.on != 0 {
		on |= t.on & p.last(m)
	}
	t.on = on
	return on
}

// begin returns the conditions that begin, or hold anyway.
func (t *Triggers) begin(m Metrics) (c Cause) {
	if t.Depth && m.Depth > t.KMax {
		c |= ByDepth
	}
	if t.Marking > 0 && m.Marking > t.Marking {
		c |= ByMarking
	}
	if t.Growth > 0 && m.Growth > t.Growth {
		c |= ByGrowth
	}
	return c
}

// last returns the conditions that hold on if they held before.
func (t *Triggers) last(m Metrics) (c Cause) {
	if t.Depth && m.Depth > t.KMax-(t.KMax-min(t.KMin, t.KMax))/4 {
		c |= ByDepth
	}
	if t.Marking > 0 && m.Marking > t.Marking/2 {
		c |= ByMarking
	}
	if t.Growth > 0 && m.Growth > t.Growth/2 {
		c |= ByGrowth
	}
	return c
}
