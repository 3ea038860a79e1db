package packet

import (
	"bytes"
	"slices"
	"testing"
	"unsafe"

	"github.com/cnpgate/cnpgate/internal/burst"
	"pgregory.net/rapid"
)

// FuzzMarkBurst: markBurst is markBurstGo, whatever is in the headers behind the version. described has two bytes for each frame: the
// header's offset, and TOS as in the record. The headers are those in the input, one after another.
func FuzzMarkBurst(f *testing.F) {
	v4, p4 := stack{family: 4, ecn: ECT0, opcode: RCSendOnly}.build()
	v6, p6 := stack{family: 6, ecn: ECT1, opcode: RCSendOnly}.build()
	both := slices.Concat(v4[p4.L3:][:IPv4Len], v6[p6.L3:][:IPv4Len])
	f.Add(both, []byte{14, ECT0, 14, ECT1}, ^uint64(0))
	f.Add(both, []byte{14, ECT1, 18, ECT0, 14, CE, 14, NotECT, 0, CE, 0, NotECT}, ^uint64(0))
	f.Add(both, []byte{14, ECT1, 14, 7<<2 | ECT0, 255, ECT0}, uint64(0b101))
	f.Add(bytes.Repeat([]byte{0x45, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 99), bytes.Repeat([]byte{3, ECT0}, burst.MaxSize), ^uint64(0)>>3)
	f.Add(bytes.Repeat([]byte{0x65, 2, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 99), bytes.Repeat([]byte{3, ECT1}, burst.MaxSize), ^uint64(0))
	f.Add(both, []byte{14, ECT0}, uint64(0b10))
	f.Fuzz(func(t *testing.T, headers, described []byte, these uint64) {
		var frames []burst.Frame
		var records []Record
		var memory []byte
		for ; len(described) >= 2 && len(headers) >= IPv4Len && len(frames) < burst.MaxSize; described = described[2:] {
			at, ip := len(memory), described[0]
			memory = append(append(memory, make([]byte, ip)...), headers[:IPv4Len]...)
			memory[at+int(ip)] = headers[0]&0x2f | 0x40 // version 4 or 6
			frames = append(frames, burst.Frame{Data: uint64(at), Len: uint32(len(memory) - at), Head: uint32(len(memory) - at)})
			records = append(records, Record{IP: uint16(ip), TOS: described[1]})
			headers = headers[IPv4Len:]
		}
		want, got := bytes.Clone(memory), bytes.Clone(memory)
		known := bytes.Clone(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(records))), len(records)*int(unsafe.Sizeof(Record{}))))
		these &= 1<<len(frames) - 1
		twin := markBurstGo(unsafe.Pointer(unsafe.SliceData(want)), frames, records, these)
		if marked := markBurst(unsafe.Pointer(unsafe.SliceData(got)), frames, records, these); marked != twin || !bytes.Equal(got, want) {
			t.Fatalf("%+v %+v %x: marked %x\n% x, the twin %x\n% x, of\n% x", frames, records, these, marked, got, twin, want, memory)
		}
		if marked := Markable(records, these); marked != twin {
			t.Fatalf("%+v %x: %x can be marked, %x were", records, these, marked, twin)
		}
		if !bytes.Equal(known, unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(records))), len(known))) {
			t.Fatal("a record has changed")
		}
	})
}

