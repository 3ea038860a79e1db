package packet

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// codec is a header: its octets, its fields, and its two functions. again decodes octets and encodes what came out. constant are the bits of
// the first octets that have one value.
type codec struct {
	name, wire, constant string
	value                any
	decode               func(b []byte) any
	again                func(b, out []byte)
}

func codecOf[T any](name, wire, constant string, value T, decode func([]byte) T, encode func(*T, []byte)) codec {
	return codec{name, wire, constant, value,
		func(b []byte) any { return decode(b) },
		func(b, out []byte) { v := decode(b); encode(&v, out) }}
}

var codecs = []codec{
	codecOf("BTH",
		"\x81\xf5\x12\x34"+ // CNP; SE, MigReq, PadCount 3, TVer 5; P_Key
			"\xe1\xab\xcd\xef"+ // FECN, BECN, extension, a reserved bit; DestQP
			"\xff\x00\x00\x07", "", // AckReq, seven reserved bits; PSN
		BTH{Opcode: CNP, SE: true, MigReq: true, PadCount: 3, TVer: 5, PKey: 0x1234, Flags: FECN | BECN | ExtensionBit | 1,
			DestQP: 0xabcdef, AckReq: true, Reserved: 0x7f, PSN: 7}, DecodeBTH, (*BTH).Put),
	codecOf("UDP", "\xce\x21\x12\xb7\x00\x28\xbe\xef", "", UDPHeader{52769, 4791, 40, 0xbeef}, DecodeUDP, (*UDPHeader).Put),
	codecOf("DETH", "\x01\x02\x03\x04"+"\x00\xab\xcd\xef", "\x00\x00\x00\x00\xff", DETH{QKey: 0x01020304, SourceQP: 0xabcdef}, DecodeDETH, (*DETH).Put),
	codecOf("AETH", "\x61\xab\xcd\xef", "", AETH{Syndrome: 0x61, MSN: 0xabcdef}, DecodeAETH, func(h *AETH, b []byte) { h.Put(b) }),
	codecOf("RETH", "\x01\x02\x03\x04\x05\x06\x07\x08"+"\x09\x0a\x0b\x0c"+"\x0d\x0e\x0f\x10", "",
		RETH{VirtualAddress: 0x0102030405060708, RKey: 0x090a0b0c, DMALength: 0x0d0e0f10}, DecodeRETH, (*RETH).Put),
	codecOf("Long-haul CNP",
		"\xb4\xa5\x00\x1e"+ // level 180; 10 Rate Reduce, 100101 reserved; parameter 30
			"\x01\x00\x00\x64"+ // source QP, 32 bits
			"\x03\xff\x00\x01", "", // metric type 3, 24 bits
		LongHaul{Level: 180, Action: ActionRateReduce, Reserved: 0x25, Parameter: 30, SourceQP: 0x1000064,
			MetricType: MetricECNRate, MetricValue: 0xff0001},
		DecodeLongHaul, (*LongHaul).Put),
	codecOf("IOAM trace",
		"\x00\x01\xaf\x85"+ // namespace 1; 10101 1111 0000101: NodeLen 21, flags 15, RemainingLen 5
			"\xc0\x00\x01\x80", "", // trace type, reserved
		IOAMTraceHeader{NamespaceID: 1, NodeLen: 21, Flags: 15, RemainingLen: 5, TraceType: 0xc00001, Reserved: 0x80},
		DecodeIOAMTraceHeader, (*IOAMTraceHeader).Put),
	codecOf("Extension Header", "\x2a\xbc\xde\xf0", "", ExtensionHeader{Version: 2, Reserved: 0xabc, Checksum: 0xdef0}, DecodeExtensionHeader,
		func(h *ExtensionHeader, b []byte) { h.Put(b) }),
	codecOf("PPFC over IPv4",
		"\x0a\x00\x00\x04"+
			"\x80\x05\x00\x02"+ // flags 10000000 000001, PT 01, port 2
			"\xff\x00\x01\xf4", "", // reserved, 500 microseconds
		PPFCFields{Dst: Addr{0, 0xffff_0a000004}, Flags: 0x2001, PT: PTResume, Port: 2, Reserved: 0xff00, Duration: 500},
		func(b []byte) PPFCFields { return DecodePPFC(b, 4) }, func(n *PPFCFields, b []byte) { n.Put(b, 4) }),
	codecOf("PPFC over IPv6",
		"\x20\x01\x0d\xb8\x00\x0b\x00\x00\x00\x00\x00\x00\x00\x00\x00\x04"+"\x00\x02\x00\x02"+"\x00\x00\x01\xf4", "",
		PPFCFields{Dst: Addr{0x20010db8_000b0000, 4}, PT: 2, Port: 2, Duration: 500},
		func(b []byte) PPFCFields { return DecodePPFC(b, 6) }, func(n *PPFCFields, b []byte) { n.Put(b, 6) }),
	codecOf("PFC",
		"\x01\x01\xee\x18"+"\x00\x01\x00\x02\x00\x03\xff\xff\x00\x05\x00\x06\x00\x07\x00\x08", "\xff\xff",
		PFC{Reserved: 0xee, Enabled: 0x18, Time: [8]uint16{1, 2, 3, 65535, 5, 6, 7, 8}}, DecodePFC, (*PFC).Put),
	codecOf("PAUSE", "\x00\x01\x12\x34", "\xff\xff", Pause{0x1234}, DecodePause, func(f *Pause, b []byte) { f.Put(b) }),
	codecOf("five-tuple of IPv4",
		"\x4d\x11\xbe\xef"+ // version 4, R, level 5; UDP; reserved
			"\xce\x21\x12\xb7"+"\x0a\x00\x00\x01"+"\x0a\x00\x00\x04", "\xf0",
		Proxied{Version: 4, R: true, Level: 5, Proto: 17, Reserved: 0xbeef, SrcPort: 52769, DstPort: 4791,
			Src: Addr{0, 0xffff_0a000001}, Dst: Addr{0, 0xffff_0a000004}}, mustDecodeProxied, (*Proxied).Put),
	codecOf("five-tuple of IPv6",
		"\x67\x06\x00\x00"+"\x00\x50\x01\xbb"+"\x20\x01\x0d\xb8\x00\x0a\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01"+
			"\x20\x01\x0d\xb8\x00\x0b\x00\x00\x00\x00\x00\x00\x00\x00\x00\x04", "\xf0",
		Proxied{Version: 6, Level: 7, Proto: 6, SrcPort: 80, DstPort: 443, Src: Addr{0x20010db8_000a0000, 1}, Dst: Addr{0x20010db8_000b0000, 4}},
		mustDecodeProxied, (*Proxied).Put),
	codecOf("Fast CNP option 1",
		"\x9e\x10"+"\x20\x01\x0d\xb8\x00\x0b\x00\x00\x00\x00\x00\x00\x00\x00\x00\x04", "\xff\xff",
		optionFields{dst: Addr{0x20010db8_000b0000, 4}}, decodeOption, (*optionFields).put),
	codecOf("Fast CNP option 2",
		"\x9e\x1e\x80\x01"+"\x00\x01\x08\x00\x80\x00\x00\x00"+"\x3e\x00\x00\x07"+
			"\x20\x01\x0d\xb8\x00\x0b\x00\x00\x00\x00\x00\x00\x00\x00\x00\x04", "\xff\xff\x00\xff",
		optionFields{Addr{0x20010db8_000b0000, 4}, 1, 0x80, "\x00\x01\x08\x00\x80\x00\x00\x00\x3e\x00\x00\x07"}, decodeOption, (*optionFields).put),
}

