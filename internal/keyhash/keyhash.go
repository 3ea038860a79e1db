// Package keyhash has the two steps of a hash that is keyed with a seed: Spread makes words of the seed, Fold mixes words of the key with
// them. An attacker who controls traffic, but doesn't know the seed, can't choose keys that collide in a table.
package keyhash

import (
	"math/bits"

	"github.com/cnpgate/cnpgate/internal/splitmix"
)

// Spread fills words from a seed (the SplitMix64 sequence).
func Spread(words []uint64, seed uint64) {
	r := splitmix.Rand(seed)
	for i := range words {
		words[i] = r.Next()
	}
}

// Fold multiplies to 128 bits and folds the halves: every bit of the result depends on every bit of both factors.
func Fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}
