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
	var out [1]Ref
	tab.Lookup([]packet.Record{{Flow: k.Words()}}, now, out[:])
	return out[0].Index
}

func TestNewRefuses(t *testing.T) {
	for _, c := range []struct{ bytes, capacity int }{{1 << 20, 0}, {1 << 20, -1}, {1 << 20, MaxCapacity + 1}, {Size(100) - 1, 100}, {0, 1}} {
		if tab, err := New(make([]byte, c.bytes), Config{Capacity: c.capacity}); err == nil || tab != nil {
			t.Errorf("%d bytes for %d flows: no error", c.bytes, c.capacity)
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

// Every field of a key distinguishes flows.
func TestKeyFields(t *testing.T) {
	base := Key{Src: packet.Addr{Hi: 1, Lo: 2}, Dst: packet.Addr{Hi: 3, Lo: 4}, DestQP: 5, SourceQP: 6, Port: 7, OuterTag: packet.MakeTag(packet.EtherTypeSTag, 8), InnerTag: packet.MakeTag(packet.EtherTypeCTag, 9)}
	keys := []Key{base}
	for _, change := range []func(*Key){
		func(k *Key) { k.Src.Hi++ }, func(k *Key) { k.Src.Lo++ }, func(k *Key) { k.Dst.Hi++ }, func(k *Key) { k.Dst.Lo++ },
		func(k *Key) { k.DestQP++ }, func(k *Key) { k.SourceQP++ }, func(k *Key) { k.Port++ },
		func(k *Key) { k.OuterTag++ }, func(k *Key) { k.InnerTag++ },
		func(k *Key) { k.OuterTag = packet.MakeTag(packet.EtherTypeCTag, 8) }, func(k *Key) { k.OuterTag = packet.MakeTag(packet.EtherTypeQinQ, 8) },
		func(k *Key) { k.InnerTag = packet.MakeTag(packet.EtherTypeSTag, 9) }, func(k *Key) { k.InnerTag = 0 }, func(k *Key) { k.Src, k.Dst = k.Dst, k.Src },
		func(k *Key) { k.tunnel = 1 << 13 }, func(k *Key) { k.tunnel = 2 << 13 }, func(k *Key) { k.tunnel = 1<<13 | 5 },
		func(k *Key) { k.tunnel = 1<<13 | 1<<12 | 5 },
	} {
		k := base
		change(&k)
		keys = append(keys, k)
	}
	tab := newTable(t, Config{Capacity: 100})
	out := make([]Ref, len(keys))
	tab.Lookup(records(keys...), 1, out)
	for i, x := range out {
		if slices.Contains(out[:i], x) {
			t.Errorf("key %d is the flow of another", i)
		}
		if i > 0 && (keys[i].same(&keys[0]) || tab.hash(&keys[i]) == tab.hash(&keys[0])) {
			t.Errorf("key %d compares or hashes as key 0", i)
		}
		if got := *tab.Key(x.Index); got != keys[i] {
			t.Errorf("key %d: flow has key %+v", i, got)
		}
		if _, _, ok := tab.Find(&keys[i]); !ok {
			t.Errorf("key %d: not found", i)
		}
	}
}

// TestTunnelKeys: flows with the same addresses are different flows in different tunnels and VLANs there, and Key returns the tunnel.
func TestTunnelKeys(t *testing.T) {
	const inside, outside = packet.Tag(0x1005), packet.Tag(0x2006)
	base := Key{Src: packet.Addr{Lo: 1}, Dst: packet.Addr{Lo: 2}, DestQP: 3, Port: 4}
	seen := map[Key]bool{base: true}
	for _, name := range packet.TunnelNames() {
		kind := packet.TunnelKindOf(name)
		for _, id := range []uint32{0, 1, 1 << 16, 0xffffff, 0xffffffff} {
			for vid, tags := range map[uint16][2]packet.Tag{0: {}, 5: {inside, outside}, 6: {0, outside}} {
				k := base
				k.SetTunnel(packet.Tunnel{Kind: kind, ID: id, VLAN: tags[0]}, tags[1])
				if seen[k] || k == base {
					t.Errorf("%v %d, VLAN %d: the key of another flow", kind, id, vid)
				}
				seen[k] = true
				gotKind, gotID, gotVID := k.Scope().Tunnel()
				if gotKind != kind || gotID != id || gotVID != vid || !k.Encapsulated() {
					t.Errorf("%v %d, VLAN %d: the key has %v %d, VLAN %d", kind, id, vid, gotKind, gotID, gotVID)
				}
				if s := k.Scope(); k.Port != base.Port || s.Port() != base.Port || s == base.Scope() || !s.Tagged() || s.At(9).At(int(base.Port)) != s {
					t.Errorf("%v %d, VLAN %d: port %d, scope %#x", kind, id, vid, k.Port, k.Scope())
				}
			}
		}
	}
	inVLAN := base
	inVLAN.OuterTag, inVLAN.InnerTag = inside, outside
	if kind, id, vid := inVLAN.Scope().Tunnel(); kind != packet.NoTunnel || id != 0 || vid != 0 || inVLAN.Encapsulated() {
		t.Errorf("a flow outside tunnels is in %v %d, VLAN %d", kind, id, vid)
	}
}

// recorder records an Observer's calls.
type recorder struct {
	tab    *Table
	events []event
}

type event struct {
	flow   Index
	key    Key
	begins bool
	why    Ending
	answer Answer
}

func (r *recorder) Begin(x Index) {
	r.events = append(r.events, event{x, *r.tab.Key(x), true, 0, r.tab.State(x).Answer()})
}

func (r *recorder) End(x Index, why Ending) {
	r.events = append(r.events, event{x, *r.tab.Key(x), false, why, r.tab.State(x).Answer()})
}

func TestFlowStartsAnewAfterAging(t *testing.T) {
	seen := &recorder{}
	tab := newTable(t, Config{Capacity: 10, Aging: 100, Observer: seen})
	seen.tab = tab
	k := keyOf(1)
	x := one(tab, k, 1000)
	first := tab.State(x)
	tab.SetAnswer(x, first, 77)
	same := func(why string) {
		t.Helper()
		if s := tab.State(x); s != first.with(77) || len(seen.events) != 1 {
			t.Fatalf("%s has ended: state %#x, observed %+v", why, s, seen.events)
		}
	}
	one(tab, k, 1100)
	same("a flow idle for just the aging period")
	if one(tab, k, 3000) != x {
		t.Fatal("the flow has another index")
	}
	if want := []event{{x, k, true, 0, 0}, {x, k, false, Aged, 77}, {x, k, true, 0, 0}}; !slices.Equal(seen.events, want) {
		t.Fatalf("observed %+v", seen.events)
	}
	if s := tab.State(x); s.Answer() != 0 || s.Generation() == first.Generation() || tab.entries[x].lastSeen != 3000 {
		t.Fatalf("the new flow's state is %#x after %#x, last seen at %d", s, first, tab.entries[x].lastSeen)
	}
	if s := tab.Stats(); s != (Stats{Flows: 1, Insertions: 2, Aged: 1}) {
		t.Fatalf("stats %+v", s)
	}
}

// A key of zeros, which a forged packet from :: to :: has, is a flow like any other. It is not entry 0, which means no flow.
func TestZeroKey(t *testing.T) {
	tab := newTable(t, Config{Capacity: 4})
	x := one(tab, Key{}, 5)
	if x == None || one(tab, Key{}, 6) != x || tab.Stats().Flows != 1 {
		t.Errorf("flow %d, stats %+v", x, tab.Stats())
	}
}

// Packets without a flow get none, however long the last one is ago, whatever else is in the table, and also in a full table, which evicts flows
// and never the entry of no flow. Keys that differ from NoFlow in a bit are flows.
func TestNoFlow(t *testing.T) {
	const capacity, aging = 10, 100
	tab := newTable(t, Config{Capacity: capacity, Aging: aging})
	no := packet.Record{Flow: packet.NoFlow, Len: 60}
	for now := int64(1000); now < 3000; now += 60 + now%150 {
		burst := []packet.Record{no, {Flow: new(keyOf(uint64(now))).Words()}, no, {Flow: new(keyOf(uint64(now + 1))).Words()}, no}
		out := slices.Repeat([]Ref{{7, 7}}, len(burst))
		before := tab.Stats().Insertions
		tab.Lookup(burst, now, out)
		if out[0] != (Ref{}) || out[2] != (Ref{}) || out[4] != (Ref{}) || out[1].Index == None || out[3].Index == None {
			t.Fatalf("flows %v for bursts with every other packet without a flow", out)
		}
		if n := tab.Stats().Insertions - before; n != 2 {
			t.Fatalf("%d insertions for two flows", n)
		}
	}
	if s := tab.Stats(); s.Flows != capacity || s.Evictions+s.Aged == 0 || tab.State(None).Live() {
		t.Fatalf("stats %+v, state of no flow %#x", s, tab.State(None))
	}
	for bit := range 8 * 8 * keyWords {
		k := *KeyOf(&no)
		flip(&k, bit)
		if x := one(tab, k, 3000+int64(bit)); x == None || *tab.Key(x) != k {
			t.Fatalf("bit %d of no flow: flow %d", bit, x)
		}
	}
}

// A packet without a flow has none either if the first slot of its bucket has its tag.
func TestNoFlowBehindItsTag(t *testing.T) {
	tab := newTable(t, Config{Capacity: 1, Seed: 1}) // all keys have the same two buckets
	no := packet.Record{Flow: packet.NoFlow}
	want := tag(tab.hash(KeyOf(&no)))
	n := uint64(0)
	for k := keyOf(n); tag(tab.hash(&k)) != want; k = keyOf(n) {
		n++
	}
	x := one(tab, keyOf(n), 1)
	out := []Ref{{7, 7}}
	tab.Lookup([]packet.Record{no}, 2, out)
	if s := tab.Stats(); x == None || out[0] != (Ref{}) || s != (Stats{Flows: 1, Insertions: 1}) {
		t.Fatalf("flow %v, stats %+v", out[0], s)
	}
}

// Two keys with the same tag in the same two buckets are two flows, for the owner and for readers. A burst that has one of them doesn't evict it.
func TestEqualTags(t *testing.T) {
	const capacity = 3 // so few that all keys have the same two buckets
	tab := newTable(t, Config{Capacity: capacity, Seed: 1})
	pair := sameTag(tab)
	a, b := one(tab, pair[0], 1), one(tab, pair[1], 2)
	third := one(tab, keyOf(1<<30), 3)
	if a == b || a == None || b == None || third == None {
		t.Fatalf("flows %d, %d and %d", a, b, third)
	}
	var out [3]Ref
	tab.Lookup(records(pair[1], pair[0], keyOf(1<<30+1)), 4, out[:])
	if indexes(out) != [3]Index{b, a, third} {
		t.Fatalf("got flows %v, want %d, %d and the third one's place, %d", out, b, a, third)
	}
	tab.Lookup(records(keyOf(1<<30+3), pair[0], pair[1]), 5, out[:]) // both are older than the third, and come later
	if indexes(out) != [3]Index{third, a, b} {
		t.Fatalf("got flows %v, want the third one's place, %d, then %d and %d", out, third, a, b)
	}
	for i, want := range []Index{a, b} {
		if x, _, ok := tab.Find(&pair[i]); !ok || x != want {
			t.Errorf("a reader finds flow %d, %v, want %d", x, ok, want)
		}
	}
}

func indexes(of [3]Ref) [3]Index { return [3]Index{of[0].Index, of[1].Index, of[2].Index} }

// sameTag looks for two keys whose hashes have the same tag.
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

func TestNoAllocation(t *testing.T) {
	seen := &counter{}
	tab := newTable(t, Config{Capacity: 1000, Aging: 1000, Observer: seen})
	packets := make([]packet.Record, 64)
	out := make([]Ref, 64)
	now := int64(0)
	if n := testing.AllocsPerRun(1000, func() {
		for i := range packets {
			k := keyOf(uint64(now) + uint64(i))
			packets[i].Flow = k.Words()
		}
		tab.Lookup(packets, now, out)
		tab.Sweep(now)
		tab.Find(KeyOf(&packets[0]))
		now += 20
	}); n != 0 {
		t.Fatalf("%v allocations a burst", n)
	}
	if s := tab.Stats(); s.Aged == 0 || s.Evictions == 0 || seen.begun != s.Insertions || seen.ended != s.Aged+s.Evictions {
		t.Fatalf("%d flows observed to begin and %d to end, stats %+v", seen.begun, seen.ended, s)
	}
}

// counter is an Observer that counts.
type counter struct{ begun, ended uint64 }

func (c *counter) Begin(Index)       { c.begun++ }
func (c *counter) End(Index, Ending) { c.ended++ }
