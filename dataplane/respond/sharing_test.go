package respond

import (
	"math"
	"testing"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// TestSharingApart: two tenants with one address in two scopes, and one sender's flows in two queues, don't count together; two flows of one sender do.
func TestSharingApart(t *testing.T) {
	s := newSharing(make([]byte, sharingSize()), 1)
	of := func(scope packet.Scope, queue int) *sharer {
		k, ref := flowtable.Key{Src: packet.Addr{Hi: 0xfd00 << 48, Lo: 1}}, uint32(0)
		k.SetScope(scope)
		return s.of(&ref, &k, queue, 4096, 1)
	}
	if a := of(1, 0); a == nil || a == of(2, 0) || a == of(1, 1) || a != of(1, 0) {
		t.Error("senders, scopes or queues share an entry")
	}
}

// TestSharingKept: a sender that sends most has its entry, however many addresses others use; and a new flow never has another sender's, however often that was replaced.
func TestSharingKept(t *testing.T) {
	s := newSharing(make([]byte, sharingSize()), 1)
	greedy, ref := flowtable.Key{Src: packet.Addr{Hi: 0xfd00 << 48}}, uint32(0)
	arrives := func(ref *uint32, k *flowtable.Key, bytes uint32, now int64) *sharer {
		e := s.of(ref, k, 0, bytes, now)
		if e != nil {
			e.Last = now
		}
		return e
	}
	e := arrives(&ref, &greedy, 4096, 1)
	for n := range uint64(1_000_000) {
		now := int64(n)*10_000 + 1
		if again := arrives(&ref, &greedy, 4096, now); again != e || e.ref != ref {
			t.Fatalf("after %d others it has another entry", n)
		}
		spoofed, none := flowtable.Key{Src: packet.Addr{Hi: 0xfd01 << 48, Lo: n}}, uint32(0)
		if o := arrives(&none, &spoofed, 1024, now); o == e {
			t.Fatalf("address %d has the entry of another sender", n)
		}
	}
	first := &s.entries[0]
	*first = sharer{key: 2, ref: math.MaxUint32 &^ (sharingPlaces - 1)}
	for n := uint64(0); first.key == 2; n++ {
		k, none := flowtable.Key{Src: packet.Addr{Hi: 0xfd02 << 48, Lo: n}}, uint32(0)
		arrives(&none, &k, 1<<20, 1<<40)
	}
	if first.ref == 0 {
		t.Error("a new flow has the entry of another sender")
	}
}
