package packet

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math/bits"
	"testing"

	"pgregory.net/rapid"
)

func TestICRCSeed(t *testing.T) {
	if want := crc32.ChecksumIEEE(bytes.Repeat([]byte{0xff}, 8)); icrcSeed != want {
		t.Errorf("seed %08x, want %08x", icrcSeed, want)
	}
}

// TestICRCPlain compares with a computation that masks a copy, over IPv4 with options and IPv6 with extension headers.
func TestICRCPlain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		frame, p := drawRoCEv2(t).build() // with plainICRC's value in place
		before := bytes.Clone(frame)
		if !VerifyICRC(frame, &p) {
			t.Fatal("the right ICRC isn't taken")
		}
		if !bytes.Equal(frame, before) {
			t.Fatal("VerifyICRC changed the frame")
		}
		binary.LittleEndian.PutUint32(frame[p.ICRC:], 0x12345678)
		PutICRC(frame, int(p.L3), int(p.BTH), int(p.ICRC), true)
		if !bytes.Equal(frame, before) {
			t.Fatalf("ICRC % x, want % x", frame[p.ICRC:p.ICRC+4], before[p.ICRC:p.ICRC+4])
		}
	})
}

// TestICRCInvariance: what may change on the way doesn't change the ICRC; any other bit does.
func TestICRCInvariance(t *testing.T) {
	for _, c := range []struct {
		family uint8
		masked map[int]byte // octet of the IP packet: bits
	}{
		{4, map[int]byte{1: 0xff, 8: 0xff, 10: 0xff, 11: 0xff, 20 + 6: 0xff, 20 + 7: 0xff, 28 + 4: 0xff}},
		{6, map[int]byte{0: 0x0f, 1: 0xff, 2: 0xff, 3: 0xff, 7: 0xff, 40 + 6: 0xff, 40 + 7: 0xff, 48 + 4: 0xff}},
	} {
		frame, p := stack{family: c.family, opcode: RCWriteFirst, payload: 32}.build()
		l3, bth, icrc := int(p.L3), int(p.BTH), int(p.ICRC)
		want := ICRC(frame, l3, bth, icrc, true)
		for i := l3; i < icrc; i++ {
			for bit := range 8 {
				if i == l3 && bit >= 4 {
					continue // the version
				}
				frame[i] ^= 1 << bit
				same := ICRC(frame, l3, bth, icrc, true) == want
				frame[i] ^= 1 << bit
				if masked := c.masked[i-l3]>>bit&1 != 0; same != masked {
					t.Errorf("IPv%d octet %d bit %d: left out %v, want %v", c.family, i-l3, bit, same, masked)
				}
			}
		}
	}
}

// TestICRCWithoutExtensionHeaders: left out, they might as well not be there, but for Next Header and Payload Length.
func TestICRCWithoutExtensionHeaders(t *testing.T) {
	s := stack{family: 6, opcode: CNP, payload: 16, ext: []extHeader{{ProtoDestOpts, make([]byte, 22)}}}
	with, p := s.build()
	s.ext = nil
	without, q := s.build()
	without[q.L3+6] = ProtoDestOpts
	be.PutUint16(without[q.L3+4:], be.Uint16(with[p.L3+4:]))
	got := ICRC(with, int(p.L3), int(p.BTH), int(p.ICRC), false)
	if want := ICRC(without, int(q.L3), int(q.BTH), int(q.ICRC), true); got != want {
		t.Errorf("ICRC %08x, want %08x", got, want)
	}
	if got == ICRC(with, int(p.L3), int(p.BTH), int(p.ICRC), true) {
		t.Error("the knob changes nothing")
	}
	PutICRC(with, int(p.L3), int(p.BTH), int(p.ICRC), false)
	if VerifyICRC(with, &p) {
		t.Error("VerifyICRC takes extension headers as sent, but took an ICRC without them")
	}
}

