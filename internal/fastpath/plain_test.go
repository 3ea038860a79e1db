package fastpath_test

import (
	"bytes"
	"slices"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/fastpath"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/internal/testkit/mutate"
)

// parsers are ParsePlain and its specification.
var parsers = map[string]func(unsafe.Pointer, []burst.Frame, uint64, []packet.Record) fastpath.Run{
	"chosen": fastpath.ParsePlain, "twin": fastpath.ParsePlainGo}

// checkPlain checks that the fast path and the general one find the same in a frame, of which b is captured.
func checkPlain(t interface{ Fatalf(string, ...any) }, b []byte, frameLen uint32) {
	got, run := parseOne(b, frameLen, fastpath.ParsePlain)
	twin, twinRun := parseOne(b, frameLen, fastpath.ParsePlainGo)
	if run != twinRun || run.N == 1 && got != twin {
		t.Fatalf("% x of %d octets parsed to\n%+v %+v, the twin finds\n%+v %+v", b, frameLen, got, run, twin, twinRun)
	}
	if run.N == 0 {
		return
	}
	var p packet.Parsed
	packet.Parse(b, frameLen, &p)
	class := p.DSCP<<2 | p.ECN
	if got != recordOf(&p, 7) || run != (fastpath.Run{N: 1, Bytes: uint64(frameLen), Any: class, All: class, Opcodes: uint8(p.Opcode)}) || p.InnerTag != 0 || p.Encapsulated() ||
		p.Kind != packet.RoCEv2 || p.Family == 6 && (p.Src.Is4() || p.Dst.Is4()) {
		t.Fatalf("% x of %d octets parsed to\n%+v %+v, the general path finds\n%+v", b, frameLen, got, run, p)
	}
	of := packet.Parsed{Tags: 1, InnerTag: 2, DstOpts: 3, HopOpts: 4, SourceQP: 5} // each field must be written
	if of.SetPlain(b, &got); of != p {
		t.Fatalf("% x of %d octets: the record's headers are\n%+v, the general path finds\n%+v", b, frameLen, of, p)
	}
}

// parseOne returns the record that a fast path writes of a frame: each of its fields must be written.
func parseOne(b []byte, frameLen uint32, parse func(unsafe.Pointer, []burst.Frame, uint64, []packet.Record) fastpath.Run) (packet.Record, fastpath.Run) {
	frame := []burst.Frame{{Buf: 1, Len: frameLen, Head: uint32(len(b))}}
	r := []packet.Record{{Flow: packet.FlowWords{Src: packet.Addr{Hi: 1, Lo: 2}, Dst: packet.Addr{Hi: 3, Lo: 4}, QPs: 5, Scope: 6},
		PSN: 7, Len: 8, SrcPort: 9, Opcode: 10, TOS: 11, IP: 12, Kind: 13}}
	run := parse(unsafe.Pointer(unsafe.SliceData(b)), frame, 7, r)
	return r[0], run
}

// recordOf is the record of a plain frame from a port, by the general path.
func recordOf(p *packet.Parsed, port uint16) (r packet.Record) {
	r.Set(p)
	r.Flow = packet.FlowWords{Src: p.Src, Dst: p.Dst, QPs: uint64(p.DestQP) | uint64(p.SourceQP)<<32, Scope: packet.ScopeInVLAN(port, p.OuterTag, 0)}
	return r
}

// TestPlainIsAny: the fast path and the general one find the same in frames that are correct, damaged or cut.
func TestPlainIsAny(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		frame := drawFrame(t)
		for range rapid.IntRange(0, 3).Draw(t, "damages") {
			frame[rapid.IntRange(0, min(len(frame), 90)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "octet")
		}
		frameLen := uint32(max(0, len(frame)+rapid.IntRange(-60, 10).Draw(t, "frame longer")))
		checkPlain(t, frame[:rapid.IntRange(0, len(frame)).Draw(t, "captured")], frameLen)
	})
}

// TestPlainOneChange: the same in frames with any one octet changed, cut after any octet, and of any other length.
func TestPlainOneChange(t *testing.T) {
	for _, frame := range kinds() {
		for n := range len(frame) + 1 {
			checkPlain(t, frame[:n], uint32(len(frame)))
			checkPlain(t, frame, uint32(n))
		}
		for i, was := range frame[:min(len(frame), 120)] {
			for v := range 256 {
				frame[i] = uint8(v)
				checkPlain(t, frame, uint32(len(frame)))
			}
			frame[i] = was
		}
	}
}

