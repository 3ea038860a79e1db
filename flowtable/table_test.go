package flowtable

import (
	"slices"
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
)

func newTable(t testing.TB, c Config) *Table {
	t.Helper()
	tab, err := New(make([]byte, Size(c.Capacity)), c)
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

// keyOf is the n-th of many different keys.
func keyOf(n uint64) Key {
	src, dst := packet.Addr{Hi: 0xfd000018 << 32, Lo: n >> 8}, packet.Addr{Hi: 0xfd000019 << 32, Lo: 2}
	return Key{Src: src, Dst: dst, DestQP: uint32(n & 0xff), Port: 1}
}

// one looks up one key.
func one(tab *Table, k Key, now int64) Index {
	var out [1]Index
	tab.Lookup([]Key{k}, now, out[:])
	return out[0]
}

func TestNewRefuses(t *testing.T) {
	for _, c := range []struct{ octets, capacity int }{{1 << 20, 0}, {1 << 20, -1}, {1 << 20, maxCapacity + 1}, {Size(100) - 1, 100}, {0, 1}} {
		if tab, err := New(make([]byte, c.octets), Config{Capacity: c.capacity}); err == nil || tab != nil {
			t.Errorf("%d octets for %d flows: no error", c.octets, c.capacity)
		}
	}
}

func TestMemoryNeedNotBeAligned(t *testing.T) {
	const capacity = 20
	for skip := range lineSize + 1 {
		mem := slices.Repeat([]byte{0xaa}, skip+Size(capacity)+1)
		clear(mem[skip : skip+Size(capacity)])
		tab, err := New(mem[skip:skip+Size(capacity)], Config{Capacity: capacity})
		if err != nil {
			t.Fatal(err)
		}
		if lineOffset(tab) != 0 {
			t.Fatalf("skip %d: buckets or entries don't begin on a cache line", skip)
		}
		for n := range uint64(2 * capacity) {
			one(tab, keyOf(n), int64(n))
		}
		if s := tab.Stats(); s.Flows != capacity || s.Evictions != capacity {
			t.Fatalf("skip %d: stats %+v", skip, s)
		}
		if mem[len(mem)-1] != 0xaa || skip > 0 && mem[skip-1] != 0xaa {
			t.Fatalf("skip %d: wrote outside its memory", skip)
		}
	}
}

func TestFindsWhatItAdded(t *testing.T) {
	tab := newTable(t, Config{Capacity: 100})
	keys := make([]Key, 64)
	for i := range keys {
		keys[i] = keyOf(uint64(i))
	}
	keys[63] = keys[0]
	var first, second [64]Index
	tab.Lookup(keys, 5, first[:])
	tab.Lookup(keys, 6, second[:])
	if first != second {
		t.Fatalf("second lookup gave other flows: %v, %v", first, second)
	}
	if first[63] != first[0] {
		t.Fatalf("one key twice in a burst is flows %d and %d", first[0], first[63])
	}
	if s := tab.Stats(); s != (Stats{Flows: 63, Insertions: 63}) {
		t.Fatalf("stats %+v", s)
	}
}

// Every field of a key tells flows apart, and its padding doesn't.
func TestKeyFields(t *testing.T) {
	base := Key{Src: packet.Addr{Hi: 1, Lo: 2}, Dst: packet.Addr{Hi: 3, Lo: 4}, DestQP: 5, SourceQP: 6, Port: 7, OuterVID: 8, InnerVID: 9}
	keys := []Key{base}
	for _, change := range []func(*Key){
		func(k *Key) { k.Src.Hi++ }, func(k *Key) { k.Src.Lo++ }, func(k *Key) { k.Dst.Hi++ }, func(k *Key) { k.Dst.Lo++ },
		func(k *Key) { k.DestQP++ }, func(k *Key) { k.SourceQP++ }, func(k *Key) { k.Port++ },
		func(k *Key) { k.OuterVID++ }, func(k *Key) { k.InnerVID++ }, func(k *Key) { k.Src, k.Dst = k.Dst, k.Src },
	} {
		k := base
		change(&k)
		keys = append(keys, k)
	}
	tab := newTable(t, Config{Capacity: 100})
	out := make([]Index, len(keys))
	tab.Lookup(keys, 1, out)
	for i, x := range out {
		if slices.Contains(out[:i], x) {
			t.Errorf("key %d is the flow of another", i)
		}
		if i > 0 && (keys[i].same(&keys[0]) || tab.hash(&keys[i]) == tab.hash(&keys[0])) {
			t.Errorf("key %d compares or hashes as key 0", i)
		}
		if got := *tab.Key(x); got != keys[i] {
			t.Errorf("key %d: flow has key %+v", i, got)
		}
		if _, ok := tab.Find(&keys[i]); !ok {
			t.Errorf("key %d: not found", i)
		}
	}
	padded := base
	padKey(&padded)
	if x := one(tab, padded, 2); x != out[0] {
		t.Error("what lies in the padding makes another flow")
	}
	if _, ok := tab.Find(&padded); !ok {
		t.Error("what lies in the padding hides a flow from readers")
	}
}

func TestFlowStartsAnewAfterAging(t *testing.T) {
	var ended []Flow
	tab := newTable(t, Config{Capacity: 10, Aging: 100, Ended: func(_ *Key, f *Flow, _ View) { ended = append(ended, *f) }})
	k := keyOf(1)
	x := one(tab, k, 1000)
	for range 3 {
		tab.Observe(x, &packet.Parsed{Len: 64}, nil, 1000)
	}
	tab.Account(x).SetTold(1000, true)
	if one(tab, k, 1100); tab.Flow(x).Packets != 3 || len(ended) != 0 {
		t.Fatal("a flow idle for just the aging period has ended")
	}
	tab.Hold(1100)
	if one(tab, k, 2000); tab.Flow(x).Packets != 3 || len(ended) != 0 {
		t.Fatal("a flow that may have frames queued has ended")
	}
	tab.Hold(2001)
	x = one(tab, k, 3000)
	if len(ended) != 1 || ended[0].Packets != 3 {
		t.Fatalf("ended: %+v", ended)
	}
	if f := tab.Flow(x); f.Packets != 0 || tab.entries[x].lastSeen != 3000 || tab.Account(x).Told() != 0 {
		t.Fatalf("new flow has %+v, notified at %d", f, tab.Account(x).Told())
	}
	if s := tab.Stats(); s != (Stats{Flows: 1, Insertions: 2, Aged: 1}) {
		t.Fatalf("stats %+v", s)
	}
}

// A burst never evicts a flow it has given out, even if it has to refuse the rest.
func TestBurstLargerThanTable(t *testing.T) {
	tab := newTable(t, Config{Capacity: 10})
	keys := make([]Key, 2*maxBurst+7)
	for i := range keys {
		keys[i] = keyOf(uint64(i))
	}
	out := make([]Index, len(keys))
	for now := range int64(3) {
		tab.Lookup(keys, now, out)
		for i, x := range out {
			if (x != None) != (i < 10) {
				t.Fatalf("round %d: key %d is flow %d", now, i, x)
			}
		}
	}
	if s := tab.Stats(); s.Refused != 3*uint64(len(keys)-10) || s.Flows != 10 {
		t.Fatalf("stats %+v", s)
	}
}

// Two keys with one tag in one pair of buckets are two flows, for the owner and for readers, and neither is evicted by a
// burst that has it.
func TestEqualTags(t *testing.T) {
	const capacity = 3 // so few that all keys have the same two buckets
	tab := newTable(t, Config{Capacity: capacity, Seed: 1})
	pair := sameTag(tab)
	a, b := one(tab, pair[0], 1), one(tab, pair[1], 2)
	third := one(tab, keyOf(1<<30), 3)
	if a == b || a == None || b == None || third == None {
		t.Fatalf("flows %d, %d and %d", a, b, third)
	}
	var out [3]Index
	tab.Lookup([]Key{pair[1], pair[0], keyOf(1<<30 + 1)}, 4, out[:])
	if out != [3]Index{b, a, third} {
		t.Fatalf("got flows %v, want %d, %d and the third one's place, %d", out, b, a, third)
	}
	tab.Lookup([]Key{keyOf(1<<30 + 3), pair[0], pair[1]}, 5, out[:]) // both are older than the third, and come later
	if out != [3]Index{third, a, b} {
		t.Fatalf("got flows %v, want the third one's place, %d, then %d and %d", out, third, a, b)
	}
	tab.Hold(5)
	tab.Lookup([]Key{pair[1], pair[0], keyOf(1<<30 + 2)}, 6, out[:])
	if out != [3]Index{b, a, None} {
		t.Fatalf("got flows %v, want %d, %d and none", out, b, a)
	}
	for i, x := range []Index{a, b} {
		tab.Account(x).SetTold(int64(10+i), true)
		if v, ok := tab.Find(&pair[i]); !ok || v.Notified != int64(10+i) {
			t.Errorf("a reader finds %+v, %v", v, ok)
		}
	}
}

// sameTag looks for two keys whose hashes have one tag.
func sameTag(tab *Table) [2]Key {
	seen := map[uint16]Key{}
	for n := uint64(0); ; n++ {
		k := keyOf(n)
		fp := tag(tab.hash(&k))
		if other, ok := seen[fp]; ok {
			return [2]Key{other, k}
		}
		seen[fp] = k
	}
}

func TestNotified(t *testing.T) {
	tab := newTable(t, Config{Capacity: 10})
	x := one(tab, keyOf(1), 0)
	for _, c := range []struct{ now, want int64 }{{5, 5}, {0, 1}, {-3, -3}} {
		tab.Account(x).SetTold(c.now, true)
		if got := tab.Account(x).Told(); got != c.want {
			t.Errorf("notified at %d, want %d", got, c.want)
		}
	}
}

func TestNames(t *testing.T) {
	for got, want := range map[string]string{
		Unknown.String(): "unknown", Candidate.String(): "candidate", Confirmed.String(): "confirmed", QPState(9).String(): "invalid",
		EvidenceNone.String(): "none", EvidenceStatic.String(): "static", EvidenceHint.String(): "hint",
		EvidenceCM.String(): "cm", EvidenceDETH.String(): "deth", EvidencePort.String(): "port", EvidencePSN.String(): "psn",
		EvidenceCNP.String(): "cnp", Evidence(8).String(): "invalid", Open.String(): "", EndedDREQ.String(): "dreq",
		EndedReuse.String(): "reuse", EndedAged.String(): "aged", EndedEviction.String(): "evicted", Ending(5).String(): "invalid",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestNoAllocation(t *testing.T) {
	m, _ := NewQPMap([]QPPair{{packet.Addr{Lo: 1}, packet.Addr{Lo: 2}, 17, 18}})
	tab := newTable(t, Config{Capacity: 1000, Aging: 1000, Static: m, Ended: func(*Key, *Flow, View) {}})
	keys := make([]Key, 64)
	out := make([]Index, 64)
	now := int64(0)
	if n := testing.AllocsPerRun(1000, func() {
		for i := range keys {
			keys[i] = keyOf(uint64(now) + uint64(i))
		}
		tab.Lookup(keys, now, out)
		tab.Sweep(now)
		tab.Find(&keys[0])
		now += 20
	}); n != 0 {
		t.Fatalf("%v allocations a burst", n)
	}
	if s := tab.Stats(); s.Aged == 0 || s.Evictions == 0 {
		t.Fatalf("no flow left: %+v", s)
	}
}
