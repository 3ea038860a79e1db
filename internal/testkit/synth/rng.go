package synth

import "math/bits"

// rng is the splitmix64 generator: eight octets of state, the same numbers everywhere and for ever.
type rng uint64

func (r *rng) next() uint64 {
	*r += 0x9e3779b97f4a7c15
	return mix(uint64(*r))
}

// below draws evenly from 0 to n-1; 0 for n = 0.
func (r *rng) below(n uint64) uint64 {
	hi, _ := bits.Mul64(r.next(), n)
	return hi
}

// upTo draws evenly from 0 to n.
func (r *rng) upTo(n int64) int64 {
	if n <= 0 {
		return 0
	}
	return int64(r.below(uint64(n) + 1))
}

// mix scatters the bits of x: what two numbers of one sequence become has nothing visible in common.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// chance is a probability as a threshold for 64 random bits. Nothing is drawn for 0 and 1.
type chance uint64

const certain chance = 1<<64 - 1

func chanceOf(p float64) chance {
	switch {
	case !(p > 0):
		return 0
	case p >= 1:
		return certain
	}
	return chance(p * (1 << 32) * (1 << 32))
}

func (r *rng) hit(c chance) bool {
	return c != 0 && (c == certain || r.next() < uint64(c))
}

// weighted draws an index by its weight. The sum of the weights must not be 0.
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