// FuzzParsePlain: the same of any input.
func FuzzParsePlain(f *testing.F) {
	for _, frame := range seeds(f) {
		f.Add(frame, uint32(len(frame)))
	}
	f.Fuzz(func(t *testing.T, b []byte, frameLen uint32) { checkPlain(t, b, frameLen) })
}

// TestMutatedPlain is FuzzParsePlain over mutants. Some have to be plain.
func TestMutatedPlain(t *testing.T) {
	frames := seeds(t)
	m := mutate.Run(t, mutate.Executions, frames)
	plain := 0
	for range mutate.Executions {
		_, b, missing := m.Next()
		length := uint32(len(b)) + missing
		if m.IntN(16) == 0 {
			length = m.Uint32N(uint32(len(b)) + 1) // more was given than the frame has
		}
		checkPlain(t, b, length)
		if _, run := parseOne(b, length, fastpath.ParsePlain); run.N == 1 {
			plain++
		}
	}
	if t.Logf("%d are plain", plain); plain < mutate.Executions/100 {
		t.Errorf("%d of %d are plain", plain, mutate.Executions)
	}
}

// TestPlainRunTwins: in runs of frames of all kinds, the assembly and its twin find the same: nothing of a frame is left for the next one.
func TestPlainRunTwins(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var octets []byte
		frames := make([]burst.Frame, rapid.IntRange(0, 8).Draw(t, "frames"))
		for i := range frames {
			r := drawRoCE(t)
			if rapid.IntRange(0, 9).Draw(t, "plain") != 0 {
				r = of(rapid.SampledFrom([]uint8{4, 6}).Draw(t, "plain family"), r)
				r.Tags = rapid.SampledFrom(tagStacks[:3]).Draw(t, "plain tag")
				r.Opcode = rapid.SampledFrom([]packet.Opcode{packet.RCSendOnly, packet.RCAcknowledge, packet.UDSendOnly, packet.CNP}).Draw(t, "plain opcode")
			}
			b := r.Frame()
			frames[i] = burst.Frame{Buf: 1, Data: uint64(len(octets)), Len: uint32(len(b)), Head: uint32(len(b))}
			octets = append(octets, b...)
		}
		octets = append(octets, 0) // not empty without frames
		port := rapid.Uint64Max(1<<16-1).Draw(t, "port")
		got, want := make([]packet.Record, len(frames)), make([]packet.Record, len(frames))
		run := fastpath.ParsePlain(unsafe.Pointer(&octets[0]), frames, port, got)
		twin := fastpath.ParsePlainGo(unsafe.Pointer(&octets[0]), frames, port, want)
		if run != twin || !slices.Equal(got[:run.N], want[:run.N]) {
			t.Fatalf("%d frames parsed to\n%+v %+v, the twin finds\n%+v %+v", len(frames), run, got[:run.N], twin, want[:twin.N])
		}
	})
}

// TestPlainLengthBorrowsNoPort: a total length below that of the IP header makes no other UDP port look like RoCEv2's.
func TestPlainLengthBorrowsNoPort(t *testing.T) {
	b := of(4, testkit.RoCE{Opcode: packet.RCSendOnly, Size: 98}).Frame()
	ip, udp := b[packet.EthernetLen:], b[packet.EthernetLen+packet.IPv4Len:]
	be.PutUint16(udp[2:], packet.RoCEv2Port-1)
	be.PutUint16(ip[2:], 4)
	be.PutUint16(udp[4:], 1<<16-16)
	checkPlain(t, b, 1<<20) // the UDP length is within the frame
	if _, run := parseOne(b, 1<<20, fastpath.ParsePlain); run.N != 0 {
		t.Error("taken as plain")
	}
}

