package health

import "testing"

// TestOwnDropsAge: a drop explains for 20 s that a packet is sent again, and never later, and is forgotten when it was sent again, whenever that is.
func TestOwnDropsAge(t *testing.T) {
	const dropped, minute = int64(5e9), int64(60e9)
	for age := minute; age < 200*minute; age += minute / 8 {
		var o ownDrops
		o.add(100, dropped)
		if !o.has(100, 101, dropped+1) || o.has(100, 101, dropped+age) {
			t.Errorf("a drop %d s ago: explained %v, expected only at once", age/1e9, o.has(100, 101, dropped+1))
		}
		if o.sentAgain(90, 20, dropped-1); o.n != 1 {
			t.Error("forgotten by what was sent before")
		}
		if o.sentAgain(90, 20, dropped+age); o.n != 0 {
			t.Errorf("not forgotten after %d s", age/1e9)
		}
	}
}
