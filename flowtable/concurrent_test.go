package flowtable

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit/effort"
)

// ownerRounds is how often the owner of a table changes it.
const ownerRounds = 300_000*effort.Short + 10_000*effort.Race + 300_000*effort.Long

// The keys of these tests take one of two values in each of the key's words, so that any mixture of two keys is a third key of the set,
// with its own answer: a reader that accepted a mixture would find another flow's answer.
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

// mixID is the inverse of mixKey.
func mixID(k *Key) uint64 {
	return k.Src.Hi | (k.Src.Lo-1)<<1 | k.Dst.Hi<<2 | (k.Dst.Lo-3)<<3 | uint64(k.DestQP-7)<<4 | uint64(k.Port)<<5
}

// mixAnswer is an answer that contains its flow and the goroutine that set it.
func mixAnswer(id uint64, who int) Answer { return Answer(id + 1 + uint64(who)<<8) }

// meantFor reports whether an answer is 0 or was meant for this flow.
func meantFor(a Answer, id uint64) bool { return a == 0 || uint64(a&0xff) == id+1 }

// answers is the Observer of these tests' tables: it sets an answer when a flow begins, and checks the answer when the flow ends.
type answers struct {
	t   *testing.T
	tab *Table
}

func (a *answers) Begin(x Index) {
	a.tab.SetAnswer(x, a.tab.State(x), mixAnswer(mixID(a.tab.Key(x)), 0))
}

func (a *answers) End(x Index, _ Ending) {
	if id, s := mixID(a.tab.Key(x)), a.tab.State(x); !s.Live() || !meantFor(s.Answer(), id) {
		a.t.Errorf("flow %d ends with the answer %#x", id, s.Answer())
	}
}

// own adds, evicts, ages and renews flows until it and the readers have done their rounds.
func own(tab *Table, seed uint64, rounds int, enough func() bool) {
	rng := rand.New(rand.NewPCG(seed, 0))
	var keys [3]Key
	var out [3]Ref
	now := int64(0)
	for n := 0; n < rounds || !enough(); n++ {
		now += rng.Int64N(40)
		for i := range keys {
			keys[i] = mixKey(rng.Uint64N(mixKeys))
		}
		tab.Lookup(records(keys[:]...), now, out[:])
		if x := out[0].Index; x != None && n%3 == 0 {
			tab.Renew(x, now)
		}
		tab.Sweep(now)
		if n >= rounds/2 {
			tab.ListTwins()
		}
	}
}

// reader looks up flows in all tables and sets their answers, half of them late.
type reader struct {
	t             *testing.T
	who           int
	tables        []*Table
	rounds, found atomic.Int64
	given, late   atomic.Int64 // answers that were set, and answers that came too late
}

func (r *reader) run(done *atomic.Bool) {
	for !done.Load() && !r.t.Failed() {
		for id := range uint64(mixKeys) {
			k := mixKey(id)
			for _, tab := range r.tables {
				r.look(tab, id, &k)
			}
		}
		for _, tab := range r.tables {
			if s := tab.Stats(); s.Flows > 8 {
				r.t.Errorf("stats %+v of a table for 8 flows", s)
			}
		}
		r.rounds.Add(1)
		runtime.Gosched()
	}
}

// at is the flow that a Twin names; false if that has ended.
func (r *reader) at(tab *Table, f Twin) (id uint64, ok bool) {
	k, ok := tab.KeyAt(f.Index, tab.State(f.Index))
	if !ok || !tab.Live(f.Ref) {
		return 0, false
	}
	return mixID(&k), k.Scope() == f.Scope
}

func (r *reader) look(tab *Table, id uint64, k *Key) {
	x, s, ok := tab.Find(k)
	if !ok {
		return
	}
	r.found.Add(1)
	var twins [3]Twin
	for _, f := range twins[:tab.Twins(k, twins[:])] {
		if id, ok := r.at(tab, f); ok && id&^(1<<5) != mixID(k)&^(1<<5) {
			r.t.Errorf("flow %d has the twin %d", mixID(k), id)
		}
	}
	if !s.Live() || !meantFor(s.Answer(), id) {
		r.t.Errorf("flow %d has the state %#x", id, s)
	}
	if r.found.Load()%2 == 0 {
		runtime.Gosched()
	}
	if tab.SetAnswer(x, s, mixAnswer(id, r.who)) {
		r.given.Add(1)
	} else {
		r.late.Add(1)
	}
}

