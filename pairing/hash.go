package pairing

import "github.com/cnpgate/cnpgate/internal/keyhash"

const secrets = 6

func secretsFrom(seed uint64) (s [secrets]uint64) {
	keyhash.Spread(s[:], seed)
	return s
}

func (p *Pairing) hashOf(k *groupKey) uint64 {
	s := &p.secret
	x := keyhash.Fold(k.hosts[0].Hi^s[0], k.hosts[0].Lo^s[1])
	y := keyhash.Fold(k.hosts[1].Hi^s[2], k.hosts[1].Lo^s[3])
	return keyhash.Fold(x^uint64(k.scope)^s[4], y^s[5])
}
