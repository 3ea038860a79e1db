package packet

import (
	"bytes"
	"testing"
)

// TestHostileFrames: each frame is a good one with one thing wrong.
func TestHostileFrames(t *testing.T) {
	v4 := stack{family: 4, opcode: RCWriteFirst, payload: 8}
	v6 := stack{family: 6, opcode: RCWriteFirst, payload: 8}
	hop := stack{family: 6, opcode: RCWriteFirst, ext: []extHeader{{0, make([]byte, 6)}, {60, make([]byte, 6)}}}
	padded := func(s stack) stack { s.padding = 20; return s }
	set := func(at int, octets string) func(f []byte) []byte {
		return func(f []byte) []byte { copy(f[at:], octets); return f }
	}
	cut := func(n int) func(f []byte) []byte { return func(f []byte) []byte { return f[:len(f)-n] } }
	for _, c := range []struct {
		name string
		stack
		change func(f []byte) []byte
		want   Kind
		l4     bool // the upper layer is known
	}{
		{"IPv4 version 5", v4, set(14, "\x55"), Other, false},
		{"IPv4 IHL 4", v4, set(14, "\x44"), Other, false},
		{"IPv4 IHL 15, over the UDP header", v4, set(14, "\x4f"), IP, true},
		{"IPv4 IHL past the packet", stack{family: 4, proto: 6, body: make([]byte, 8)}, set(14, "\x4f"), Other, false},
		{"IPv4 total length shorter than its header", v4, set(16, "\x00\x13"), Other, false},
		{"IPv4 total length 0", v4, set(16, "\x00\x00"), Other, false},
		{"IPv4 longer than the frame", v4, cut(1), Other, false},
		{"IPv4 ends in the UDP header", v4, set(16, "\x00\x1b"), IP, true},
		{"IPv4 ends in the ICRC", v4, set(16, "\x00\x43"), IP, true},
		{"IPv4 in an IPv6 frame", v4, set(12, "\x86\xdd"), Other, false},

		{"IPv6 version 4", v6, set(14, "\x40"), Other, false},
		{"IPv6 payload length 0", v6, set(18, "\x00\x00"), Other, false},
		{"IPv6 longer than the frame", v6, cut(1), Other, false},
		{"IPv6 ends in the UDP header", v6, set(18, "\x00\x07"), IP, true},
		{"IPv6 ends in the ICRC", v6, set(18, "\x00\x2f"), IP, true},
		{"IPv6 no next header", v6, set(20, "\x3b"), IP, true},
		{"Hop-by-Hop not first", hop, set(54, "\x00"), IP, false},
		{"extension header longer than the packet", hop, set(63, "\xff"), IP, false},
		{"extension header 8 octets longer than the packet", hop, func(f []byte) []byte { f[63] = 1; return set(18, "\x00\x10")(f) }, IP, false},
		{"extension header cut by the packet's end", hop, set(18, "\x00\x0f"), IP, false},
		{"extension headers fill the packet", hop, set(18, "\x00\x10"), IP, true},
		{"more extension headers than we walk", stack{family: 6, opcode: RCSendOnly, ext: []extHeader{
			{43, make([]byte, 6)}, {43, make([]byte, 6)}, {43, make([]byte, 6)}, {43, make([]byte, 6)}, {43, make([]byte, 6)},
			{43, make([]byte, 6)}, {43, make([]byte, 6)}, {43, make([]byte, 6)}, {43, make([]byte, 6)}}}, nil, IP, false},

		{"UDP length of its header only", v4, set(38, "\x00\x08"), IP, true},
		{"UDP length 0", v4, set(38, "\x00\x00"), IP, true},
		{"UDP length without room for an ICRC", v4, set(38, "\x00\x17"), IP, true},
		{"UDP length without room for the RETH", v4, set(38, "\x00\x27"), IP, true},
		{"UDP length with room for the RETH", v4, set(38, "\x00\x28"), RoCEv2, true},
		{"UDP longer than IPv4, in the padding", padded(v4), set(38, "\x00\x31"), IP, true},
		{"UDP longer than IPv6, in the padding", padded(v6), set(58, "\x00\x31"), IP, true},
		{"UDP shorter than IPv6", v6, set(58, "\x00\x2c"), RoCEv2, true},
		{"transport version 1", v4, set(43, "\x01"), IP, true},
		{"unknown opcode", v4, set(42, "\x15"), IP, true},
		{"manufacturer's opcode", v6, set(62, "\xc0"), IP, true},
		{"frame cut in the RETH, lengths kept", v6, func(f []byte) []byte { return f[:80] }, Other, false},

		{"third tag", stack{family: 4, opcode: RCSendOnly, tags: []tag{{0x88a8, 1}, {0x8100, 2}}},
			func(f []byte) []byte {
				return append(bytes.Clone(f[:12]), append([]byte("\x91\x00\x00\x03"), f[12:]...)...)
			}, Other, false},
		{"frame ends in a tag", stack{family: 4, opcode: RCSendOnly, tags: []tag{{0x88a8, 1}}}, func(f []byte) []byte { return f[:17] }, Other, false},
		{"13 octets", v4, func(f []byte) []byte { return f[:13] }, Other, false},
		{"nothing", v4, func([]byte) []byte { return nil }, Other, false},
	} {
		f, _ := c.build()
		if c.change != nil {
			f = c.change(f)
		}
		var p Parsed
		Parse(f, uint32(len(f)), &p)
		if p.Kind != c.want || (p.L4 != 0) != c.l4 {
			t.Errorf("%s: parsed to %+v", c.name, p)
		}
		checkInvariants(t, f, uint32(len(f)), &p)
	}
}

// TestFrameLenRules: octets behind frameLen aren't the frame's, and a packet that ends behind it isn't one.
func TestFrameLenRules(t *testing.T) {
	for _, family := range []uint8{4, 6} {
		f, want := stack{family: family, opcode: RCWriteOnlyImm, payload: 4, tags: []tag{{0x8100, 1}}}.build()
		longer := append(bytes.Clone(f), make([]byte, 32)...)
		var p Parsed
		if Parse(longer, uint32(len(f)), &p); p != want {
			t.Errorf("%+v, want %+v", p, want)
		}
		if Parse(longer, uint32(len(f)-1), &p); p.Kind != Other {
			t.Errorf("longer than the frame: %+v", p)
		}
	}
}
