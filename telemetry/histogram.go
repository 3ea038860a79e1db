package telemetry

import "math/bits"

// Buckets is the number of buckets in a histogram below the last one, which has no upper bound.
const Buckets = 24

// Histogram counts values by size. Bucket i holds values above Bound(i-1) and up to Bound(i); the bounds are powers of two.
type Histogram struct {
	Count [Buckets + 1]uint64
	Sum   uint64 // of all values, in the metric's unit
}

// Exponent is the exponent of a metric's first bound, a power of two: 128 ns, so that the last bound is 1.07 s, or 1 KiB, so that it is 8
// GiB.
func (m *Metric) Exponent() uint {
	if m.Unit == Nanoseconds {
		return 7
	}
	return 10
}

// Bound is the upper bound of a metric's bucket, in its unit. The bucket includes it. The last bucket has none.
func (m *Metric) Bound(bucket int) uint64 { return 1 << (m.Exponent() + uint(bucket)) }

// Bucket is the bucket of a value in the metric's unit. exponent is that of the first bound.
func Bucket(exponent uint, value uint64) int {
	if value > 0 {
		value-- // a bound belongs to the bucket below it
	}
	return min(bits.Len64(value>>exponent), Buckets)
}

// Total is the number of values.
func (h *Histogram) Total() (n uint64) {
	for _, count := range h.Count {
		n += count
	}
	return n
}
