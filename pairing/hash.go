package pairing

import "math/bits"

const secrets = 6

// secretsFrom spreads a seed over the words that a hash needs (the SplitMix64 sequence).
func secretsFrom(seed uint64) (s [secrets]uint64) {
	for i := range s {
		seed += 0x9e3779b97f4a7c15
		z := seed
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		s[i] = z ^ z>>31
	}
	return s
}

// fold multiplies to 128 bits and folds the halves: every bit of the result depends on every bit of both factors.
func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

func (p *Pairing) hashOf(k *groupKey) uint64 {
	s := &p.secret
	x := fold(k.hosts[0].Hi^s[0], k.hosts[0].Lo^s[1])
	y := fold(k.hosts[1].Hi^s[2], k.hosts[1].Lo^s[3])
	return fold(x^k.place^s[4], y^s[5])
}