func TestVerifyICRCRefuses(t *testing.T) {
	frame, p := stack{family: 6, opcode: RCSendOnly, payload: 64, padding: 5}.build()
	if VerifyICRC(frame[:p.ICRC+3], &p) {
		t.Error("took a cut frame")
	}
	if !VerifyICRC(frame[:p.ICRC+4], &p) {
		t.Error("refused a frame without its padding")
	}
	frame[p.ICRC]++
	if VerifyICRC(frame, &p) {
		t.Error("took a wrong ICRC")
	}
	if VerifyICRC(frame, &Parsed{Kind: IP}) {
		t.Error("took a packet that isn't RoCEv2")
	}
}

// TestPutICRCEveryLength: PutICRC comes to what ICRC does for every length and alignment, with a link-layer header in front of any
// length, over a masked field of any content, and changes nothing but the ICRC.
func TestPutICRCEveryLength(t *testing.T) {
	for payload := range 200 {
		for _, link := range []int{0, 4, 11, 12, 13, 14, 18, 22} {
			for _, family := range []uint8{4, 6} {
				frame, p := stack{family: family, dscp: 21, ecn: 2, opcode: CNP, bthFlags: 0x5a, payload: payload}.build()
				b := append(bytes.Repeat([]byte{0xa5}, link), frame[p.L3:]...)
				shift := link - int(p.L3)
				want := bytes.Clone(b)
				clear(b[int(p.ICRC)+shift:])
				PutICRC(b, link, int(p.BTH)+shift, int(p.ICRC)+shift, true)
				if !bytes.Equal(b, want) {
					t.Fatalf("IPv%d, %d octets behind the BTH, %d before IP: got\n%x, want\n%x", family, payload, link, b, want)
				}
			}
		}
	}
}

// TestFoldConstants computes putFoldedCRC's constants from the polynomial.
func TestFoldConstants(t *testing.T) {
	const poly = 0x1_04c11db7
	power := func(n int) (r uint64) { // x^n mod P
		for r = 1; n > 0; n-- {
			if r <<= 1; r>>32 != 0 {
				r ^= poly
			}
		}
		return r
	}
	quotient := func() (q uint64) { // x^64 divided by P
		rest := uint64(1) // its upper bits
		for i := 63; i >= 0; i-- {
			q <<= 1
			if rest <<= 1; rest>>32 != 0 {
				q, rest = q|1, rest^poly
			}
		}
		return q
	}
	for _, c := range []struct {
		name      string
		got, want uint64
	}{
		{"halve", 0x163cd6124, uint64(bits.Reverse32(uint32(power(64)))) << 1},
		{"reduce, quotient", 0x1f7011641, bits.Reverse64(quotient()) >> 31},
		{"reduce, P", 0x1db710641, bits.Reverse64(poly) >> 31},
	} {
		if c.got != c.want {
			t.Errorf("%s: %#x, want %#x", c.name, c.got, c.want)
		}
	}
}

// FuzzFoldCRC: putFoldedCRC is putSeededCRC, at any address, reads nothing else, and writes nothing else.
func FuzzFoldCRC(f *testing.F) {
	if !folds {
		f.Skip("this build or processor has no putFoldedCRC")
	}
	for n := foldLeast; n <= foldMost; n += 4 {
		f.Add(bytes.Repeat([]byte{byte(n), 0xff, 0, 0x5a, 0x80}, n)[:n])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if b = b[:min(len(b)&^3, foldMost)]; len(b) < foldLeast {
			return
		}
		for shift := range 16 {
			got := append(append(bytes.Repeat([]byte{0xa5}, shift), b...), 0x5a, 0x5a, 0x5a, 0x5a, 0x5a)
			want := bytes.Clone(got)
			putSeededCRC(want[shift : len(want)-1])
			if putFoldedCRC(&got[shift], len(b)); !bytes.Equal(got, want) {
				t.Fatalf("%d octets at %d: % x, want % x", len(b), shift, got, want)
			}
		}
	})
}
