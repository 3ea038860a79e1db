package nictest

import "math"

// Response is what a sender did after notifications. Times are nanoseconds since the first of them, rates bit/s.
type Response struct {
	Before    float64 `json:"before_bps"`         // the rate before
	Reduced   bool    `json:"reduced"`            // the rate fell visibly
	First     int64   `json:"first_reduction_ns"` // when it did; the way of notification and data included
	Lowest    float64 `json:"lowest_bps"`         // the lowest rate
	Depth     float64 `json:"depth"`              // of the cut: the part of the rate before by which it fell, 0 to 1
	Recovered int64   `json:"recovered_ns"`       // when the rate was what it had been; -1: not while it was watched
	Increase  float64 `json:"increase_bps_per_s"` // mean increase of the rate on its way back
	Lost      float64 `json:"held_back_bits"`     // what the sender would have sent besides
}

const (
	// A rate is below another one if the mean of so many bins is lower by this part, or by so many standard deviations.
	windowBins     = 5
	leastReduction = 0.015
	deviations     = 6
	// recoveredPart of the rate before counts as recovered.
	recoveredPart = 0.97
)

// threshold is the part of the rate before below which the mean of windowBins bins is a reduction.
func threshold(noise float64) float64 {
	return 1 - min(0.5, max(leastReduction, deviations*noise/math.Sqrt(windowBins)))
}

// respond analyses a trial's curve, whose bins begin with the first notification.
func respond(c *curve, before, noise float64) Response {
	r := Response{Before: before, Recovered: -1, Lowest: before}
	low := before * threshold(noise)
	n := len(c.bits) - 1 // the last bin isn't complete
	toRate := second / float64(c.bin)
	lowest, back := 0, -1
	sum := 0.0
	for i := range max(n, 0) {
		sum += c.bits[i] * toRate
		if i >= windowBins {
			sum -= c.bits[i-windowBins] * toRate
		}
		if i < windowBins-1 {
			continue
		}
		mean := sum / windowBins
		if mean < low && !r.Reduced {
			r.Reduced, r.First = true, c.firstBelow(i-windowBins+1, i, before)
		}
		if !r.Reduced {
			continue
		}
		if mean < r.Lowest {
			r.Lowest, lowest = max(0, mean), i
		}
		switch {
		case mean < before*min(recoveredPart, threshold(noise)):
			back = -1
		case back < 0:
			back = i
		}
	}
	if !r.Reduced {
		return r
	}
	for i := range n {
		r.Lost += max(0, before*float64(c.bin)/second-c.bits[i])
	}
	r.Depth = 1 - r.Lowest/before
	if back >= 0 {
		r.Recovered = int64(back) * c.bin
		if back > lowest {
			r.Increase = (before*recoveredPart - r.Lowest) * second / float64(int64(back-lowest)*c.bin)
		}
	}
	r.Increase = max(0, r.Increase)
	return r
}

// firstBelow is when the rate fell, between the bins of a window whose mean is low: where the largest step down is, and within that bin by how much it
// misses.
func (c *curve) firstBelow(from, to int, before float64) int64 {
	whole := before * float64(c.bin) / second
	for i := from; i <= to; i++ {
		if missing := 1 - c.bits[i]/whole; missing > leastReduction {
			next := 1.0
			if i+1 < len(c.bits) {
				next = max(missing, 1-c.bits[i+1]/whole)
			}
			return int64((float64(i) + 1 - missing/next) * float64(c.bin))
		}
	}
	return int64(from) * c.bin
}