// optionFields is a FastCNPOption that can be compared.
type optionFields struct {
	dst            Addr
	traceType, res uint8
	data           string
}

func decodeOption(b []byte) optionFields {
	whole, n := NextOption(b)
	o, ok := DecodeFastCNPOption(whole.Data)
	if !ok || o.Len() != n {
		return optionFields{}
	}
	return optionFields{o.Dst, o.Trace.Type, o.Reserved, string(o.Trace.Data)}
}

func (f *optionFields) put(b []byte) {
	o := FastCNPOption{Dst: f.dst, Reserved: f.res, Trace: IOAMTrace{Type: f.traceType}}
	if f.data != "" {
		o.Trace.Data = []byte(f.data)
	}
	o.Put(b, 0x9e)
}

func mustDecodeProxied(b []byte) Proxied {
	x, ok := DecodeProxied(b)
	if !ok {
		return Proxied{}
	}
	return x
}

// TestCodecs: octets written from the figures decode to their fields, and the fields encode to the octets, whatever the buffer held.
func TestCodecs(t *testing.T) {
	for _, c := range codecs {
		if got := c.decode([]byte(c.wire)); got != c.value {
			t.Errorf("%s: % x decodes to\n%+v, want\n%+v", c.name, c.wire, got, c.value)
		}
		out := bytes.Repeat([]byte{0xa5}, len(c.wire)+1)
		c.again([]byte(c.wire), out)
		if string(out) != c.wire+"\xa5" {
			t.Errorf("%s: encodes to % x, want % x", c.name, out, c.wire)
		}
	}
}

