package nictest

// Response is what a sender did after notifications. Times are nanoseconds since the first of them, rates bit/s.
type Response struct {
	Before    float64 `json:"before_bps"`         // the rate before
	Reduced   bool    `json:"reduced"`            // the rate fell by more than it does without notifications
	First     int64   `json:"first_reduction_ns"` // when it did; the way of notification and data included
	Lowest    float64 `json:"lowest_bps"`         // the lowest rate
	Depth     float64 `json:"depth"`              // of the cut: the part of the rate before by which it fell, 0 to 1
	Recovered int64   `json:"recovered_ns"`       // when the rate was what it had been; -1: not while it was watched
	Increase  float64 `json:"increase_bps_per_s"` // mean increase of the rate on its way back
	Lost      float64 `json:"held_back_bits"`     // what the sender would have sent besides
}

const (
	// Rates are compared as means over windows of windowBins bins, of twice as many, and so on.
	windowBins, scales = 5, 9
	leastReduction     = 0.015
	// recoveredPart of the rate before counts as recovered.
	recoveredPart = 0.97
)

// calm is how low a sender's rate falls without notifications, at each scale, in proportion to its mean: hosts and the network stall senders. A
// notification has an effect if the rate falls lower.
type calm struct {
	lowest [scales]float64
	seen   bool
}

// noisy reports whether the rate falls visibly without notifications.
func (k *calm) noisy() bool { return k.seen && k.lowest[0] < 0.9 }

// sees reports whether a cut by half would be visible at any scale.
func (k *calm) sees() bool {
	for s := range k.lowest {
		if k.threshold(s) >= 0.5 {
			return true
		}
	}
	return false
}

// steady is the part of the best rate above which a rate may be the best.
func (k *calm) steady() float64 {
	const exact = 0.996
	if !k.seen {
		return exact
	}
	return min(exact, k.lowest[scales-1])
}

// windows calls for each window of a scale, in the order of their ends, what its mean rate is, bit/s; last is the window's last bin. more is false to stop.
func (c *curve) windows(scale int, f func(last int, rate float64) (more bool)) {
	width := windowBins << scale
	toRate := second / float64(int64(width)*c.bin)
	sum := 0.0
	for i := range len(c.bits) - 1 { // the last bin isn't complete
		sum += c.bits[i]
		if i >= width {
			sum -= c.bits[i-width]
		}
		if i >= width-1 && !f(i, max(0, sum)*toRate) {
			return
		}
	}
}

// learn notes the rates of a time without notifications.
func (k *calm) learn(c *curve, mean float64) {
	if mean <= 0 {
		return
	}
	if !k.seen {
		k.seen = true
		for s := range k.lowest {
			k.lowest[s] = 1
		}
	}
	for s := range k.lowest {
		c.windows(s, func(_ int, rate float64) bool {
			k.lowest[s] = min(k.lowest[s], rate/mean)
			return true
		})
	}
}

// threshold is the part of the rate before below which a mean at a scale is a reduction; negative if none can be.
func (k *calm) threshold(scale int) float64 {
	if !k.seen {
		return 1 - leastReduction
	}
	missing := 1 - k.lowest[scale]
	return 1 - max(leastReduction, missing+max(leastReduction, missing/2))
}

// respond analyses a trial's curve, whose bins begin with the first notification.
func respond(c *curve, before float64, k *calm) Response {
	r := Response{Before: before, Recovered: -1, Lowest: before}
	scale := 0
	for ; scale < scales && !r.Reduced; scale++ {
		low := before * k.threshold(scale)
		c.windows(scale, func(last int, rate float64) bool {
			if rate < low {
				r.Reduced, r.First = true, c.firstBelow(last-windowBins<<scale+1, last, before)
			}
			return !r.Reduced
		})
	}
	if !r.Reduced {
		return r
	}
	scale--
	lowest, back := 0, -1
	high := before * min(recoveredPart, k.threshold(scale))
	c.windows(scale, func(last int, rate float64) bool {
		if rate < r.Lowest && int64(last)*c.bin >= r.First {
			r.Lowest, lowest = rate, last
		}
		switch {
		case rate < high:
			back = -1
		case back < 0:
			back = last
		}
		return true
	})
	for _, bits := range c.bits[:len(c.bits)-1] {
		r.Lost += max(0, before*float64(c.bin)/second-bits)
	}
	r.Depth = 1 - r.Lowest/before
	if back >= 0 {
		r.Recovered = int64(back) * c.bin
		if back > lowest {
			r.Increase = max(0, before*recoveredPart-r.Lowest) * second / float64(int64(back-lowest)*c.bin)
		}
	}
	return r
}

// firstBelow is when the rate fell, between the bins of a window whose mean is low: in the first bin that misses something, as late as what the bin
// misses takes at the next bin's rate.
func (c *curve) firstBelow(from, to int, before float64) int64 {
	whole := before * float64(c.bin) / second
	for i := max(from, 0); i <= to; i++ {
		if missing := 1 - c.bits[i]/whole; missing > leastReduction {
			next := missing
			if i+1 < len(c.bits) {
				next = max(missing, 1-c.bits[i+1]/whole)
			}
			return int64((float64(i) + 1 - missing/next) * float64(c.bin))
		}
	}
	return int64(from) * c.bin
}
