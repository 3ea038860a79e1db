package nhc

import (
	"bytes"
	"encoding/hex"
	"errors"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const code = 65400

func unhex(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The octets are written by hand from the figures of the two drafts.
var golden = []struct {
	name  string
	octet string
	a     Attribute
}{
	{"IPv4 route, IPv4 proxy", "0001 01 04 c0000201 ff78 0004 cb007107", Attribute{IPv4Unicast, netip.MustParseAddr("192.0.2.1"), []Characteristic{
		PNC(code, netip.MustParseAddr("203.0.113.7")),
	}}},
	{"IPv6 route, IPv6 proxy", "0002 01 10 20010db8000000000000000000000001 ff78 0010 20010db8000700000000000000000007", Attribute{
		IPv6Unicast, netip.MustParseAddr("2001:db8::1"), []Characteristic{PNC(code, netip.MustParseAddr("2001:db8:7::7"))},
	}},
	{"IPv6 route, IPv4 proxy", "0002 01 10 20010db8000000000000000000000001 ff78 0004 cb007107", Attribute{
		IPv6Unicast, netip.MustParseAddr("2001:db8::1"), []Characteristic{PNC(code, netip.MustParseAddr("203.0.113.7"))},
	}},
	{"with ELCv3 before it, without a value", "0001 01 04 c0000201 0001 0000 ff78 0004 cb007107", Attribute{IPv4Unicast, netip.MustParseAddr("192.0.2.1"), []Characteristic{
		{1, []byte{}}, PNC(code, netip.MustParseAddr("203.0.113.7")),
	}}},
	{"nothing but the header", "0001 01 04 c0000201", Attribute{IPv4Unicast, netip.MustParseAddr("192.0.2.1"), nil}},
}

func TestGolden(t *testing.T) {
	for _, g := range golden {
		want := unhex(t, g.octet)
		if got, err := g.a.Append(nil); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: encoded as % x (%v), expected % x", g.name, got, err, want)
		}
		if got, err := Decode(want); err != nil || !reflect.DeepEqual(got, g.a) {
			t.Errorf("%s: decoded as %+v (%v), expected %+v", g.name, got, err, g.a)
		}
	}
}

func TestMalformed(t *testing.T) {
	for _, c := range []struct {
		name, octets string
		want         error
	}{
		{"empty", "", ErrShort},
		{"half a header", "0001 01", ErrShort},
		{"the next hop is cut", "0001 01 04 c00002", ErrShort},
		{"a next hop of 5 octets", "0001 01 05 c000020100", ErrNextHop},
		{"no next hop", "0001 01 00", ErrNextHop},
		{"a next hop of 24 octets, as in a VPN", "0001 80 18 000000000000000020010db8000000000000000000000001", ErrNextHop},
		{"half a TLV header", "0001 01 04 c0000201 ff78 00", ErrTLV},
		{"the value is cut", "0001 01 04 c0000201 ff78 0004 cb0071", ErrTLV},
		{"the second TLV is cut", "0001 01 04 c0000201 ff78 0004 cb007107 ff79 0001", ErrTLV},
		{"the longest length", "0001 01 04 c0000201 ff78 ffff cb007107", ErrTLV},
	} {
		if _, err := Decode(unhex(t, c.octets)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, expected %v", c.name, err, c.want)
		}
	}
	for flags, want := range map[uint8]error{0xC0: nil, 0xE0: nil, 0xD0: nil, 0xF0: nil, 0x80: ErrFlags, 0x40: ErrFlags, 0x00: ErrFlags, 0xA0: ErrFlags} {
		if err := CheckFlags(flags); !errors.Is(err, want) {
			t.Errorf("flags %#x: %v, expected %v", flags, err, want)
		}
	}
}

func TestProxy(t *testing.T) {
	for _, c := range []struct{ name, characteristics, want string }{
		{"IPv4", "ff78 0004 cb007107", "203.0.113.7"},
		{"IPv6", "ff78 0010 20010db8000700000000000000000007", "2001:db8:7::7"},
		{"none", "", ""},
		{"another code", "ff79 0004 cb007107", ""},
		{"behind one of another code, in descending order", "ff79 0000 ff78 0004 cb007107", "203.0.113.7"},
		{"the first of two", "ff78 0004 cb007107 ff78 0004 cb007108", "203.0.113.7"},
		{"twice the same", "ff78 0004 cb007107 ff78 0004 cb007107", "203.0.113.7"},
		{"three octets", "ff78 0003 cb0071", ""},
		{"no octets", "ff78 0000", ""},
		{"five octets, then a good one", "ff78 0005 cb00710700 ff78 0004 cb007107", "203.0.113.7"},
		{"0.0.0.0", "ff78 0004 00000000", ""},
		{"0.0.0.1", "ff78 0004 00000001", ""},
		{"loopback", "ff78 0004 7f000001", ""},
		{"multicast", "ff78 0004 e0000001", ""},
		{"broadcast", "ff78 0004 ffffffff", ""},
		{"reserved", "ff78 0004 f0000001", ""},
		{"link-local", "ff78 0010 fe800000000000000000000000000001", ""},
		{"IPv4 in IPv6", "ff78 0010 00000000000000000000ffffcb007107", ""},
		{"unspecified", "ff78 0010 00000000000000000000000000000000", ""},
	} {
		a, err := Decode(unhex(t, "0001 01 04 c0000201"+c.characteristics))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		proxy, ok := a.Proxy(code)
		if ok != (c.want != "") || ok && proxy.String() != c.want {
			t.Errorf("%s: %v, %t; expected %q", c.name, proxy, ok, c.want)
		}
	}
}

func TestAppendRefuses(t *testing.T) {
	hop := netip.MustParseAddr("192.0.2.1")
	for _, c := range []struct {
		name string
		a    Attribute
		want string
	}{
		{"descending codes", Attribute{IPv4Unicast, hop, []Characteristic{{2, nil}, {1, nil}}}, "characteristic 1 follows 2"},
		{"twice the same", Attribute{IPv4Unicast, hop, []Characteristic{{2, []byte{1}}, {2, []byte{1}}}}, "characteristic 2 follows 2"},
		{"no next hop", Attribute{Family: IPv4Unicast}, "expected an IPv4 or IPv6 address"},
		{"a zone", Attribute{Family: IPv6Unicast, NextHop: netip.MustParseAddr("fe80::1%eth0")}, "without zone"},
		{"too long", Attribute{IPv4Unicast, hop, []Characteristic{{2, make([]byte, MaxSize)}}}, "longer than 4096 bytes"},
	} {
		if _, err := c.a.Append(nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, expected %q", c.name, err, c.want)
		}
	}
	two := Attribute{IPv4Unicast, hop, []Characteristic{{2, []byte{1}}, {2, []byte{2}}}}
	if _, err := two.Append(nil); err != nil {
		t.Errorf("two values of one code: %v", err)
	}
}

// A next hop of 32 octets has a global address, which counts, and a link-local one.
func TestTwoNextHops(t *testing.T) {
	a, err := Decode(unhex(t, "0002 01 20 20010db8000000000000000000000001 fe800000000000000000000000000001 ff78 0004 cb007107"))
	if err != nil || a.NextHop != netip.MustParseAddr("2001:db8::1") || len(a.Characteristics) != 1 {
		t.Errorf("%+v, %v", a, err)
	}
}

// Whatever Append makes, Decode reads.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom([]int{4, 16}).Draw(t, "size")
		hop, _ := netip.AddrFromSlice(rapid.SliceOfN(rapid.Byte(), size, size).Draw(t, "hop"))
		a := Attribute{Family: Family{rapid.Uint16().Draw(t, "afi"), rapid.Byte().Draw(t, "safi")}, NextHop: hop}
		next := rapid.Uint16Range(0, 99).Draw(t, "code")
		for range rapid.IntRange(0, 8).Draw(t, "count") {
			a.Characteristics = append(a.Characteristics, Characteristic{next, append([]byte{}, rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "value")...)})
			next += rapid.Uint16Range(1, 999).Draw(t, "step")
		}
		b, err := a.Append([]byte("before"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode(b[len("before"):])
		if err != nil || !reflect.DeepEqual(got, a) {
			t.Fatalf("%+v became %+v (%v)", a, got, err)
		}
	})
}

// Decode never panics, refers to nothing outside of its argument, and what it accepts it reads again from its own encoding.
func FuzzDecode(f *testing.F) {
	for _, g := range golden {
		b, err := g.a.Append(nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := Decode(b)
		if err != nil {
			return
		}
		size := 4 + int(b[3])
		for _, c := range a.Characteristics {
			size += 4 + len(c.Value)
		}
		if size != len(b) {
			t.Fatalf("%d of %d bytes were read", size, len(b))
		}
		again, err := a.Append(nil)
		if err != nil {
			return // descending, or twice the same: Decode accepts what Append doesn't make
		}
		if b[3] != 32 && !bytes.Equal(again, b) {
			t.Fatalf("% x became % x", b, again)
		}
		a.Proxy(code)
	})
}
