package congestion

import "math/bits"

// Sizing has the parameters of a queue's thresholds, apart from its line (draft-tian 5.3.2), and their bounds.
type Sizing struct {
	KBase       uint64  // bytes
	Alpha       float64 // see Adaptive
	KMinPercent int     // K_min in percent of K_max
	Capacity    uint64  // of the queue, bytes
}

// Thresholds are those of a queue in front of a line of rate bit/s, with an RTT_est of rtt ns. K_max is the given percentage of Adaptive's
// (draft-tian 5.8), and at most seven eighths of the queue's capacity, so that senders are notified before frames are dropped. K_min is
// below K_max.
func (z *Sizing) Thresholds(rate uint64, rtt int64, ofKMax int) Thresholds {
	kMax := timesPercent(Adaptive(z.KBase, z.Alpha, rate, rtt, z.KMinPercent).KMax, ofKMax)
	kMax = max(min(kMax, z.Capacity-max(z.Capacity/8, 1)), 1)
	return Thresholds{KMin: min(percent(kMax, z.KMinPercent), kMax-1), KMax: kMax}
}

// timesPercent is a percentage of a number, also above 100, rounded down; a product beyond 64 bits saturates.
func timesPercent(of uint64, percents int) uint64 {
	hi, lo := bits.Mul64(of, uint64(max(percents, 0)))
	if hi >= hundred {
		return 1<<64 - 1
	}
	p, _ := bits.Div64(hi, lo, hundred)
	return p
}

const hundred = 100 // percent
