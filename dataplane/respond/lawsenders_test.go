package respond

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
		for n := range uint64(512) {
			for scope := range packet.Scope(2) {
				k := flowtable.Key{Src: packet.Addr{Hi: 0xfd00 << 48, Lo: n}}
				k.SetScope(scope)
				places[s.of(&k)] = true
			}
		}
		if len(places) < 1010 { // of 4096: more than four in a set of four are rare
			t.Errorf("seed %d: 1024 senders have %d places", seed, len(places))
		}
	}
}
