package congestion

import "math"

// Growth is how fast a queue grows, and how much slower its senders will become by CNPs in flight: the difference is what more arrives than the line takes once these have had their
// effect. Rates are bytes/ns. The zero Growth is that of a queue that is empty.
type Growth struct {
	Rate     float64 // of the queue
	Promised float64
}

// Next is the growth after a time (ns) in which the depth has become another one, by so many bytes. What was promised is seen in that rate after the loop's delay (ns; 0: not known).
func (g Growth) Next(elapsed int64, deeper float64, loop int64) Growth {
	seen := loop + lawWindow + lawWindowAll
	if loop == 0 {
		seen = lawUnknownDelay
	}
	return Growth{deeper / float64(max(elapsed, 1)), g.Promised * math.Exp(-float64(elapsed)/float64(seen))}
}

// Surplus is the rate at which the queue will grow; below 0 it will drain.
func (g Growth) Surplus() float64 { return g.Rate - g.Promised }
