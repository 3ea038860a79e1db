package synth

import "math/bits"

// rng is the splitmix64 generator: 8 bytes of state, the same numbers on every machine.
type rng uint64

func (r *rng) next() uint64 {
	*r += 0x9e3779b97f4a7c15
	return mix(uint64(*r))
}

// below returns a uniform random number from 0 to n-1; 0 for n = 0.
func (r *rng) below(n uint64) uint64 {
	hi, _ := bits.Mul64(r.next(), n)
	return hi
}

// upTo returns a uniform random number from 0 to n.
func (r *rng) upTo(n int64) int64 {
	if n <= 0 {
		return 0
	}
	return int64(r.below(uint64(n) + 1))
}

// mix mixes the bits of x, so that successive numbers give unrelated results.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// hit returns true with a probability. 0 and 1 need no random number.
func (r *rng) hit(p float64) bool {
	return p > 0 && (p >= 1 || r.next() < uint64(p*(1<<32)*(1<<32)))
}

// weighted returns a random index, with probabilities in proportion to the weights. The sum of the weights must not be 0.
func (r *rng) weighted(weights []int) int {
	sum := 0
	for _, w := range weights {
		sum += w
	}
	at := int(r.below(uint64(sum)))
	for i, w := range weights {
		if at -= w; at < 0 {
			return i
		}
	}
	return len(weights) - 1
}