// TestCodecsAnyOctets: encode(decode(b)) = b for any octets, as far as they aren't constant.
func TestCodecsAnyOctets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := codecs[rapid.IntRange(0, len(codecs)-1).Draw(t, "codec")]
		b := drawBytes(t, len(c.wire))
		for i, mask := range []byte(c.constant) {
			b[i] = b[i]&^mask | c.wire[i]&mask
		}
		out := make([]byte, len(b))
		c.again(b, out)
		if !bytes.Equal(out, b) {
			t.Fatalf("%s: % x becomes % x", c.name, b, out)
		}
	})
}

func TestAETHSyndrome(t *testing.T) {
	for _, c := range []struct {
		syndrome         uint8
		ack, rnrNAK, nak bool
	}{
		{0x00, true, false, false}, {0x1f, true, false, false},
		{0x20, false, true, false}, {0x3f, false, true, false},
		{0x40, false, false, false}, // reserved
		{0x60, false, false, true}, {0x64, false, false, true},
	} {
		h := AETH{Syndrome: c.syndrome}
		if h.IsACK() != c.ack || h.IsRNRNAK() != c.rnrNAK || h.IsNAK() != c.nak {
			t.Errorf("syndrome %02x: ACK %v, RNR NAK %v, NAK %v", c.syndrome, h.IsACK(), h.IsRNRNAK(), h.IsNAK())
		}
	}
}

func TestValidPKey(t *testing.T) {
	for key, want := range map[uint16]bool{0: false, 0x8000: false, 1: true, 0x8001: true, 0x7fff: true, 0xffff: true} {
		if got := ValidPKey(key); got != want {
			t.Errorf("%#04x: %t, want %t", key, got, want)
		}
	}
}

func TestDecodeFastCNPOptionRefuses(t *testing.T) {
	for _, data := range [][]byte{
		nil, make([]byte, 15), make([]byte, 17), make([]byte, 18), make([]byte, 22), make([]byte, 25),
		make([]byte, 27), make([]byte, 28), make([]byte, 29), // not whole words
		append([]byte{0, 2}, make([]byte, 24)...), // proof of transit
	} {
		if o, ok := DecodeFastCNPOption(data); ok {
			t.Errorf("% x: %+v", data, o)
		}
	}
	for _, n := range []int{16, 26, 30, 254} {
		if _, ok := DecodeFastCNPOption(make([]byte, n)); !ok {
			t.Errorf("%d octets are refused", n)
		}
	}
}

