package flowtable

import (
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
	return Key{Src: packet.Addr{Hi: 0xfd000018 << 32, Lo: n >> 8}, Dst: packet.Addr{Hi: 0xfd000019 << 32, Lo: 2}, DestQP: uint32(n & 0xff), Port: 1}
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
	seen := map[Index]bool{}
	for i, x := range first[:63] {
		if x == None || seen[x] {
			t.Fatalf("key %d: flow %d is not its own", i, x)
		}
		seen[x] = true
		if k := tab.Key(x); *k != keys[i] {
			t.Fatalf("key %d: flow has key %v", i, k)
		}
		if f := tab.Flow(x); f.LastSeen != 6 {
			t.Fatalf("key %d: last seen %d, want 6", i, f.LastSeen)
		}
	}
	if first[63] != first[0] {
		t.Fatalf("one key twice in a burst is flows %d and %d", first[0], first[63])
	}
	if s := tab.Stats(); s != (Stats{Flows: 63, Insertions: 63}) {
		t.Fatalf("stats %+v", s)
	}
}
