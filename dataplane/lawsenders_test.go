package dataplane

import (
	"testing"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// TestLawSendersApart: neighbors' addresses, and those of one address in several scopes, have places of their own, whatever the seed.
func TestLawSendersApart(t *testing.T) {
	for _, seed := range []uint64{0, 1, 1 << 63} {
		s := newLawSenders(make([]byte, lawSendersSize()), seed)
		places := map[any]bool{}
		for n := range uint64(64) {
			for scope := range packet.Scope(2) {
				k := flowtable.Key{Src: packet.Addr{Hi: 0xfd00 << 48, Lo: n}}
				k.SetScope(scope)
				places[s.of(&k)] = true
			}
		}
		if len(places) < 120 { // of 4096: two meet with a probability of 1/4096
			t.Errorf("seed %d: 128 senders have %d places", seed, len(places))
		}
	}
}