// TestFastCNPHeaderPad: the senders' layout for a trace of any length that fits.
func TestFastCNPHeaderPad(t *testing.T) {
	for words := -1; words <= 57; words++ {
		h := FastCNPHeader{NextHeader: ProtoUDP, Type: 0x9e}
		option := 2
		if words >= 0 {
			h.Option.Trace.Data = make([]byte, IOAMTraceHeaderLen+4*words)
			option = 4
		}
		h.Option.Dst = Addr{Hi: 0xfd00000a << 32, Lo: 7}
		h.Pad()
		b := make([]byte, h.Len())
		h.Put(b)
		if len(b)%8 != 0 || int(b[1]) != len(b)/8-1 || b[option] != 0x9e {
			t.Fatalf("%d words: % x", words, b)
		}
		if words < 0 {
			var direct [FastCNPOption1Len]byte
			if PutFastCNPOption1(&direct, ProtoUDP, 0x9e, &h.Option.Dst); !bytes.Equal(direct[:], b) {
				t.Errorf("PutFastCNPOption1: % x, expected % x", direct, b)
			}
		}
		for list := b[2:]; len(list) > 0; {
			_, n := NextOption(list)
			if n == 0 {
				t.Fatalf("%d words: a broken list of options: % x", words, b)
			}
			list = list[n:]
		}
	}
}

// TestNeighborAdvertisement: the message of RFC 4861 4.4, with its Target Link-Layer Address.
func TestNeighborAdvertisement(t *testing.T) {
	src, dst := Addr{Hi: 0xfe80 << 48, Lo: 1}, Addr{Hi: 0xfe80 << 48, Lo: 2}
	for solicited, flags := range map[bool]byte{false: 0x20, true: 0x60} { // Override, and Solicited
		a := NeighborAdvertisement{Solicited: solicited, Target: src, Link: MAC{2, 0, 0, 0, 0, 7}}
		got := make([]byte, NeighborAdvertisementLen)
		a.Put(got, src, dst)
		sum := ICMPv6Checksum(src, dst, got)
		want := []byte{136, 0, byte(sum >> 8), byte(sum), flags, 0, 0, 0, 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 1, 2, 0, 0, 0, 0, 7}
		if !bytes.Equal(got, want) {
			t.Errorf("% x, expected % x", got, want)
		}
		frame := built(stack{family: 6, proto: ProtoICMPv6, src: src.Netip(), dst: dst.Netip(), body: got})
		for _, hops := range []byte{NeighborHopLimit - 1, NeighborHopLimit} { // a router has forwarded the first one
			frame[EthernetLen+7] = hops
			var p Parsed
			Parse(frame, uint32(len(frame)), &p)
			if target, ok := AdvertisedTarget(frame, &p); ok != (hops == NeighborHopLimit) || ok && target != src {
				t.Errorf("hop limit %d: %v, %t", hops, target, ok)
			}
		}
	}
}

func TestNextOption(t *testing.T) {
	for _, c := range []struct {
		list string
		want Option
		n    int
	}{
		{"", Option{}, 0},
		{"\x00", Option{}, 1},
		{"\x00\x01", Option{}, 1},
		{"\x01", Option{}, 0},
		{"\x01\x00", Option{Type: 1}, 2},
		{"\x9e\x02\xaa\xbb\xcc", Option{0x9e, []byte{0xaa, 0xbb}}, 4},
		{"\x9e\x02\xaa", Option{}, 0},
	} {
		o, n := NextOption([]byte(c.list))
		if o.Type != c.want.Type || !bytes.Equal(o.Data, c.want.Data) || n != c.n {
			t.Errorf("% x: %+v of %d octets, want %+v of %d", c.list, o, n, c.want, c.n)
		}
	}
	for option, want := range map[uint8]bool{0x00: true, 0x11: true, 0x31: true, 0x3f: true, 0x40: false, 0x9e: false, 0xc2: false} {
		if (Option{Type: option}).Skippable() != want {
			t.Errorf("option type %02x", option)
		}
	}
}

