package health

import "testing"

// TestIDs: a late packet is older, and leaves the latest number. After a jump of the counter, which all connections of a host may share, packets are new.
func TestIDs(t *testing.T) {
	for _, c := range []struct {
		name  string
		id    uint16
		older bool
	}{{"next", 103, false}, {"late", 101, true}, {"far ahead", 30102, false}, {"far behind", 60102, false}, {"none", 0, false}} {
		var d ids
		for id := range uint16(3) {
			d.next(100 + id)
		}
		if got := d.older(c.id); got != c.older {
			t.Errorf("%s: older is %v", c.name, got)
		}
		if d.next(c.id); (d.latest == 102) != c.older {
			t.Errorf("%s: the latest one is %d", c.name, d.latest)
		}
	}
}
