package congestion

import (
	"math"
	"math/bits"
)

// Thresholds of one egress queue (draft-tian 5.3.2), in bytes of frames without FCS. Adaptive makes them with KMin < KMax.
type Thresholds struct{ KMin, KMax uint64 }

// Adaptive calculates the thresholds of a queue from its link (draft-tian 5.3.2):
//
//	K_max = max(K_base, alpha * R_port * RTT_est / 8)
//
// kBase is in bytes, rate (R_port) in bits per second, rtt (RTT_est) in nanoseconds, 0 or less when unknown: then K_max is K_base. alpha is
// 1.0 by default; if it is not a positive number K_max is K_base, too. kMinPercent is K_min in percent of K_max, 50 by default.
//
// The bandwidth-delay product is exact, rounded down to a byte; its product with alpha is rounded to the nearest byte; a product beyond 64
// bits saturates. K_max is at least 1 and K_min at most K_max-1, since the draft requires K_min below K_max.
func Adaptive(kBase uint64, alpha float64, rate uint64, rtt int64, kMinPercent int) Thresholds {
	kMax := max(kBase, scale(bdp(rate, rtt), alpha), 1)
	return Thresholds{KMin: min(percent(kMax, kMinPercent), kMax-1), KMax: kMax}
}

// bdp is rate * rtt in bytes. The product exceeds 64 bits from 100 Gbps x 0.2 s on, so it has 128.
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

// scale multiplies bytes by alpha. For 1.0 it returns them unchanged: a float64 holds only 53 bits of them.
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