func TestOptionsHeader(t *testing.T) {
	b := append([]byte{0xff, 0xff, ProtoUDP, 1}, make([]byte, 20)...)
	for _, c := range []struct{ off, limit, captured, want int }{
		{2, 24, 24, 16}, {2, 18, 24, 16}, {2, 17, 24, 0}, {2, 24, 17, 0}, {2, 9, 24, 0}, {-1, 24, 24, 0}, {20, 24, 24, 0}, {25, 30, 24, 0},
	} {
		if got := OptionsHeader(b[:c.captured], c.off, c.limit); len(got) != c.want {
			t.Errorf("at %d, to %d of %d: %d octets, want %d", c.off, c.limit, c.captured, len(got), c.want)
		}
	}
}

func TestNextObject(t *testing.T) {
	for _, c := range []struct {
		list string
		want Object
		n    int
	}{
		{"", Object{}, 0},
		{"\x00\x04\x01", Object{}, 0},
		{"\x00\x04\x01\x02", Object{1, 2, nil}, 4},
		{"\x00\x03\x01\x02", Object{}, 0},
		{"\x00\x00\x01\x02", Object{}, 0},
		{"\x00\x05\xf7\x02A\x00\x00\x00next", Object{247, 2, []byte("A")}, 8},
		{"\x00\x05\xf7\x02A\x00\x00", Object{}, 0}, // its zeros are cut
		{"\x00\x08\xf7\x02ABCD", Object{247, 2, []byte("ABCD")}, 8},
		{"\xff\xff\xf7\x02ABCD", Object{}, 0},
	} {
		o, n := NextObject([]byte(c.list))
		if o.Class != c.want.Class || o.CType != c.want.CType || !bytes.Equal(o.Payload, c.want.Payload) || n != c.n {
			t.Errorf("% x: %+v of %d octets, want %+v of %d", c.list, o, n, c.want, c.n)
		}
		if n == 0 || strings.HasSuffix(c.list, "next") {
			continue
		}
		out := bytes.Repeat([]byte{0xa5}, o.Len())
		o.Put(out)
		if string(out) != c.list {
			t.Errorf("% x encodes to % x", c.list, out)
		}
	}
	out := bytes.Repeat([]byte{0xa5}, 12)
	if n := PutTimestamp(out, 247, 0x01020304_05060708); n != 12 || string(out) != "\x00\x0c\xf7\x01\x01\x02\x03\x04\x05\x06\x07\x08" {
		t.Errorf("timestamp: % x", out)
	}
}

func TestExtensionChecksum(t *testing.T) {
	b := []byte("\xa5\xa5\xa5\xa5\x00\x08\xf7\x02ABCD")
	PutExtensionHeader(b)
	if want := plainChecksum([]byte("\x20\x00\x00\x00\x00\x08\xf7\x02ABCD")); be.Uint16(b[2:]) != want || b[0] != 0x20 || b[1] != 0 {
		t.Errorf("% x, want checksum %04x", b, want)
	}
	for i := range b {
		if b[i] ^= 1; ExtensionChecksumOK(b) {
			t.Errorf("octet %d changed, and the checksum is right", i)
		}
		b[i] ^= 1
	}
	if !ExtensionChecksumOK(b) {
		t.Error("the right checksum isn't")
	}
	if b[2], b[3] = 0, 0; !ExtensionChecksumOK(b) {
		t.Error("a checksum that wasn't sent is wrong")
	}
	// 0x2000 + 0x0006 + 0x0000 + 0xDFF9 = 0xFFFF: the complement would be 0.
	b = []byte("\xa5\xa5\xa5\xa5\x00\x06\x00\x00\xdf\xf9\x00\x00")
	if PutExtensionHeader(b); b[2] != 0xff || b[3] != 0xff || !ExtensionChecksumOK(b) {
		t.Errorf("a checksum of 0 is sent as % x", b[2:4])
	}
}

