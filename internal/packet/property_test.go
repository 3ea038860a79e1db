package packet

import (
	"maps"
	"net/netip"
	"slices"
	"testing"
	"unsafe"

	"github.com/cnpgate/cnpgate/internal/burst"
	"pgregory.net/rapid"
)

var knownOpcodes = slices.Sorted(maps.Keys(opcodeTruth))

// drawIP draws everything up to the upper layer.
func drawIP(t *rapid.T) stack {
	s := stack{
		family:  rapid.SampledFrom([]uint8{4, 6}).Draw(t, "family"),
		dscp:    rapid.Uint8Range(0, 63).Draw(t, "dscp"),
		ecn:     rapid.Uint8Range(0, 3).Draw(t, "ecn"),
		padding: rapid.IntRange(0, 46).Draw(t, "padding"),
	}
	for range rapid.IntRange(0, MaxTags).Draw(t, "tags") {
		s.tags = append(s.tags, tag{rapid.SampledFrom([]uint16{0x8100, 0x88a8, 0x9100}).Draw(t, "tpid"), rapid.Uint16().Draw(t, "tci")})
	}
	if s.family == 4 {
		s.src, s.dst = netip.AddrFrom4([4]byte(drawBytes(t, 4))), netip.AddrFrom4([4]byte(drawBytes(t, 4)))
		s.options = drawBytes(t, 4*rapid.IntRange(0, 10).Draw(t, "options"))
		s.frag = rapid.SampledFrom([]uint16{0, 0x4000, 0x8000}).Draw(t, "flags")
		return s
	}
	s.src, s.dst = netip.AddrFrom16([16]byte(drawBytes(t, 16))), netip.AddrFrom16([16]byte(drawBytes(t, 16)))
	for i := range rapid.IntRange(0, maxExtHeaders-1).Draw(t, "extension headers") {
		s.ext = append(s.ext, drawExtHeader(t, i == 0))
	}
	return s
}

func drawExtHeader(t *rapid.T, first bool) extHeader {
	kinds := []uint8{43, 44, 51, 60}
	if first {
		kinds = append(kinds, 0)
	}
	e := extHeader{header: rapid.SampledFrom(kinds).Draw(t, "header")}
	switch n := rapid.IntRange(0, 12).Draw(t, "length"); e.header {
	case 44: // atomic: any reserved bits and identification
		e.body = drawBytes(t, 6)
		e.body[0], e.body[1] = 0, e.body[1]&6
	case 51:
		e.body = drawBytes(t, 4*n+6)
	default:
		e.body = drawBytes(t, 8*n+6)
	}
	return e
}

func drawBytes(t *rapid.T, n int) []byte { return rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, "octets") }

// drawRoCEv2 draws any packet that Parse is to find as RoCEv2.
func drawRoCEv2(t *rapid.T) stack {
	s := drawIP(t)
	s.opcode = rapid.SampledFrom(knownOpcodes).Draw(t, "opcode")
	s.srcPort = rapid.Uint16().Draw(t, "source port")
	s.bthFlags = rapid.Byte().Draw(t, "BTH flags")
	s.destQP = rapid.Uint32Range(0, 0xffffff).Draw(t, "destination QP")
	s.sourceQP = rapid.Uint32Range(0, 0xffffff).Draw(t, "source QP")
	s.psn = rapid.Uint32Range(0, 0xffffff).Draw(t, "PSN")
	s.payload = rapid.IntRange(0, 300).Draw(t, "payload")
	s.udpShorter = rapid.SampledFrom([]int{0, 0, 0, 1, 40}).Draw(t, "behind UDP")
	return s
}

// drawAny draws RoCEv2 and its near misses.
func drawAny(t *rapid.T) stack {
	s := drawRoCEv2(t)
	switch rapid.IntRange(0, 8).Draw(t, "variant") {
	case 0:
		s.opcode = Opcode(rapid.Byte().Draw(t, "any opcode"))
	case 1:
		s.tver = rapid.Uint8Range(1, 15).Draw(t, "TVer")
	case 2:
		s.dstPort = rapid.SampledFrom([]uint16{1022, 4790, 4792, 53}).Draw(t, "destination port")
	case 3:
		s.udpLonger = s.udpShorter + 1 + rapid.IntRange(0, 50).Draw(t, "UDP longer")
	case 4:
		s.proto = rapid.SampledFrom([]uint8{1, 6, 58, 59, 50, 135, 255}).Draw(t, "protocol")
		s.body = drawBytes(t, rapid.IntRange(1, 60).Draw(t, "body length"))
	case 5: // a fragment
		s.frag = rapid.SampledFrom([]uint16{0x2000, 0x0001, 0x3fff, 0x1000}).Draw(t, "fragment")
		if s.family == 6 {
			fragment := extHeader{44, []byte{0, 1, 0, 0, 0, 1}}
			if rapid.Bool().Draw(t, "later") {
				be.PutUint16(fragment.body, 8<<3)
			}
			s.ext = append(s.ext, fragment)
		}
	}
	return s
}

