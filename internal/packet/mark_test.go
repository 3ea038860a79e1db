package packet

import (
	"bytes"
	"testing"
	"unsafe"

	"github.com/cnpgate/cnpgate/internal/burst"
)

// FuzzMarkBurst: markBurst is markBurstGo, whatever is in the headers behind the version. described has two bytes for each frame: the
// header's offset, and TOS as in the record. The headers are those in the input, one after another.
func FuzzMarkBurst(f *testing.F) {
	v4, p4 := stack{family: 4, ecn: ECT0, opcode: RCSendOnly}.build()
	v6, p6 := stack{family: 6, ecn: ECT1, opcode: RCSendOnly}.build()
	both := append(v4[p4.L3:][:IPv4Len:IPv4Len], v6[p6.L3:][:IPv4Len]...)
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
