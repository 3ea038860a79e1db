package notify

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/stage"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// linkedSenders are watched senders of a table with so many flows, and the flows, whose senders have one of a few addresses.
func linkedSenders(t testing.TB, flows, addresses int) (*Senders, []uint16) {
	allocate := func(bytes int) ([]byte, error) { return make([]byte, bytes), nil }
	memory := make([]byte, flowtable.Size(2*flows))
	table, err := flowtable.New(memory, flowtable.Config{Capacity: 2 * flows, Aging: 1e9, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewSenders(&Notifier{State: &stage.State{Flows: table}}, 0x9e3779b97f4a7c15, allocate)
	if err != nil {
		t.Fatal(err)
	}
	var places []uint16
	for i := range flows {
		k := flowtable.Key{Src: packet.Addr{Lo: uint64(1 + i%addresses)}, DestQP: uint32(2 + i)}
		var x [1]flowtable.Ref
		table.Lookup([]packet.Record{{Flow: k.Words()}}, 1, x[:])
		place := uint16(1 + i)
		s.of[place].flow = x[0].Index
		places = append(places, place)
	}
	return s, places
}

// TestUnlinkWalksNoChain: an entry leaves its chain by its neighbors alone. One sender's flows can all be in one chain.
func TestUnlinkWalksNoChain(t *testing.T) {
	s, places := linkedSenders(t, 8, 1)
	for _, n := range places {
		s.link(n)
	}
	s.of[places[7]].next = 0 // a walk from the head ends here
	s.unlink(places[3])
	if got := s.of[places[4]].next; got != places[2] {
		t.Errorf("entry %d follows, expected %d", got, places[2])
	}
}

// TestWatchListFull: when all senders that are watched are due a Resume, a further one is not watched, and counted.
func TestWatchListFull(t *testing.T) {
	s, places := linkedSenders(t, watchedSenders, 64)
	s.Counters = counters.New(1)
	for i, n := range places {
		s.of[n].Slowed, s.of[n].seen = true, int64(i)
		s.link(n)
	}
	if used, size := s.Used(); used != size {
		t.Errorf("%d of %d places are used", used, size)
	}
	if place := s.place(&Queue{}); place != 0 {
		t.Errorf("place %d of a full list was given away", place)
	}
	s.Counters.Publish(0)
	var count [counters.Counters]uint64
	if s.Counters.Read(0, &count); count[counters.SendersFull] != 1 {
		t.Errorf("counted %d times", count[counters.SendersFull])
	}
}

// TestChainsOfSenders: whatever is linked and unlinked, an address's chain has exactly its entries, the last linked first.
func TestChainsOfSenders(t *testing.T) {
	const addresses = 3
	s, places := linkedSenders(t, 30, addresses)
	rapid.Check(t, func(t *rapid.T) {
		clear(s.heads)
		var want []uint16
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			n := rapid.SampledFrom(places).Draw(t, "entry")
			if at := slices.Index(want, n); at >= 0 {
				s.unlink(n)
				want = slices.Delete(want, at, at+1)
			} else {
				s.link(n)
				want = slices.Insert(want, 0, n)
			}
			for a := range addresses {
				var got []uint16
				for n := uint16(s.Head(packet.Host{Addr: packet.Addr{Lo: uint64(1 + a)}}).Load()); n != 0; n = s.of[n].next {
					got = append(got, n)
				}
				if of := only(s, want, a); !slices.Equal(got, of) {
					t.Fatalf("address %d has %v, expected %v", a, got, of)
				}
			}
		}
	})
}

// only is the entries of an address.
func only(s *Senders, all []uint16, address int) (of []uint16) {
	for _, n := range all {
		if s.Flows.Key(s.of[n].flow).Src.Lo == uint64(1+address) {
			of = append(of, n)
		}
	}
	return of
}
