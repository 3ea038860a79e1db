package fastpath_test

import (
	"bytes"
	"slices"
	"testing"
	"unsafe"

	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/fastpath"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
)

// FuzzMarkBurst: MarkBurst is its specification, whatever is in the headers behind the version. described has two bytes for each frame: the
// header's offset, and TOS as in the record. The headers are those in the input, one after another.
func FuzzMarkBurst(f *testing.F) {
	v4, v6 := of(4, testkit.RoCE{ECN: packet.ECT0}).Frame(), of(6, testkit.RoCE{ECN: packet.ECT1}).Frame()
	both := slices.Concat(v4[packet.EthernetLen:][:packet.IPv4Len], v6[packet.EthernetLen:][:packet.IPv4Len])
	f.Add(both, []byte{14, packet.ECT0, 14, packet.ECT1}, ^uint64(0))
	f.Add(both, []byte{14, packet.ECT1, 18, packet.ECT0, 14, packet.CE, 14, packet.NotECT, 0, packet.CE, 0, packet.NotECT}, ^uint64(0))
	f.Add(both, []byte{14, packet.ECT1, 14, 7<<2 | packet.ECT0, 255, packet.ECT0}, uint64(0b101))
	f.Add(bytes.Repeat([]byte{0x45, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 99), bytes.Repeat([]byte{3, packet.ECT0}, burst.MaxSize), ^uint64(0)>>3)
	f.Add(bytes.Repeat([]byte{0x65, 2, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 99), bytes.Repeat([]byte{3, packet.ECT1}, burst.MaxSize), ^uint64(0))
	f.Add(both, []byte{14, packet.ECT0}, uint64(0b10))
	f.Fuzz(func(t *testing.T, headers, described []byte, these uint64) {
		var frames []burst.Frame
		var records []packet.Record
		var memory []byte
		for ; len(described) >= 2 && len(headers) >= packet.IPv4Len && len(frames) < burst.MaxSize; described = described[2:] {
			at, ip := len(memory), described[0]
			memory = append(append(memory, make([]byte, ip)...), headers[:packet.IPv4Len]...)
			memory[at+int(ip)] = headers[0]&0x2f | 0x40 // version 4 or 6
			frames = append(frames, burst.Frame{Data: uint64(at), Len: uint32(len(memory) - at), Head: uint32(len(memory) - at)})
			records = append(records, packet.Record{IP: uint16(ip), TOS: described[1]})
			headers = headers[packet.IPv4Len:]
		}
		want, got := bytes.Clone(memory), bytes.Clone(memory)
		known := bytes.Clone(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(records))), len(records)*int(unsafe.Sizeof(packet.Record{}))))
		these &= 1<<len(frames) - 1
		twin := fastpath.MarkBurstGo(unsafe.Pointer(unsafe.SliceData(want)), frames, records, these)
		if marked := fastpath.MarkBurst(unsafe.Pointer(unsafe.SliceData(got)), frames, records, these); marked != twin || !bytes.Equal(got, want) {
			t.Fatalf("%+v %+v %x: marked %x\n% x, the twin %x\n% x, of\n% x", frames, records, these, marked, got, twin, want, memory)
		}
		if marked := fastpath.Markable(records, these); marked != twin {
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
	var records []packet.Record
	var can uint64
	add := func(b []byte) {
		var p packet.Parsed
		packet.Parse(b, uint32(len(b)), &p)
		var r packet.Record
		r.Set(&p)
		if p.ECN == packet.ECT0 || p.ECN == packet.ECT1 {
			can |= 1 << len(frames)
		}
		frames = append(frames, burst.Frame{Data: uint64(len(memory)), Len: uint32(len(b)), Head: uint32(len(b))})
		memory, records = append(memory, b...), append(records, r)
	}
	for _, family := range []uint8{4, 6} {
		for ecn := range uint8(packet.CE + 1) {
			for _, tags := range tagStacks[:2] {
				add(of(family, testkit.RoCE{ECN: ecn, DSCP: 63 - ecn, Tags: tags}).Frame())
			}
		}
	}
	inner := of(4, testkit.RoCE{ECN: packet.ECT1}).Frame()
	add(testkit.VXLAN(inner, 1, packet.ECT0, false))
	add(testkit.MPLS(inner, 16))
	add(testkit.Pseudowire(inner, 16))
	arp := append([]byte("\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x02\x08\x06"), make([]byte, 46)...)
	add(arp)
	for _, these := range []uint64{0, ^uint64(0), 0x5555_5555_5555_5555, ^uint64(1<<9 - 1), 1 << len(frames)} {
		got, want := bytes.Clone(memory), bytes.Clone(memory)
		for i, f := range frames {
			if b := want[f.Data:][:f.Len]; these>>i&1 != 0 {
				packet.MarkCE(b, records[i].IP, records[i].ECN())
			}
		}
		marked := fastpath.MarkBurst(unsafe.Pointer(&got[0]), frames, records, these)
		if marked != these&can || !bytes.Equal(got, want) {
			t.Errorf("%x: marked %x, expected %x\n% x\nexpected\n% x", these, marked, these&can, got, want)
		}
	}
}

func BenchmarkMarkBurst(b *testing.B) {
	for _, c := range benchFrames[:2] {
		octets := c.Frame()
		memory, frames := burstOf(octets)
		var p packet.Parsed
		packet.Parse(octets, uint32(len(octets)), &p)
		var records [burst.MaxSize]packet.Record
		for i := range records {
			records[i].Set(&p) // the frames go on as CE: the work is the same
		}
		for name, mark := range map[string]func(unsafe.Pointer, []burst.Frame, []packet.Record, uint64) uint64{
			"chosen": fastpath.MarkBurst, "twin": fastpath.MarkBurstGo} {
			b.Run(c.name+"/"+name, func(b *testing.B) {
				for b.Loop() {
					if ^mark(unsafe.Pointer(&memory[0]), frames[:], records[:], 1<<64-1) != 0 {
						b.Fatal("not marked")
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(frames)), "ns/packet")
			})
		}
	}
}
