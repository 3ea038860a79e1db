// Package keyhash has the two steps of a hash that is keyed with a seed: Spread makes words of the seed, Fold mixes words of the key with
// them. An attacker who controls traffic, but doesn't know the seed, can't choose keys that collide in a table.
package keyhash

import "math/bits"

// Spread fills words from a seed (the SplitMix64 sequence).
func Spread(words []uint64, seed uint64) {
	for i := range words {
		seed += 0x9e3779b97f4a7c15
		z := seed
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		words[i] = z ^ z>>31
	}
}

// Fold multiplies to 128 bits and folds the halves: every bit of the result depends on every bit of both factors.
func Fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}