func TestParseFindsTheTruth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawAny(t)
		frame, want := s.build()
		got := Parsed{Src: Addr{1, 2}, HopOpts: 3, DstOpts: 4, SourceQP: 5, InnerTag: 6} // Parse is to overwrite all
		Parse(frame, uint32(len(frame)), &got)
		if got != want {
			t.Fatalf("%+v\nparsed to\n%+v, want\n%+v", s, got, want)
		}
	})
}

// TestPlainIsAny: the fast path and the general one find the same in frames that are sound, damaged or cut.
func TestPlainIsAny(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		frame, _ := drawAny(t).build()
		if rapid.Bool().Draw(t, "plain") {
			s := stack{family: rapid.SampledFrom([]uint8{4, 6}).Draw(t, "plain family"), tags: rapid.SampledFrom(plainTags).Draw(t, "plain tag"),
				opcode: Opcode(rapid.Byte().Draw(t, "plain opcode")), payload: rapid.IntRange(0, 20).Draw(t, "plain payload")}
			frame, _ = s.build()
		}
		for range rapid.IntRange(0, 3).Draw(t, "damages") {
			frame[rapid.IntRange(0, min(len(frame), 90)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "octet")
		}
		frameLen := uint32(max(0, len(frame)+rapid.IntRange(-60, 10).Draw(t, "frame longer")))
		checkPlainIsAny(t, frame[:rapid.IntRange(0, len(frame)).Draw(t, "captured")], frameLen)
	})
}

// plainTags are those that the fast path may be taken with, and those that it mustn't take for one of them.
var plainTags = [][]tag{nil, {{EtherTypeCTag, 0xfff}}, {{EtherTypeCTag, 0x1001}}, {{EtherTypeSTag, 1}},
	{{EtherTypeCTag, 1}, {EtherTypeCTag, 2}}, {{EtherTypeCTag, 1}, {EtherTypeSTag, 2}}, {{EtherTypeSTag, 1}, {EtherTypeCTag, 2}},
	{{EtherTypeCTag, 1}, {EtherTypeCTag, 2}, {EtherTypeCTag, 3}}}

func checkPlainIsAny(t interface{ Fatalf(string, ...any) }, b []byte, frameLen uint32) {
	frame := []burst.Frame{{Buf: 1, Len: frameLen, Head: uint32(len(b))}}
	got, run := plainRecord(b, frame, ParsePlain)
	twin, twinRun := plainRecord(b, frame, parsePlainGo)
	if run != twinRun || run.N == 1 && got != twin {
		t.Fatalf("% x of %d octets parsed to\n%+v %+v, the twin finds\n%+v %+v", b, frameLen, got, run, twin, twinRun)
	}
	if run.N == 0 {
		return
	}
	var p Parsed
	Parse(b, frameLen, &p)
	class := p.DSCP<<2 | p.ECN
	if got != recordOf(&p, 7) || run != (Run{1, uint64(frameLen), class, class}) || p.InnerTag != 0 || p.Encapsulated() ||
		p.Kind != RoCEv2 || p.Opcode == CNP || p.Family == 6 && (p.Src.Is4() || p.Dst.Is4()) {
		t.Fatalf("% x of %d octets parsed to\n%+v %+v, the general path finds\n%+v", b, frameLen, got, run, p)
	}
}

// plainRecord is the record that a fast path writes of a frame: each of its fields must be written.
func plainRecord(b []byte, frame []burst.Frame, parse func(unsafe.Pointer, []burst.Frame, uint64, []Record) Run) (Record, Run) {
	r := []Record{{FlowWords{Addr{1, 2}, Addr{3, 4}, 5, 6}, 7, 8, 9, 10, 11, 12, 13, 0}}
	run := parse(unsafe.Pointer(unsafe.SliceData(b)), frame, 7, r)
	return r[0], run
}

