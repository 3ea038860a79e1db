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
				places[s.of(&k, 1)] = true
			}
		}
		if len(places) < 1020 { // of 8192: more than eight in a set of eight are rare
			t.Errorf("seed %d: 1024 senders have %d places", seed, len(places))
		}
	}
}

// TestLawSendersKept: a sender that is above F now is not forgotten, however many others come and go.
func TestLawSendersKept(t *testing.T) {
	s := newLawSenders(make([]byte, lawSendersSize()), 1)
	key := func(n uint64) *flowtable.Key { return &flowtable.Key{Src: packet.Addr{Hi: 0xfd00 << 48, Lo: n}} }
	const congesting, others = 64, 1_000_000
	for n := range uint64(congesting) {
		s.of(key(n), 1).Delay = float32(n + 1)
	}
	for n := range uint64(others) {
		s.of(key(congesting+n), int64(n)+2)
		if again := n % 256; again < congesting {
			if e := s.of(key(again), int64(n)+2); e.Delay != float32(again+1) {
				t.Fatalf("after %d others, sender %d is forgotten", n, again)
			}
		}
	}
}

// TestDelayOfThree: the delay that applies to unknown senders is the median of three senders', or the shorter one of two.
func TestDelayOfThree(t *testing.T) {
	var f fairClass
	for n, c := range []struct{ measured, want int64 }{{5_000_000, 5_000_000}, {20_000, 20_000}, {30_000, 30_000}, {1_000, 20_000}, {25_000, 25_000}} {
		if f.learnDelay(c.measured); f.loop.Load() != c.want {
			t.Errorf("after %d senders, the delay is %d ns, expected %d", n+1, f.loop.Load(), c.want)
		}
	}
}
