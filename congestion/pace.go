package congestion

import "math/bits"

// LawSpacing is the time between two notifications of a flow that the control law aims at, and LawSpacingLeast the least one, ns.
const (
	LawSpacing      = lawSpacing
	LawSpacingLeast = lawSpacingLeast
)

// Pacing configures how frames are slowed down: those towards a host, until its senders can respond to the host's CNP, which is still on its
// way to them; or those of a flow whose sender doesn't respond itself.
type Pacing struct {
	HostRate uint64 // of a host's link, bit/s; a pace when not slowed down
	Floor    uint64 // least pace, bit/s
	Keep     uint64 // percent of the pace that remains after one CNP
	Interval int64  // least time between two reductions, ns
	Hold     int64  // time after a reduction during which a pace doesn't grow, ns
	Recovery int64  // time in which a pace then grows by HostRate, ns
}

// Pace is the rate of frames towards a host, or of a flow. The zero Pace has not been slowed down.
type Pace struct {
	rate    uint64 // at the time of the last change, bit/s
	before  uint64 // before the last reduction, bit/s
	reduced uint64 // by that reduction, bit/s
	at      int64  // time of the last change, ns
	slow    bool   // there was a reduction, and the pace is still below HostRate
}

// Reduce lowers the pace because of a CNP at a time (ns). It returns false if the last change was too recent.
func (p *Pace) Reduce(c *Pacing, now int64) bool { return p.ReduceTo(c, c.Keep, now) }

// ReduceTo lowers the pace to a percentage of itself at a time (ns). It returns false if the last change was too recent.
func (p *Pace) ReduceTo(c *Pacing, keep uint64, now int64) bool {
	if p.slow && now-p.at < c.Interval {
		return false
	}
	p.Limit(c, p.Rate(c, now), keep, now)
	return true
}

// Limit sets the pace to a percentage of a rate in bit/s, at a time (ns). HostRate bounds the rate.
func (p *Pace) Limit(c *Pacing, rate, keep uint64, now int64) {
	p.before = min(rate, c.HostRate)
	p.rate, p.at, p.slow = max(p.before*keep/100, c.Floor), now, true
	p.reduced = p.before - min(p.before, p.rate)
}

// Restore gives back a percentage of the last reduction, at most up to the rate before it; 0 gives back all reductions (draft-tian 5.5.1), but at
// most half of HostRate (draft-tian 9), as a sender does. It returns false if there is nothing to give back.
func (p *Pace) Restore(c *Pacing, percent uint64, now int64) bool {
	if !p.Slow(c, now) {
		return false
	}
	rate := p.Rate(c, now)
	to := c.HostRate
	if percent != 0 {
		to = max(rate, min(p.before, rate+p.reduced*percent/100))
	}
	p.rate, p.at = min(to, rate+c.HostRate/2), now
	p.slow = p.rate < c.HostRate
	return true
}

// Rate is the pace at a time (ns), bit/s.
func (p *Pace) Rate(c *Pacing, now int64) uint64 {
	if !p.slow {
		return c.HostRate
	}
	elapsed := max(now-p.at-c.Hold, 0)
	if elapsed >= c.Recovery {
		p.slow = false
		return c.HostRate
	}
	hi, lo := bits.Mul64(c.HostRate, uint64(elapsed))
	gained, _ := bits.Div64(hi, lo, uint64(c.Recovery)) // elapsed is less than Recovery, so it fits
	if p.rate+gained >= c.HostRate {
		p.slow = false
		return c.HostRate
	}
	return p.rate + gained
}

// Slow reports whether the pace is less than HostRate at a time (ns).
func (p *Pace) Slow(c *Pacing, now int64) bool {
	p.Rate(c, now)
	return p.slow
}

// Takes is the time that a frame of this many bytes takes at the pace, ns.
func (p *Pace) Takes(c *Pacing, now int64, bytes uint32) int64 {
	return int64(uint64(bytes) * 8_000_000_000 / max(p.Rate(c, now), 1))
}