func TestNTPTime(t *testing.T) {
	for _, c := range []struct {
		at   time.Time
		want uint64
	}{
		{time.Unix(0, 0), 2208988800 << 32},
		{time.Unix(0, 500_000_000), 2208988800<<32 | 1<<31},
		{time.Unix(0, -500_000_000), 2208988799<<32 | 1<<31},
		{time.Unix(0, 999_999_999), 2208988800<<32 | 0xfffffffb},
		{time.Unix(1, 1), 2208988801<<32 | 4},
		{time.Date(2036, 2, 7, 6, 28, 16, 0, time.UTC), 0}, // era 1 begins
	} {
		if got := NTPTime(c.at.UnixNano()); got != c.want {
			t.Errorf("%v: %016x, want %016x", c.at, got, c.want)
		}
	}
}

func TestActionString(t *testing.T) {
	for a, want := range []string{"notify", "pause", "rate-reduce", "resume"} {
		if got := Action(a).String(); got != want {
			t.Errorf("%d is %q, want %q", a, got, want)
		}
	}
}

// TestUDPChecksum compares with a sum over a pseudo-header that is written out.
func TestUDPChecksum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		datagram := drawBytes(t, rapid.IntRange(8, 80).Draw(t, "length"))
		n := 4
		if rapid.Bool().Draw(t, "v6") {
			n = 16
		}
		addrs := drawBytes(t, 2*n)
		src, dst := AddrFrom4(addrs), AddrFrom4(addrs[n:])
		if n == 16 {
			src, dst = AddrFrom16(addrs), AddrFrom16(addrs[n:])
		}
		pseudo := append(bytes.Clone(addrs), 0, 17, byte(len(datagram)>>8), byte(len(datagram)))
		whole := append(append(pseudo, datagram...), make([]byte, len(datagram)%2)...)
		copy(whole[2*n+4+6:], "\x00\x00")
		want := plainChecksum(whole)
		if want == 0 {
			want = 0xffff
		}
		if got := UDPChecksum(src, dst, datagram); got != want {
			t.Fatalf("%04x, want %04x", got, want)
		}
	})
	// 0xFFFE and the rest of the pseudo-header make 0xFFFF, whose complement would say that there is no checksum.
	datagram := []byte("\xff\xe6\x00\x00\x00\x00\xa5\xa5")
	if got := UDPChecksum(Addr{}, Addr{}, datagram); got != 0xffff {
		t.Errorf("%04x, want ffff", got)
	}
}

func TestIPv4ChecksumOK(t *testing.T) {
	frame, p := stack{family: 4, options: bytes.Repeat([]byte{1}, 8), opcode: CNP, payload: 16}.build()
	if !IPv4ChecksumOK(frame, &p) {
		t.Error("the right checksum isn't")
	}
	for i := 1; i < 28; i++ {
		broken := bytes.Clone(frame)
		if broken[14+i] ^= 1; IPv4ChecksumOK(broken, &p) {
			t.Errorf("octet %d changed, and the checksum is right", i)
		}
	}
	if IPv4ChecksumOK(frame[:14+27], &p) {
		t.Error("a cut header has a right checksum")
	}
}

// TestParseIP: of the IP packet alone, cut anywhere, the same is found as of the frame cut there, with offsets less the link layer's.
func TestParseIP(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		frame, whole := drawAny(t).build()
		l3 := whole.L3
		captured := rapid.IntRange(0, len(frame)-int(l3)).Draw(t, "captured")
		var want, got Parsed
		Parse(frame[:int(l3)+captured], uint32(len(frame)), &want)
		ParseIP(frame[l3:int(l3)+captured], &got)
		for _, offset := range []*uint16{&want.L3, &want.L4, &want.DstOpts, &want.HopOpts, &want.BTH, &want.Outer, &want.Payload} {
			*offset -= min(*offset, l3)
		}
		want.IPEnd -= min(want.IPEnd, uint32(l3))
		want.ICRC -= min(want.ICRC, uint32(l3))
		want.Tags, want.OuterTag, want.InnerTag, want.EtherType, want.Len = 0, 0, 0, 0, 0
		if got != want {
			t.Fatalf("got  %+v\nwant %+v", got, want)
		}
	})
	var p Parsed
	for _, b := range []string{"", "\x45", "\x60", "\x50", "\x00"} {
		if ParseIP([]byte(b), &p); p != (Parsed{}) {
			t.Errorf("% x: %+v", b, p)
		}
	}
}

