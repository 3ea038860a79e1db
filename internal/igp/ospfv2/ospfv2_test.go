package ospfv2_test

import (
	"bytes"
	"encoding/hex"
	"net/netip"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/internal/igp/ospf"
	"github.com/cnpgate/cnpgate/internal/igp/ospfv2"
	"github.com/cnpgate/cnpgate/internal/testkit/pcap"
)

// scapy returns the OSPF packet that testdata/build.py has scapy build.
func scapy(t testing.TB) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/scapy.txt")
	if err != nil {
		t.Fatal(err)
	}
	b, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// update returns the LSAs of a Link State Update.
func update(t testing.TB, packet []byte) (all []ospf.LSA) {
	t.Helper()
	p, err := ospf.DecodePacket(packet)
	if err != nil || p.Version != ospf.V2 || p.Type != ospf.LinkStateUpdate {
		t.Fatalf("%+v, %v", p, err)
	}
	err = p.Update(func(l *ospf.LSA, checksum bool) bool {
		if !checksum {
			t.Errorf("checksum %#x of LSA %x is found wrong", l.Checksum, l.ID)
		}
		all = append(all, *l)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// lsa is what testdata/build.py describes.
func lsa() ospfv2.LSA {
	return ospfv2.LSA{
		Prefixes: []ospfv2.Prefix{
			{Prefix: netip.MustParsePrefix("198.51.100.0/24"), Attributes: ospf.Attributes{Flags: []byte{0x20, 0, 0, 0},
				Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.9")}, Unknown: []ospf.TLV{{Type: 99, Value: []byte("xyz")}}}},
			{RouteType: ospfv2.IntraArea, Flags: 0x40, Prefix: netip.MustParsePrefix("203.0.113.7/32"), Attributes: ospf.Attributes{
				Flags: []byte{0xdf, 0xff, 0xff, 0xff, 0, 0, 0, 1}, Routers: []netip.Addr{netip.MustParseAddr("192.0.2.8")}}},
		},
		Unknown: []ospf.TLV{{Type: 7, Value: []byte("other")}},
	}
}

// TestScapy: an LSA that scapy built decodes to what it was built of, and cnpgate encodes the same octets.
func TestScapy(t *testing.T) {
	all := update(t, scapy(t))
	if len(all) != 1 || !ospfv2.IsExtendedPrefix(&all[0]) || ospfv2.OpaqueID(&all[0]) != 1 || ospfv2.Type(&all[0]) != ospfv2.ASScope {
		t.Fatalf("%+v", all)
	}
	got, err := ospfv2.Decode(all[0].Body)
	want := lsa()
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%v\ngot  %+v\nwant %+v", err, got, want)
	}
	if !got.Prefixes[0].P() || got.Prefixes[1].P() {
		t.Error("the P-flag is bit 2, of the first prefix only")
	}
	body, err := want.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	all[0].Body, all[0].Checksum = body, 0
	encoded, err := all[0].Append(nil)
	if packet := scapy(t); err != nil || !bytes.HasSuffix(packet, encoded) || len(encoded) != len(packet)-24-4 {
		t.Errorf("%v\ngot  %x\nwant %x", err, encoded, packet[28:])
	}
}

// TestFRR: FRR's updates decode with right checksums. Among them are extended prefix LSAs that a client of its API originated, and their withdrawal.
func TestFRR(t *testing.T) {
	extended, flushed := 0, 0
	names := map[string]bool{}
	for _, f := range pcap.Read(t, "testdata/frr.pcap") {
		packet := f.Octets[14+20:]
		p, err := ospf.DecodePacket(packet)
		if err != nil {
			t.Fatal(err)
		}
		if p.Type != ospf.LinkStateUpdate {
			continue
		}
		for _, l := range update(t, packet) {
			names[ospfv2.TypeName(&l)] = true
			if !ospfv2.IsExtendedPrefix(&l) {
				continue
			}
			if extended++; l.Flushed() {
				flushed++
			}
			got, err := ospfv2.Decode(l.Body)
			if err != nil || len(got.Prefixes) != 1 || !got.Prefixes[0].P() || got.Prefixes[0].Prefix.String() != "198.51.100.0/24" {
				t.Errorf("%+v, %v", got, err)
			}
			if proxy, ok := got.Prefixes[0].Proxy(l.Router, true); !ok || proxy.String() != "10.77.0.1" {
				t.Errorf("the proxy is %v, %v", proxy, ok)
			}
		}
	}
	if extended == 0 || flushed == 0 || flushed == extended || !names["router"] || !names["opaque-as"] {
		t.Errorf("%d extended prefix LSAs, of which %d are flushed; %v", extended, flushed, names)
	}
}

// TestMalformed: what RFC 7684 and RFC 9792 tell receivers to ignore is an error that says why; what they tell to skip is kept as unknown.
func TestMalformed(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"TLV cut", "\x00\x01\x00", "3 octets are left where a TLV begins"},
		{"TLV too long", "\x00\x01\x00\x09abc", "TLV 1 has a length of 9 octets, but 3 are left"},
		{"too short", "\x00\x01\x00\x04\x00\x18\x00\x00", "it has 4 octets; expected at least 8"},
		{"prefix length", "\x00\x01\x00\x08\x00\x21\x00\x00\x01\x02\x03\x04", "the prefix length is 33"},
		{"flags of 3 octets", "\x00\x01\x00\x10\x00\x18\x00\x00\x01\x02\x03\x00\x00\x0b\x00\x03\x20\x00\x00\x00", "(sub-TLV 11) have 3 octets; RFC 9792 demands"},
		{"sub-TLV too long", "\x00\x01\x00\x0c\x00\x18\x00\x00\x01\x02\x03\x00\x00\x0b\x00\x04", "sub-TLVs of a prefix: TLV 11 has a length of 4 octets, but 0 are left"},
	} {
		if _, err := ospfv2.Decode([]byte(c.body)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", c.name, err, c.want)
		}
	}
	const prefix = "\x00\x01\x00\x1c\x00\x18\x00\x00\x01\x02\x03\x00"
	for _, c := range []struct {
		name, body                string
		prefixes, unknown, within int
	}{
		{"another address family", "\x00\x01\x00\x08\x00\x18\x01\x00\x01\x02\x03\x00", 0, 1, 0},
		{"Router ID 0", prefix + "\x00\x04\x00\x04\x00\x00\x00\x00" + "\x00\x05\x00\x03abc\x00" + "\x00\x63\x00\x00", 1, 0, 3},
		{"second flags", prefix + "\x00\x0b\x00\x04\x20\x00\x00\x00" + "\x00\x0b\x00\x04\x00\x00\x00\x00" + "\x00\x63\x00\x00", 1, 0, 2},
	} {
		l, err := ospfv2.Decode([]byte(c.body))
		if err != nil || len(l.Prefixes) != c.prefixes || len(l.Unknown) != c.unknown || c.prefixes == 1 && len(l.Prefixes[0].Unknown) != c.within {
			t.Errorf("%s: %+v, %v", c.name, l, err)
		}
	}
}

// TestAppendRefuses: what can't be encoded is an error.
func TestAppendRefuses(t *testing.T) {
	v4 := netip.MustParsePrefix("198.51.100.0/24")
	for want, l := range map[string]ospfv2.LSA{
		"is no IPv4 prefix":     {Prefixes: []ospfv2.Prefix{{Prefix: netip.MustParsePrefix("2001:db8::/32")}}},
		"flags have 3 octets":   {Prefixes: []ospfv2.Prefix{{Prefix: v4, Attributes: ospf.Attributes{Flags: make([]byte, 3)}}}},
		"is no Router ID":       {Prefixes: []ospfv2.Prefix{{Prefix: v4, Attributes: ospf.Attributes{Routers: []netip.Addr{netip.IPv6Loopback()}}}}},
		"address is empty":      {Prefixes: []ospfv2.Prefix{{Prefix: v4, Attributes: ospf.Attributes{Addresses: make([]netip.Addr, 1)}}}},
		"TLV 9 has 65536":       {Unknown: []ospf.TLV{{Type: 9, Value: make([]byte, 65536)}}},
		"sub-TLV 9 has 65536":   {Prefixes: []ospfv2.Prefix{{Prefix: v4, Attributes: ospf.Attributes{Unknown: []ospf.TLV{{Type: 9, Value: make([]byte, 65536)}}}}}},
		"TLV 1 has 65540 octet": {Prefixes: []ospfv2.Prefix{{Prefix: v4, Attributes: ospf.Attributes{Unknown: []ospf.TLV{{Type: 9, Value: make([]byte, 65527)}}}}}},
	} {
		if _, err := l.Append(nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
}

// TestProxy: the proxy is the lowest source router address, else the originator's Router ID.
func TestProxy(t *testing.T) {
	router := netip.MustParseAddr("192.0.2.1")
	addresses := func(all ...string) (list []netip.Addr) {
		for _, a := range all {
			list = append(list, netip.MustParseAddr(a))
		}
		return list
	}
	set := []byte{0x20, 0, 0, 0}
	for _, c := range []struct {
		name string
		a    ospf.Attributes
		want string
	}{
		{"address", ospf.Attributes{Flags: set, Addresses: addresses("192.0.2.9", "192.0.2.8", "0.0.0.0"), Routers: addresses("192.0.2.7")}, "192.0.2.8"},
		{"IPv6 address", ospf.Attributes{Flags: set, Addresses: addresses("2001:db8::9")}, "2001:db8::9"},
		{"originator's ID", ospf.Attributes{Flags: set, Routers: addresses("192.0.2.7")}, "192.0.2.7"},
		{"advertising router", ospf.Attributes{Flags: set}, "192.0.2.1"},
		{"no P-flag", ospf.Attributes{Flags: []byte{0xdf, 0xff, 0xff, 0xff}, Addresses: addresses("192.0.2.9")}, ""},
		{"no flags", ospf.Attributes{Addresses: addresses("192.0.2.9")}, ""},
	} {
		if got, ok := c.a.Proxy(router, true); ok != (c.want != "") || ok && got.String() != c.want {
			t.Errorf("%s: %v, %v; want %q", c.name, got, ok, c.want)
		}
	}
	a := ospf.Attributes{Flags: set}
	if got, ok := a.Proxy(router, false); ok {
		t.Errorf("a Router ID as the address of OSPFv3: %v", got)
	}
	if got, ok := a.Proxy(netip.IPv4Unspecified(), true); ok {
		t.Errorf("no router: %v", got)
	}
}

// FuzzDecode: a body that decodes can be encoded, and decodes to the same again.
func FuzzDecode(f *testing.F) {
	f.Add(update(f, scapy(f))[0].Body)
	f.Fuzz(func(t *testing.T, body []byte) {
		l, err := ospfv2.Decode(body)
		if err != nil || len(body) > 60000 {
			return
		}
		b, err := l.Append(nil)
		if err != nil {
			t.Fatalf("%+v: %v", l, err)
		}
		if again, err := ospfv2.Decode(b); err != nil || !reflect.DeepEqual(again, l) {
			t.Fatalf("%v\ngot  %+v\nwant %+v", err, again, l)
		}
	})
}
