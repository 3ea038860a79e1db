package flowtable

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// The keys of these tests take one of two values in each of the key's words, so that any mixture of two keys is a third key of the
// set, with a source QP and a notification time of its own: a reader that took a mixture for a key would read another flow's.
const mixKeys = 64

func mixKey(id uint64) Key {
	bit := func(n uint) uint64 { return id >> n & 1 }
	return Key{
		Src:    packet.Addr{Hi: bit(0), Lo: 1 + bit(1)},
		Dst:    packet.Addr{Hi: bit(2), Lo: 3 + bit(3)},
		DestQP: uint32(7 + bit(4)),
		Port:   uint16(bit(5)),
	}
}

func mixQP(id uint64) uint32 { return uint32(1000 + id&31) }

func mixPairs(t *testing.T) *QPMap {
	var pairs []QPPair
	for id := range uint64(32) {
		k := mixKey(id)
		pairs = append(pairs, QPPair{k.Src, k.Dst, mixQP(id), k.DestQP})
	}
	m, err := NewQPMap(pairs)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// own adds, evicts and ages flows until it has done its rounds and the readers theirs.
func own(tab *Table, seed uint64, rounds int, enough func() bool) {
	rng := rand.New(rand.NewPCG(seed, 0))
	var keys [3]Key
	var ids [3]uint64
	var out [3]Index
	now := int64(0)
	for n := 0; n < rounds || !enough(); n++ {
		now += rng.Int64N(40)
		for i := range keys {
			ids[i] = rng.Uint64N(mixKeys)
			keys[i] = mixKey(ids[i])
		}
		tab.Lookup(keys[:], now, out[:])
		for i, x := range out {
			tab.Observe(x, &packet.Parsed{Len: 64}, nil, now)
			tab.Account(x).SetTold(int64(ids[i]+1), true)
		}
		tab.Sweep(now)
	}
}

// read looks flows up in all tables until done, and counts its rounds.
func read(t *testing.T, tables []*Table, done *atomic.Bool, rounds, found *atomic.Int64) {
	for !done.Load() {
		for id := range uint64(mixKeys) {
			k := mixKey(id)
			for _, tab := range tables {
				v, ok := tab.Find(&k)
				if !ok {
					continue
				}
				found.Add(1)
				if v.SourceQP != mixQP(id) || v.State != Confirmed || v.Evidence != EvidenceStatic {
					t.Errorf("flow %d: source QP %d %v by %v, want %d", id, v.SourceQP, v.State, v.Evidence, mixQP(id))
					return
				}
				if v.Notified != 0 && v.Notified != int64(id+1) {
					t.Errorf("flow %d: notified at %d, want %d", id, v.Notified, id+1)
					return
				}
			}
		}
		for _, tab := range tables {
			if s := tab.Stats(); s.Flows > 8 {
				t.Errorf("stats %+v of a table for 8 flows", s)
			}
		}
		rounds.Add(1)
		runtime.Gosched()
	}
}

// A reader that slept while an entry became another flow and the first one again must be able to tell.
func TestEachFlowHasAGenerationOfItsOwn(t *testing.T) {
	var e entry
	k := mixKey(1)
	seen := map[uint64]bool{e.state.Load() & flowMask: true}
	for range 5 {
		e.begin(&k, 0, 1)
		s := e.state.Load()
		if seen[s&flowMask] || !state(s).live() {
			t.Fatalf("state %#x comes again", s)
		}
		seen[s&flowMask] = true
		if e.change(state(s), qpWord(17, Confirmed, EvidenceStatic)); e.state.Load()&flowMask != s&flowMask {
			t.Fatal("a flow whose source QP becomes known looks like another flow")
		}
	}
}

// One entry becomes one flow and the other in turn, which differ in every word of the key. Readers never find a mixture of the two,
// nor one with what belongs to the other.
func TestReaderNeverSeesHalfAnEntry(t *testing.T) {
	const none, all = uint64(0), uint64(mixKeys - 1)
	var e entry
	var a Account
	var done atomic.Bool
	var found atomic.Int64
	var reading sync.WaitGroup
	for range 2 {
		reading.Go(func() {
			for !done.Load() && !t.Failed() {
				n := int64(0)
				for id := range uint64(mixKeys) {
					k := mixKey(id)
					v, ok := e.view(&k, &a)
					switch {
					case !ok:
					case id != none && id != all:
						t.Errorf("a reader found flow %d, which has never been", id)
					case v.SourceQP != mixQP(id) || v.Notified != 0 && v.Notified != int64(id+1):
						t.Errorf("a reader found flow %d with %+v", id, v)
					default:
						n++
					}
				}
				found.Add(n)
			}
		})
	}
	keys := [2]Key{mixKey(none), mixKey(all)}
	for n := 0; (n < ownerRounds/3 || found.Load() < 1000) && !t.Failed(); n++ {
		id := none
		if n%2 == 1 {
			id = all
		}
		e.begin(&keys[n%2], qpWord(mixQP(id), Confirmed, EvidenceStatic), 1)
		a.begin(state(e.state.Load()).generation())
		a.notified.Store(int64(id + 1))
		for range n % 100 { // the flow lasts for a while, shorter or longer than a reader takes
			a.notified.Load()
		}
		if n%1000 == 0 {
			runtime.Gosched()
		}
	}
	done.Store(true)
	reading.Wait()
	t.Logf("%d flows found by readers", found.Load())
}

// Two workers with a table each, two other goroutines that look flows up in both. Under the race detector this shows that readers
// and owner share nothing but atomics; without it, it runs at full speed and shows that no reader takes one flow for another.
func TestReadersNeverMixFlows(t *testing.T) {
	const owners, readers, readerRounds = 2, 2, 300
	static := mixPairs(t)
	var tables []*Table
	for i := range owners {
		tables = append(tables, newTable(t, Config{Capacity: 8, Aging: 100, Seed: uint64(i), Static: static}))
	}
	var done atomic.Bool
	var rounds [readers]atomic.Int64
	var found atomic.Int64
	var reading, owning sync.WaitGroup
	for i := range readers {
		reading.Go(func() { read(t, tables, &done, &rounds[i], &found) })
	}
	for i := range owners {
		owning.Go(func() {
			own(tables[i], uint64(i), ownerRounds, func() bool {
				return t.Failed() || rounds[0].Load() >= readerRounds && rounds[1].Load() >= readerRounds
			})
		})
	}
	owning.Wait()
	done.Store(true)
	reading.Wait()
	for i, tab := range tables {
		s := tab.Stats()
		t.Logf("table %d: %+v", i, s)
		if s.Aged == 0 || s.Evictions == 0 {
			t.Errorf("table %d: no flow has left: %+v", i, s)
		}
	}
	t.Logf("%d flows found by readers", found.Load())
	if found.Load() == 0 {
		t.Error("the readers found nothing")
	}
}