// A reader must detect that an entry became another flow and then the first one again.
func TestEachFlowHasAGenerationOfItsOwn(t *testing.T) {
	var e entry
	k := mixKey(1)
	seen := map[State]bool{State(e.state.Load()) & flowMask: true}
	for range 5 {
		begin(&e, &k, 0)
		s := State(e.state.Load())
		if seen[s&flowMask] || !s.Live() || s.Answer() != 0 {
			t.Fatalf("state %#x is repeated, or is not a new flow's", s)
		}
		seen[s&flowMask] = true
		if a := s.with(answerMask); a&flowMask != s&flowMask || a.Generation() != s.Generation() || a.Answer() != answerMask {
			t.Fatal("a flow that gets an answer looks like another flow")
		}
	}
}

// One entry alternates between two flows whose keys differ in every word. Readers never find a mixture of the keys, nor one flow with the
// other's answer.
func TestReaderNeverSeesHalfAnEntry(t *testing.T) {
	const none, all = uint64(0), uint64(mixKeys - 1)
	var e entry
	var done atomic.Bool
	var found atomic.Int64
	var reading sync.WaitGroup
	for range 2 {
		reading.Go(func() {
			for !done.Load() && !t.Failed() {
				n := int64(0)
				for id := range uint64(mixKeys) {
					k := mixKey(id)
					s, ok := e.is(&k)
					switch {
					case !ok:
					case id != none && id != all:
						t.Errorf("a reader found flow %d, which has never existed", id)
					case !meantFor(s.Answer(), id):
						t.Errorf("a reader found flow %d with the answer %#x", id, s.Answer())
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
		begin(&e, &keys[n%2], 1)
		e.state.Store(uint64(State(e.state.Load()).with(mixAnswer(id, 0))))
		for range n % 100 { // the flow lives for shorter or longer than a reader's access
			e.state.Load()
		}
		if n%1000 == 0 {
			runtime.Gosched()
		}
	}
	done.Store(true)
	reading.Wait()
	t.Logf("%d flows found by readers", found.Load())
}

// Two workers have a table each. Two other goroutines look up flows in both tables and set their answers. Under the race detector this
// shows that readers and owner share only atomics. Without the detector the test runs at full speed, and shows that no reader confuses two
// flows, and that no answer reaches another flow than its own.
func TestReadersNeverMixFlows(t *testing.T) {
	const owners, readerRounds = 2, 300 - 200*effort.Race
	var tables []*Table
	for i := range owners {
		a := &answers{t: t}
		a.tab = newTable(t, Config{Capacity: 8, Aging: 100, Seed: uint64(i), Observer: a})
		tables = append(tables, a.tab)
	}
	readers := [...]*reader{{t: t, who: 1, tables: tables}, {t: t, who: 2, tables: tables}}
	enough := func() bool {
		return t.Failed() || min(readers[0].rounds.Load(), readers[1].rounds.Load()) >= readerRounds
	}
	var done atomic.Bool
	var reading, owning sync.WaitGroup
	for _, r := range readers {
		reading.Go(func() { r.run(&done) })
	}
	for i := range owners {
		owning.Go(func() { own(tables[i], uint64(i), ownerRounds, enough) })
	}
	owning.Wait()
	done.Store(true)
	reading.Wait()
	for i, tab := range tables {
		s := tab.Stats()
		t.Logf("table %d: %+v", i, s)
		if s.Aged == 0 || s.Evictions == 0 {
			t.Errorf("table %d: no flow has ended: %+v", i, s)
		}
	}
	for _, r := range readers {
		t.Logf("reader %d: %d flows found, %d answers given, %d too late", r.who, r.found.Load(), r.given.Load(), r.late.Load())
		if r.found.Load() == 0 || r.given.Load() == 0 {
			t.Errorf("reader %d found nothing", r.who)
		}
	}
}
