package store

import (
	"sync/atomic"
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
)

func newStore(flows int) *Store {
	groups, slots, nodes, counts := Sizes(flows)
	return New(Memory{make([]Group, groups), make([]Head, 2*groups), make([]Record, slots), make([]Node, nodes), make([]atomic.Uint32, counts)})
}

// TestEmptyFirst: on a side whose slots were all assigned before, a new flow gets an empty slot, if there is one, and not that of a flow
// that has ended: RDMA-CM may have closed that one, and its last packets still come.
func TestEmptyFirst(t *testing.T) {
	s := newStore(600)
	g := s.Make(&Key{}, 1)
	var last Slot
	for n := range SlotsASide {
		slot, ok := s.Empty(g, 0, 0, func(Ref) bool { return true })
		if !ok || slot.Number() != n {
			t.Fatalf("flow %d: slot %d, %v", n, slot.Number(), ok)
		}
		slot.Occupy(MakeRef(0, 1, uint32(n+1)), 0, 1, 0)
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

// TestLease: what a flow has published, and a link to it, end when another flow gets its slot; a late publication of the old flow changes nothing.
func TestLease(t *testing.T) {
	s := newStore(600)
	g := s.Make(&Key{}, 1)
	var slots [2]Slot
	for side := range slots {
		slots[side], _ = s.Empty(g, side, 0, func(Ref) bool { return true })
		slots[side].Occupy(MakeRef(0, 1, uint32(side+1)), 0, 1, 0)
	}
	a, b := &slots[0], &slots[1]
	old := a.Lease()
	a.PublishSent(old, MakeSent(5, 9, old))
	a.PublishAck(old, MakeAck(7, old))
	a.Pair(b, false)
	if _, ok := b.LinkedPeer(b.Link()); !ok || !a.Sent().Valid() || !a.Ack().Valid() || !a.SentBy(old).Valid() || !a.AckBy(old).Valid() {
		t.Fatalf("sent %#x, acknowledged %#x, linked %v", a.Sent(), a.Ack(), ok)
	}
	now := a.Occupy(MakeRef(0, 2, 1), 0, 1, 0)
	a.PublishSent(now, MakeSent(50, 90, now))
	a.PublishAck(now, MakeAck(70, now))
	a.PublishSent(old, MakeSent(1, 2, old))
	a.PublishAck(old, MakeAck(3, old))
	if sent, ack := a.Sent(), a.Ack(); sent.High() != 90 || ack.Last() != 70 {
		t.Errorf("the new flow has sent up to %d, acknowledged up to %d", sent.High(), ack.Last())
	}
	if a.SentBy(old) != 0 || a.AckBy(old) != 0 {
		t.Errorf("of the old flow: sent %#x, acknowledged %#x", a.SentBy(old), a.AckBy(old))
	}
	if _, ok := b.LinkedPeer(b.Link()); ok {
		t.Error("the link leads to the new flow")
	}
}

// TestBeside: groups between the same hosts in other scopes are found, until they are dropped; not those between other hosts, or behind other ports.
func TestBeside(t *testing.T) {
	s := newStore(600)
	key := func(host, port, vid uint64) *Key {
		return &Key{Hosts: [2]packet.Addr{{Lo: host}, {Lo: 9}}, Scope: packet.Scope(port | vid<<16)}
	}
	for _, k := range []*Key{key(1, 0, 5), key(1, 0, 6), key(2, 0, 6), key(1, 2, 6), key(1, 0, 7)} {
		s.Make(k, uint64(k.Scope)<<8|k.Hosts[0].Lo)
	}
	var to [MaxBeside]*Group
	check := func(want ...uint64) {
		t.Helper()
		n, all := s.Beside(key(1, 0, 5), &to)
		if n != len(want) || !all {
			t.Fatalf("%d groups, all %v, expected %v", n, all, want)
		}
		for i, vid := range want {
			if to[i].Key().Scope != key(1, 0, vid).Scope {
				t.Errorf("group %d is in %#x, expected VID %d", i, to[i].Key().Scope, vid)
			}
		}
	}
	check(7, 6)
	s.drop(to[1])
	check(7)
	s.drop(to[0])
	check()
	for vid := range uint64(MaxBeside + 1) {
		s.Make(key(3, 0, 10+vid), 1<<40+vid)
	}
	if n, all := s.Beside(key(3, 0, 9), &to); n != MaxBeside || all {
		t.Errorf("%d groups, all %v", n, all)
	}
}

// TestPath: a path is that of one scope, and none if it is too long.
func TestPath(t *testing.T) {
	var p Path
	var head [PathLen]byte
	long := make([]byte, PathLen+1)
	for i := range long {
		long[i] = byte(i)
	}
	for _, c := range []struct {
		n    int
		of   packet.Scope
		want int
	}{{PathLen, 5, PathLen}, {14, 5, 14}, {PathLen + 1, 5, 0}, {18, 6, 0}} {
		p.Set(c.of, long[:c.n])
		if n := p.Get(5, &head); n != c.want || string(head[:n]) != string(long[:n]) {
			t.Errorf("%d bytes of scope %d: % x", c.n, c.of, head[:n])
		}
	}
}
