package store

import "testing"

// TestEmptyFirst: on a side whose slots were all assigned before, a new flow gets an empty slot, if there is one, and not that of a flow
// that has ended: RDMA-CM may have closed that one, and its last packets still come.
func TestEmptyFirst(t *testing.T) {
	s := New(make([]Group, 2), make([]uint32, 2), make([]Page, pagesASide+1))
	g := s.Make(&Key{}, 1, 0)
	var last Slot
	for n := range SlotsASide {
		slot, ok := s.Empty(g, 0, 0, func(Ref) bool { return true })
		if !ok || slot.Number() != n {
			t.Fatalf("flow %d: slot %d, %v", n, slot.Number(), ok)
		}
		slot.Occupy(MakeRef(0, 1, uint32(n+1)), 0)
		last = slot
	}
	ended := func(r Ref) bool { return r.Index() == 3 }
	if slot, ok := s.Empty(g, 0, 0, ended); !ok || slot.Number() != 2 {
		t.Errorf("all slots in use: slot %d, %v, expected that of the flow that has ended", slot.Number(), ok)
	}
	last.Vacate(last.Ref())
	if slot, ok := s.Empty(g, 0, 0, ended); !ok || slot.Number() != last.Number() {
		t.Errorf("slot %d, %v, expected the empty one, %d", slot.Number(), ok, last.Number())
	}
}
