package packet

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// TestPutFastCNPHeader1: it writes what Pad and Put do, and nothing behind it.
func TestPutFastCNPHeader1(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := FastCNPHeader{NextHeader: rapid.Uint8().Draw(t, "next header"), Type: rapid.Uint8().Draw(t, "type")}
		h.Option.Dst = Addr{rapid.Uint64().Draw(t, "upper half"), rapid.Uint64().Draw(t, "lower half")}
		h.Pad()
		got, want := bytes.Repeat([]byte{0xa5}, FastCNPHeader1Len+8), bytes.Repeat([]byte{0xa5}, FastCNPHeader1Len+8)
		PutFastCNPHeader1(got, h.NextHeader, h.Type, &h.Option.Dst)
		h.Put(want)
		if !bytes.Equal(got, want) {
			t.Fatalf("% x, expected % x", got, want)
		}
	})
}