func TestFindIOAMTrace(t *testing.T) {
	trace := "\x00\x01\x08\x00\x80\x00\x00\x00" + "\x3e\x00\x00\x07"
	for _, c := range []struct {
		name    string
		options string // of the Hop-by-Hop Options header, less its first two octets; filled up with Pad1
		want    string // IOAM-Opt-Type and data
	}{
		{"none", "", ""},
		{"pre-allocated, may change", "\x01\x00\x31\x0e\x00\x00" + trace, "\x00" + trace},
		{"incremental, doesn't change", "\x00\x00\x11\x0e\xff\x01" + trace, "\x01" + trace},
		{"proof of transit first", "\x31\x0e\x00\x02" + trace + "\x31\x0e\x00\x01" + trace, "\x01" + trace},
		{"a trace that isn't made of words first", "\x31\x0d\x00\x00" + trace[1:] + "\x31\x0e\x00\x01" + trace, "\x01" + trace},
		{"two", "\x31\x0a\x00\x00" + trace[:8] + "\x31\x0e\x00\x01" + trace, "\x00" + trace[:8]},
		{"fixed part cut", "\x31\x06\x00\x00\x00\x01\x08\x00", ""},
		{"cut by its header", "\x01\x00\x31\x20\x00\x00" + trace, ""},
		{"as data of another option", "\x1e\x10\x31\x0e\x00\x00" + trace, ""},
	} {
		body := []byte(c.options)
		body = append(body, make([]byte, (6-len(body)&7+8)&7)...)
		frame, _ := stack{family: 6, opcode: RCSendOnly, payload: 4, ext: []extHeader{{ProtoHopByHop, body}}}.build()
		var p Parsed
		Parse(frame, uint32(len(frame)), &p)
		got := FindIOAMTrace(frame, &p)
		if p.HopOpts == 0 || c.want == "" && got.Data != nil || c.want != "" && string(append([]byte{got.Type}, got.Data...)) != c.want {
			t.Errorf("%s: type %d, data % x, want % x", c.name, got.Type, got.Data, c.want)
		}
		if got := FindIOAMTrace(frame[:p.HopOpts+8], &p); len(body) > 6 && got.Data != nil {
			t.Errorf("%s, cut: % x", c.name, got.Data)
		}
	}
	other := []extHeader{{ProtoDestOpts, []byte("\x01\x00\x31\x0e\x00\x00" + trace + "\x00\x00\x00\x00")}}
	frame, p := stack{family: 6, opcode: RCSendOnly, ext: other}.build()
	if got := FindIOAMTrace(frame, &p); got.Data != nil {
		t.Errorf("in a Destination Options header: % x", got.Data)
	}
}

func TestCodecsNoAllocations(t *testing.T) {
	b := make([]byte, 300)
	frame, p := stack{family: 6, opcode: RCSendOnly, ext: []extHeader{{ProtoHopByHop,
		[]byte("\x01\x00\x31\x0e\x00\x00\x00\x01\x08\x00\x80\x00\x00\x00\x3e\x00\x00\x07\x00\x00\x00\x00")}}}.build()
	payload := []byte("gateway-1")
	allocs := testing.AllocsPerRun(100, func() {
		h := FastCNPHeader{Option: FastCNPOption{Trace: FindIOAMTrace(frame, &p)}}
		h.Pad()
		h.Put(b)
		DecodeFastCNPOption(b[6:])
		o := Object{Class: 247, CType: CTypeDevice, Payload: payload}
		o.Put(b[4:])
		PutExtensionHeader(b[:4+o.Len()])
		NextObject(b[4:])
		x := Proxied{Version: 6}
		x.Put(b)
		DecodeProxied(b)
		UDPChecksum(Addr{}, Addr{}, b)
		ParseIP(frame[p.L3:], &p)
		Parse(frame, uint32(len(frame)), &p)
	})
	if allocs != 0 {
		t.Errorf("%v allocations a run, want 0", allocs)
	}
}
