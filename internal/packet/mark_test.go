package packet

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// TestMarkCEChecksum: for any IPv4 header the new checksum is as wrong as the old one was (RFC 1624 3).
func TestMarkCEChecksum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		frame, p := stack{family: 4, ecn: rapid.Uint8Range(ECT1, ECT0).Draw(t, "ecn"), dscp: rapid.Uint8Range(0, 63).Draw(t, "dscp"),
			opcode: RCSendOnly}.build()
		h := frame[p.L3 : p.L3+IPv4Len]
		// The identification moves the sum to any value, the corners 0 and 0xFFFF among them.
		be.PutUint16(h[4:], rapid.Uint16().Draw(t, "id"))
		be.PutUint16(h[10:], 0)
		checksum := rapid.OneOf(rapid.Just(plainChecksum(h)), rapid.Uint16(), rapid.SampledFrom([]uint16{0, 0xffff})).Draw(t, "checksum")
		be.PutUint16(h[10:], checksum)
		off := plainChecksum(h) // 0 where it is right
		if !markCE(frame, &p) {
			t.Fatal("not marked")
		}
		if got := plainChecksum(h); got%0xffff != off%0xffff { // 0 and 0xFFFF are the same number
			t.Fatalf("checksum %04x was off by %04x, is off by %04x now", checksum, off, got)
		}
	})
}

// TestClearCE: clearing undoes marking, whatever the checksum was, and changes nothing where there is no CE.
func TestClearCE(t *testing.T) {
	for _, family := range []uint8{4, 6} {
		frame, p := stack{family: family, ecn: ECT0, opcode: RCSendOnly}.build()
		for id := range 0x10000 {
			if family == 4 {
				h := frame[p.L3 : p.L3+IPv4Len]
				be.PutUint16(h[4:], uint16(id))
				be.PutUint16(h[10:], 0)
				be.PutUint16(h[10:], plainChecksum(h))
			}
			before := bytes.Clone(frame)
			if clearCE(frame, &p) || !markCE(frame, &p) || !clearCE(frame, &p) || p.ECN != ECT0 || !bytes.Equal(frame, before) {
				t.Fatalf("family %d, identification %04x: ECN %d, % x, expected % x", family, id, p.ECN, frame[:34], before[:34])
			}
		}
	}
}

// TestMarkCECorners: a right checksum becomes what a full computation gives, for all identifications and so all sums, and both codepoints.
func TestMarkCECorners(t *testing.T) {
	for _, ecn := range []uint8{ECT0, ECT1} {
		frame, p := stack{family: 4, ecn: ecn, opcode: RCSendOnly}.build()
		h := frame[p.L3 : p.L3+IPv4Len]
		for id := range 0x10000 {
			be.PutUint16(h[4:], uint16(id))
			h[1] = ecn
			be.PutUint16(h[10:], 0)
			be.PutUint16(h[10:], plainChecksum(h))
			p.ECN = ecn
			markCE(frame, &p)
			got := be.Uint16(h[10:])
			be.PutUint16(h[10:], 0)
			if want := plainChecksum(h); got != want || h[1] != CE {
				t.Fatalf("ECN %d, identification %04x: checksum %04x, want %04x, TOS %02x", ecn, id, got, want, h[1])
			}
		}
	}
}
