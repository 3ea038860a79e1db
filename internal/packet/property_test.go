package packet

import (
	"maps"
	"net/netip"
	"slices"
	"testing"

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
		if p.L4 != 0 && len(b) >= int(p.L4)+UDPLen && p.DstPort != whole.DstPort {
			t.Fatalf("to port %d, want %d", p.DstPort, whole.DstPort)
		}
		if p.Kind != Other && (p.Src != whole.Src || p.IPEnd != whole.IPEnd || p.L4 != 0 && p.L4 != whole.L4) {
			t.Fatalf("cut frame parsed to\n%+v, whole one to\n%+v", p, whole)
		}
		checkInvariants(t, b, uint32(len(frame)), &p)
	})
}
