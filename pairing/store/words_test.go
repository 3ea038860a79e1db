package store

import "testing"

// TestSlack: a response is to a PSN that was sent, perhaps shortly before the flow was first seen.
func TestSlack(t *testing.T) {
	s := MakeSent(1000, 1010, 1)
	for _, c := range []struct {
		psn      uint32
		has, may bool
	}{{1010, true, true}, {1000, true, true}, {1011, false, false}, {999, false, true}, {937, false, true}, {936, false, false}} {
		if s.Has(c.psn) != c.has || s.May(c.psn) != c.may {
			t.Errorf("PSN %d: has %v, may %v", c.psn, s.Has(c.psn), s.May(c.psn))
		}
	}
}