// recordOf is the record of a plain frame from a port, by the general path.
func recordOf(p *Parsed, port uint64) (r Record) {
	r.Set(p)
	r.Flow = FlowWords{p.Src, p.Dst, uint64(p.DestQP) | uint64(p.SourceQP)<<32, Scope(port | uint64(p.OuterTag)<<16)}
	return r
}

// TestPlainIsUsed: otherwise the test above would compare nothing. A run ends at the first frame that isn't plain.
func TestPlainIsUsed(t *testing.T) {
	var octets []byte
	var frames []burst.Frame
	var want []Record
	sum := Run{Any: 7<<2 | CE, All: 3 << 2}
	add := func(s stack) {
		b, p := s.build()
		frames = append(frames, burst.Frame{Data: uint64(len(octets)), Len: uint32(len(b)), Head: uint32(p.Payload) + ICRCLen})
		octets, want = append(octets, b...), append(want, recordOf(&p, 1))
	}
	for _, s := range []stack{{dscp: 7, ecn: ECT0}, {dscp: 3, ecn: ECT1, tags: []tag{{EtherTypeCTag, 3<<13 | 100}}}} {
		for _, s.family = range []uint8{4, 6} {
			for _, s.opcode = range []Opcode{RCWriteMiddle, RCAcknowledge, UDSendOnly} {
				s.payload = 100
				add(s)
				sum.N++
				sum.Bytes += uint64(frames[len(frames)-1].Len)
			}
		}
	}
	add(stack{family: 4, opcode: CNP, payload: CNPReservedLen})
	add(stack{family: 4, opcode: RCWriteMiddle})
	for name, parse := range map[string]func(unsafe.Pointer, []burst.Frame, uint64, []Record) Run{"chosen": ParsePlain, "twin": parsePlainGo} {
		got := make([]Record, len(frames))
		run := parse(unsafe.Pointer(&octets[0]), frames, 1, got)
		if run != sum || !slices.Equal(got[:run.N], want[:run.N]) {
			t.Errorf("%s: %+v, want %+v, and of all frames\n%+v\nof which\n%+v", name, run, sum, want, got)
		}
	}
}

// TestPlainIsNotUsed for packets without a flow, or of one that takes more to find.
func TestPlainIsNotUsed(t *testing.T) {
	good, mapped := netip.MustParseAddr("fd00:18::1"), netip.MustParseAddr("::ffff:192.0.2.1")
	for _, s := range []stack{
		{family: 4, opcode: CNP, payload: CNPReservedLen},
		{family: 4, opcode: Opcode(0x44), payload: 20}, // RD SEND Only
		{family: 6, opcode: RCWriteMiddle, src: mapped, dst: good},
		{family: 6, opcode: RCWriteMiddle, src: good, dst: mapped},
		{family: 4, opcode: RCWriteMiddle, udpShorter: 4, payload: 20},
		{family: 6, opcode: RCWriteMiddle, tags: []tag{{EtherTypeCTag, 1}, {EtherTypeCTag, 2}}},
	} {
		b, want := s.build()
		checkPlainIsAny(t, b, uint32(len(b)))
		if run := ParsePlain(unsafe.Pointer(&b[0]), []burst.Frame{{Len: uint32(len(b)), Head: uint32(len(b))}}, 0, make([]Record, 1)); run.N != 0 {
			t.Errorf("taken as plain: %+v", want)
		}
	}
}

// TestParseCut: however little of a frame is captured, what Parse says of it agrees with the whole frame.
func TestParseCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		frame, whole := drawAny(t).build()
		b := frame[:rapid.IntRange(0, len(frame)).Draw(t, "captured")]
		var p Parsed
		Parse(b, uint32(len(frame)), &p)
		headers := uint32(whole.Payload)
		if whole.Kind == RoCEv2 && uint32(len(b)) >= headers && p != whole {
			t.Fatalf("all headers captured, but\n%+v, want\n%+v", p, whole)
		}
		if p.Kind == RoCEv2 && uint32(len(b)) < headers {
			t.Fatalf("%d octets of %d of headers captured, yet RoCEv2", len(b), headers)
		}
		if p.Kind != Other && (p.Src != whole.Src || p.IPEnd != whole.IPEnd || p.L4 != 0 && p.L4 != whole.L4) {
			t.Fatalf("cut frame parsed to\n%+v, whole one to\n%+v", p, whole)
		}
		checkInvariants(t, b, uint32(len(frame)), &p)
	})
}