// TestPlainIsUsed: otherwise the tests above would compare nothing. A run ends at the first frame that isn't plain.
func TestPlainIsUsed(t *testing.T) {
	var octets []byte
	var frames []burst.Frame
	var want []packet.Record
	sum := fastpath.Run{Any: 7<<2 | packet.CE, All: 3 << 2}
	add := func(r testkit.RoCE) {
		b := r.Frame()
		var p packet.Parsed
		packet.Parse(b, uint32(len(b)), &p)
		frames = append(frames, burst.Frame{Data: uint64(len(octets)), Len: uint32(len(b)), Head: uint32(p.Payload) + packet.ICRCLen})
		octets, want = append(octets, b...), append(want, recordOf(&p, 1))
	}
	for _, r := range []testkit.RoCE{{DSCP: 7, ECN: packet.ECT0}, {DSCP: 3, ECN: packet.ECT1, Tags: []uint32{ctag | 3<<13 | 100}}} {
		for _, family := range []uint8{4, 6} {
			for _, r.Opcode = range []packet.Opcode{packet.RCWriteMiddle, packet.RCAcknowledge, packet.UDSendOnly, packet.CNP} {
				r.Size = 180
				add(of(family, r))
				sum.N++
				sum.Opcodes |= uint8(r.Opcode)
				sum.Bytes += uint64(frames[len(frames)-1].Len)
			}
		}
	}
	add(of(4, testkit.RoCE{Opcode: packet.RD | packet.RCSendOnly, Size: 100}))
	add(of(4, testkit.RoCE{}))
	for name, parse := range parsers {
		got := make([]packet.Record, len(frames))
		run := parse(unsafe.Pointer(&octets[0]), frames, 1, got)
		if run != sum || !slices.Equal(got[:run.N], want[:run.N]) {
			t.Errorf("%s: %+v, want %+v, and of all frames\n%+v\nof which\n%+v", name, run, sum, want, got)
		}
	}
}

// TestPlainIsNotUsed for packets whose flow takes more to find.
func TestPlainIsNotUsed(t *testing.T) {
	behindUDP := of(4, testkit.RoCE{Size: 80})
	l3, _ := layout(&behindUDP)
	for name, b := range map[string][]byte{
		"RD SEND Only":           of(4, testkit.RoCE{Opcode: packet.RD | packet.RCSendOnly, Size: 100}).Frame(),
		"mapped source":          testkit.RoCE{Src: "::ffff:192.0.2.1", Dst: "fd00:18::1"}.Frame(),
		"mapped destination":     testkit.RoCE{Src: "fd00:18::1", Dst: "::ffff:192.0.2.1"}.Frame(),
		"octets behind datagram": grow(behindUDP.Frame(), l3, 80, 0, 0, 0, 0),
		"two tags":               of(6, testkit.RoCE{Tags: []uint32{ctag | 1, ctag | 2}}).Frame(),
	} {
		checkPlain(t, b, uint32(len(b)))
		if _, run := parseOne(b, uint32(len(b)), fastpath.ParsePlain); run.N != 0 {
			t.Errorf("%s: taken as plain", name)
		}
	}
}

// benchFrames are plain frames of the common kinds: RDMA WRITE Middle of 1 KB.
var benchFrames = []struct {
	name string
	testkit.RoCE
}{
	{"v4", of(4, testkit.RoCE{ECN: packet.ECT0, Size: 1082})},
	{"v6", of(6, testkit.RoCE{ECN: packet.ECT0, Size: 1102})},
	{"v4-tagged", of(4, testkit.RoCE{ECN: packet.ECT0, Size: 1086, Tags: []uint32{ctag | 3<<13 | 100}})},
}

// burstOf is a burst of 64 copies of a frame, one after another in memory.
func burstOf(octets []byte) (memory []byte, frames [burst.MaxSize]burst.Frame) {
	for i := range frames {
		frames[i] = burst.Frame{Data: uint64(i * len(octets)), Len: uint32(len(octets)), Head: uint32(len(octets))}
	}
	return bytes.Repeat(octets, len(frames)), frames
}

// BenchmarkParsePlain is the time of a run of 64 plain frames.
func BenchmarkParsePlain(b *testing.B) {
	for _, c := range benchFrames {
		octets, frames := burstOf(c.Frame())
		var records [burst.MaxSize]packet.Record
		for name, parse := range parsers {
			b.Run(c.name+"/"+name, func(b *testing.B) {
				for b.Loop() {
					if parse(unsafe.Pointer(&octets[0]), frames[:], 1, records[:]).N != len(frames) {
						b.Fatal("not taken as plain")
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(frames)), "ns/packet")
			})
		}
	}
}
