package fletcher_test

import (
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/internal/igp/fletcher"
)

// TestSum: with the checksum in place, both of Fletcher's sums are 0 modulo 255 (ISO/IEC 8473-1 6.11), wherever the checksum is. So a receiver that
// knows nothing of its place finds it right. The packages of the protocols check it against FRR and scapy.
func TestSum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.Byte(), 2, 2000).Draw(t, "octets")
		at := rapid.IntRange(0, len(b)-2).Draw(t, "at")
		binary.BigEndian.PutUint16(b[at:], fletcher.Sum(b, at))
		var c0, c1 int
		for _, v := range b {
			c0 = (c0 + int(v)) % 255
			c1 = (c1 + c0) % 255
		}
		if c0 != 0 || c1 != 0 {
			t.Fatalf("sums %d and %d with the checksum %#x at %d of %d octets", c0, c1, b[at:at+2], at, len(b))
		}
	})
}
