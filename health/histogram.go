package health

import "math/bits"

// Buckets is the number of buckets of a Histogram.
const Buckets = 40

// Histogram counts values by powers of two: bucket n has those up to 2^n that the buckets before don't have.
type Histogram [Buckets]uint32

func (h *Histogram) add(v uint64) { h[min(bits.Len64(max(v, 1)-1), Buckets-1)]++ }

// Count is the number of values.
func (h *Histogram) Count() (n uint64) {
	for _, c := range h {
		n += uint64(c)
	}
	return n
}

// Quantile is the upper end of the bucket that has the quantile q (0 to 1); 0 without values.
func (h *Histogram) Quantile(q float64) uint64 {
	want, sum := uint64(q*float64(h.Count())), uint64(0)
	for i, c := range h {
		if sum += uint64(c); sum > want {
			return 1 << i
		}
	}
	return 0
}

func (h *Histogram) merge(o *Histogram) {
	for i := range h {
		h[i] += o[i]
	}
}

// span is the smallest and the largest of the values, and their mean.
type span struct {
	least, most int64
	mean        int64 // moving, by an eighth
	n           uint32
}

func (s *span) add(v int64) {
	if s.n++; s.n == 1 {
		*s = span{v, v, v, 1}
		return
	}
	s.least, s.most = min(s.least, v), max(s.most, v)
	s.mean += (v - s.mean) / 8
}

// merge adds other values.
func (s *span) merge(o span) {
	switch {
	case o.n == 0:
	case s.n == 0:
		*s = o
	default:
		s.mean = (s.mean*int64(s.n) + o.mean*int64(o.n)) / int64(s.n+o.n)
		s.least, s.most, s.n = min(s.least, o.least), max(s.most, o.most), s.n+o.n
	}
}

// alike reports whether all values are about the same.
func (s *span) alike() bool { return s.most < s.least*5/4 }
