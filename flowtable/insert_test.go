package flowtable

import (
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

// begin and fill do as their specifications in Go, whatever the entry and the bucket contain.
func TestInsertTwins(t *testing.T) { rapid.Check(t, checkInsert) }

func FuzzInsertTwins(f *testing.F) { f.Fuzz(rapid.MakeFuzz(checkInsert)) }

func checkInsert(t *rapid.T) {
	words := drawWords(t)
	k := (*Key)(unsafe.Pointer(&words))
	state, now := rapid.Uint64().Draw(t, "state"), rapid.Int64().Draw(t, "now")
	var e, want entry
	e.state.Store(state)
	want.state.Store(state)
	begin(&e, k, now)
	beginGo(&want, k, now)
	if a, b := *(*[8]uint64)(unsafe.Pointer(&e)), *(*[8]uint64)(unsafe.Pointer(&want)); a != b {
		t.Fatalf("entry %x, want %x", a, b)
	}
	var b, wantB bucket
	for slot := range slots {
		if rapid.Bool().Draw(t, "used") {
			tag, x := rapid.Uint16Range(1, tagMask).Draw(t, "tag"), rapid.Uint32().Draw(t, "index")
			fill(&b, slot, tag, Index(x))
			fillGo(&wantB, slot, tag, Index(x))
		}
	}
	if a, b := *(*[8]uint64)(unsafe.Pointer(&b)), *(*[8]uint64)(unsafe.Pointer(&wantB)); a != b {
		t.Fatalf("bucket %x, want %x", a, b)
	}
}