// TestMarkBurst: of a burst it marks what it is asked to mark and can, in the outermost IP header, and no byte of another frame changes.
func TestMarkBurst(t *testing.T) {
	var memory []byte
	var frames []burst.Frame
	var records []Record
	var can uint64
	add := func(b []byte, p *Parsed) {
		var r Record
		r.Set(p)
		if p.ECN == ECT0 || p.ECN == ECT1 {
			can |= 1 << len(frames)
		}
		frames = append(frames, burst.Frame{Data: uint64(len(memory)), Len: uint32(len(b)), Head: uint32(len(b))})
		memory, records = append(memory, b...), append(records, r)
	}
	for _, family := range []uint8{4, 6} {
		for ecn := range uint8(CE + 1) {
			for _, tags := range plainTags[:2] {
				b, p := stack{family: family, ecn: ecn, dscp: 63 - ecn, tags: tags, opcode: RCSendOnly}.build()
				add(b, &p)
			}
		}
	}
	for _, e := range encapsulations() {
		inner, p := stack{family: 4, opcode: RCWriteMiddle, ecn: ECT1}.build()
		b, p := e.put(inner, p, stack{ecn: ECT0}, 2)
		add(b, &p)
	}
	arp := append([]byte("\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x02\x08\x06"), make([]byte, 46)...)
	var p Parsed
	Parse(arp, uint32(len(arp)), &p)
	add(arp, &p)
	for _, these := range []uint64{0, ^uint64(0), 0x5555_5555_5555_5555, ^uint64(1<<9 - 1), 1 << len(frames)} {
		got, want := bytes.Clone(memory), bytes.Clone(memory)
		for i, f := range frames {
			if b := want[f.Data:][:f.Len]; these>>i&1 != 0 {
				MarkCE(b, records[i].IP, records[i].ECN())
			}
		}
		marked := MarkBurst(unsafe.Pointer(&got[0]), frames, records, these)
		if marked != these&can || !bytes.Equal(got, want) {
			t.Errorf("%x: marked %x, expected %x\n% x\nexpected\n% x", these, marked, these&can, got, want)
		}
	}
}

// TestMarkCEChecksum: for any IPv4 header the new checksum is as wrong as the old one was, and exactly what a full computation
// gives when the old one was (RFC 1624 3).
func TestMarkCEChecksum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		frame, p := stack{family: 4, ecn: rapid.Uint8Range(ECT1, ECT0).Draw(t, "ecn"), dscp: rapid.Uint8Range(0, 63).Draw(t, "dscp"),
			opcode: RCSendOnly}.build()
		h := frame[p.L3 : p.L3+IPv4Len]
		// The identification moves the sum to any value, the corners 0 and 0xFFFF among them.
		be.PutUint16(h[4:], rapid.Uint16().Draw(t, "id"))
		be.PutUint16(h[10:], 0)
		right := plainChecksum(h)
		checksum := rapid.OneOf(rapid.Just(right), rapid.Uint16(), rapid.SampledFrom([]uint16{0, 0xffff})).Draw(t, "checksum")
		be.PutUint16(h[10:], checksum)
		off := plainChecksum(h) // 0 where it is right
		if !markCE(frame, &p) {
			t.Fatal("not marked")
		}
		if got := plainChecksum(h); got%0xffff != off%0xffff { // 0 and 0xFFFF are the same number
			t.Fatalf("checksum %04x was off by %04x, is off by %04x now", checksum, off, got)
		}
		if checksum == right {
			got := be.Uint16(h[10:])
			be.PutUint16(h[10:], 0)
			if want := plainChecksum(h); got != want {
				t.Fatalf("checksum %04x, want %04x", got, want)
			}
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

// TestMarkCECorners goes through all identifications and so through all sums, for both codepoints.
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

func TestMarkCERefuses(t *testing.T) {
	arp := append([]byte("\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x02\x08\x06"), make([]byte, 46)...)
	notECT4, _ := stack{family: 4, opcode: RCSendOnly}.build()
	notECT6, _ := stack{family: 6, opcode: RCSendOnly}.build()
	ce4, _ := stack{family: 4, ecn: CE, opcode: RCSendOnly}.build()
	ce6, _ := stack{family: 6, ecn: CE, opcode: RCSendOnly}.build()
	for i, frame := range [][]byte{arp, notECT4, notECT6, ce4, ce6} {
		before := bytes.Clone(frame)
		var p Parsed
		Parse(frame, uint32(len(frame)), &p)
		q := p
		if markCE(frame, &p) || !bytes.Equal(frame, before) || p != q {
			t.Errorf("case %d: marked or changed", i)
		}
	}
}

// TestMarkCEIPv6 changes two bits of the traffic class and nothing else: DSCP and flow label stay.
func TestMarkCEIPv6(t *testing.T) {
	for _, ecn := range []uint8{ECT0, ECT1} {
		frame, p := stack{family: 6, ecn: ecn, dscp: 63, opcode: RCSendOnly}.build()
		want := bytes.Clone(frame)
		want[15] |= 0x30
		if !markCE(frame, &p) || p.ECN != CE || !bytes.Equal(frame, want) {
			t.Errorf("ECN %d: % x", ecn, frame[14:18])
		}
	}
}
