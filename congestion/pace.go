package congestion

import "math/bits"

// Pacing configures how frames towards a host are slowed down until its senders can respond: the host's CNP is still on its way to them,
// and frames that they sent earlier still arrive.
type Pacing struct {
	HostRate uint64 // the host's receive rate, bit/s; its pace when not slowed down
	Floor    uint64 // least pace, bit/s
	Keep     uint64 // percent of the pace that remains after one CNP
	Interval int64  // least time between two reductions, ns
	Recovery int64  // time in which a pace grows by HostRate, ns
}

// Pace is the rate of frames towards a host. The zero Pace has not been slowed down.
type Pace struct {
	rate uint64 // at the time of the last reduction, bit/s
	at   int64  // time of that reduction, ns
	slow bool   // there was a reduction, and the pace is still below HostRate
}

// Reduce lowers the pace because of a CNP at a time (ns). It returns false if the last reduction was too recent.
func (p *Pace) Reduce(c *Pacing, now int64) bool {
	if p.slow && now-p.at < c.Interval {
		return false
	}
	p.rate, p.at, p.slow = max(p.Rate(c, now)*c.Keep/100, c.Floor), now, true
	return true
}

// Rate is the pace at a time (ns), bit/s.
func (p *Pace) Rate(c *Pacing, now int64) uint64 {
	if !p.slow {
		return c.HostRate
	}
	elapsed := max(now-p.at, 0)
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
