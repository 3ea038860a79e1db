package congestion

import (
	"math"
	"math/bits"
)

// Thresholds of one egress queue (draft-tian 5.3.2), in octets of frames without FCS. Adaptive makes them with KMin < KMax.
type Thresholds struct{ KMin, KMax uint64 }

// Adaptive calculates the thresholds of a queue from its link (draft-tian 5.3.2):
//
//	K_max = max(K_base, alpha * R_port * RTT_est / 8)
//
// kBase is in octets, rate (R_port) in bits per second, rtt (RTT_est) in nanoseconds, 0 or less when unknown: then K_max is
// K_base. alpha is 1.0 by default; one that is not a positive number takes the product away too. kMinPercent is K_min in percent
// of K_max, 50 by default.
//
// The bandwidth-delay product is exact, rounded down to an octet, and what alpha makes of it is rounded to the nearest one; a
// product beyond 64 bits saturates. K_max is at least 1 and K_min at most K_max-1, as the draft wants K_min below K_max.
func Adaptive(kBase uint64, alpha float64, rate uint64, rtt int64, kMinPercent int) Thresholds {
	kMax := max(kBase, scale(bdp(rate, rtt), alpha), 1)
	return Thresholds{KMin: min(percent(kMax, kMinPercent), kMax-1), KMax: kMax}
}

// bdp is rate * rtt in octets. The product passes 64 bits from 100 Gbps x 0.2 s on, so it is taken in 128.
func bdp(rate uint64, rtt int64) uint64 {
	if rtt <= 0 {
		return 0
	}
	const bitNanosecondsPerOctet = 8 * 1e9
	hi, lo := bits.Mul64(rate, uint64(rtt))
	if hi >= bitNanosecondsPerOctet {
		return math.MaxUint64
	}
	octets, _ := bits.Div64(hi, lo, bitNanosecondsPerOctet)
	return octets
}

// scale multiplies octets by alpha. It leaves them as they are for 1.0: a float64 holds only 53 bits of them.
func scale(octets uint64, alpha float64) uint64 {
	if alpha == 1 {
		return octets
	}
	product := math.Round(float64(octets) * alpha)
	switch {
	case product >= math.MaxUint64: // rounds to 2^64, the first value that does not fit
		return math.MaxUint64
	case product > 0:
		return uint64(product)
	}
	return 0 // also NaN
}

func percent(of uint64, percents int) uint64 {
	if percents <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(of, uint64(min(percents, 100)))
	p, _ := bits.Div64(hi, lo, 100)
	return p
}

// Level is the response that a queue's depth asks for (draft-tian 5.4).
type Level uint8

const (
	None   Level = iota // no congestion
	First               // incipient: mark CE
	Second              // severe: notify the sender
)

// Level tells what depth, in octets, asks for. To exceed a threshold is to be strictly above it.
func (t Thresholds) Level(depth uint64) Level {
	switch {
	case depth > t.KMax:
		return Second
	case depth > t.KMin:
		return First
	}
	return None
}

func (l Level) String() string {
	switch l {
	case None:
		return "none"
	case First:
		return "first"
	case Second:
		return "second"
	}
	return "unknown"
}

// Severity is the Congestion Level of a Long-haul CNP (draft-tian 6.1: 0 no congestion, 255 maximum severity; how to get there
// is left to the node): depth as a share of the queue's capacity, both in octets, in 255 steps rounded down. It is 255 only from
// a full queue on, and 0 for a queue without capacity and nothing in it.
func Severity(depth, capacity uint64) uint8 {
	if depth >= capacity {
		if depth == 0 {
			return 0
		}
		return math.MaxUint8
	}
	if capacity < exactQuotient {
		return uint8(float64(depth*math.MaxUint8) / float64(capacity))
	}
	hi, lo := bits.Mul64(depth, math.MaxUint8)
	level, _ := bits.Div64(hi, lo, capacity)
	return uint8(level)
}

// exactQuotient bounds the capacities for which a division of floating-point numbers, a quarter of the time of one of integers, says the
// same: a quotient that is no whole number is at least 2^-40 below the next one, and its rounding less than 2^-45.
const exactQuotient = 1 << 40
