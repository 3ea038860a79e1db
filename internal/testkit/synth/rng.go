package synth

import "github.com/cnpgate/cnpgate/internal/splitmix"

// rng draws random numbers.
type rng struct{ splitmix.Rand }

func newRNG(seed uint64) rng { return rng{splitmix.Rand(splitmix.Mix(seed))} }

// upTo returns a uniform random number from 0 to n.
func (r *rng) upTo(n int64) int64 {
	if n <= 0 {
		return 0
	}
	return int64(r.Below(uint64(n) + 1))
}

// hit returns true with a probability. 0 and 1 need no random number.
func (r *rng) hit(p float64) bool {
	return p > 0 && (p >= 1 || r.Next() < uint64(p*(1<<32)*(1<<32)))
}

// weighted returns a random index, with probabilities in proportion to the weights. The sum of the weights must not be 0.
func (r *rng) weighted(weights []int) int {
	sum := 0
	for _, w := range weights {
		sum += w
	}
	at := int(r.Below(uint64(sum)))
	for i, w := range weights {
		if at -= w; at < 0 {
			return i
		}
	}
	return len(weights) - 1
}
