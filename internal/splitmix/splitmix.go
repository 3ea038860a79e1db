// Package splitmix is the splitmix64 generator of random numbers: 8 bytes of state, and the same seed gives the same numbers on every machine. It is
// not for secrets.
package splitmix

import "math/bits"

// Rand is a generator. Each purpose has its own
// generator, so that drawing for one doesn't change another.
type Rand uint64

// New makes the generator of a purpose. Seeds and purposes may be small numbers.
func New(seed, purpose uint64) Rand { return Rand(Mix(Mix(seed) + purpose)) }

// Next returns 64 random bits.
func (r *Rand) Next() uint64 {
	*r += 0x9e3779b97f4a7c15
	return Mix(uint64(*r))
}

// Below returns a uniform random number from 0 to n-1; 0 for n = 0.
func (r *Rand) Below(n uint64) uint64 {
	hi, _ := bits.Mul64(r.Next(), n)
	return hi
}

// Float returns a uniform random number from 0 (included) to 1 (excluded).
func (r *Rand) Float() float64 { return float64(r.Next()>>11) / (1 << 53) }

// Mix mixes the bits of x (the finalizer of splitmix64).
func Mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
