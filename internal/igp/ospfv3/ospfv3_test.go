package ospfv3_test

import (
	"bytes"
	"encoding/hex"
	"net/netip"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/internal/igp/ospf"
	"github.com/cnpgate/cnpgate/internal/igp/ospfv3"
	"github.com/cnpgate/cnpgate/internal/testkit/elsa"
	"github.com/cnpgate/cnpgate/internal/testkit/pcap"
)

// scapy returns the OSPF packet of testdata/build.py.
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
	if err != nil || p.Version != ospf.V3 || p.Type != ospf.LinkStateUpdate {
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

// lsas is what testdata/build.py describes.
func lsas() []ospfv3.LSA {
	attributes := ospf.Attributes{Flags: []byte{0x20, 0, 0, 0}, Addresses: []netip.Addr{netip.MustParseAddr("2001:db8::9")},
		Unknown: []ospf.TLV{{Type: 99, Value: []byte("xyz")}}}
	return []ospfv3.LSA{
		{Reference: ospfv3.Reference{Type: 0x2001, Router: netip.MustParseAddr("192.0.2.9")},
			Prefixes: []ospfv3.Prefix{{TLV: ospfv3.IntraArea, Metric: 10, Options: 1, Prefix: netip.MustParsePrefix("2001:db8:c::/48"), Attributes: attributes}}},
		{Prefixes: []ospfv3.Prefix{{TLV: ospfv3.InterArea, Metric: 20, Options: 1, Prefix: netip.MustParsePrefix("2001:db8:d::/64"), Attributes: attributes}}},
		{Prefixes: []ospfv3.Prefix{{TLV: ospfv3.External, Upper: 4, Metric: 30, Options: 1, Prefix: netip.MustParsePrefix("::/0"), Attributes: attributes}},
			Unknown: []ospf.TLV{{Type: 77, Value: []byte("other")}}},
	}
}

// TestScapy: the LSAs, whose headers and checksums are scapy's, decode to what they were built of, and cnpgate encodes the same octets.
func TestScapy(t *testing.T) {
	all := update(t, scapy(t))
	want := lsas()
	if len(all) != len(want) {
		t.Fatalf("%d LSAs", len(all))
	}
	encoded := scapy(t)[:20]
	for i := range all {
		got, err := ospfv3.Decode(all[i].Type, all[i].Body)
		if err != nil || !reflect.DeepEqual(got, want[i]) {
			t.Errorf("%v\ngot  %+v\nwant %+v", err, got, want[i])
		}
		if proxy, ok := got.Prefixes[0].Proxy(all[i].Router, false); !ok || proxy.String() != "2001:db8::9" || !got.Prefixes[0].P() {
			t.Errorf("the proxy of %v is %v, %v", got.Prefixes[0].Prefix, proxy, ok)
		}
		l := all[i]
		if l.Body, err = elsa.Body(&want[i], l.Type); err != nil {
			t.Fatal(err)
		}
		l.Checksum = 0
		b, err := l.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		encoded = append(encoded, b...)
	}
	if packet := scapy(t); !bytes.Equal(encoded, packet) {
		t.Errorf("got  %x\nwant %x", encoded, packet)
	}
}

// TestFRR: FRR's updates decode with right checksums. Among them are the LSAs of testdata/build.py as FRR flooded them, with sub-TLVs that it doesn't know.
func TestFRR(t *testing.T) {
	names, flooded := map[string]bool{}, 0
	for _, f := range pcap.Read(t, "testdata/frr.pcap") {
		packet := f.Octets[14+40:]
		p, err := ospf.DecodePacket(packet)
		if err != nil {
			t.Fatal(err)
		}
		if p.Type != ospf.LinkStateUpdate {
			continue
		}
		for _, l := range update(t, packet) {
			names[ospfv3.TypeName(l.Type)] = true
			if !ospfv3.HasPrefixes(l.Type) {
				continue
			}
			got, err := ospfv3.Decode(l.Type, l.Body)
			if err != nil || len(got.Prefixes) != 1 || !got.Prefixes[0].P() {
				t.Errorf("%+v, %v", got, err)
			}
			flooded++
		}
	}
	if flooded == 0 || !names["router"] || !names["link"] || !names["intra-area-prefix"] || !names["e-intra-area-prefix"] {
		t.Errorf("%d extended LSAs; %v", flooded, names)
	}
}

// TestMalformed: what RFC 8362 and RFC 9792 tell receivers to ignore is an error that says why.
func TestMalformed(t *testing.T) {
	for _, c := range []struct {
		name, body string
		lsaType    uint16
		want       string
	}{
		{"no reference", "\x00\x00", ospfv3.EIntraAreaPrefix, "e-intra-area-prefix LSA: its body has 2 octets; expected at least 12"},
		{"TLV cut", "\x00\x03\x00", ospfv3.EInterAreaPrefix, "e-inter-area-prefix LSA: 3 octets are left"},
		{"short", "\x00\x03\x00\x04abcd", ospfv3.EInterAreaPrefix, "prefix TLV 3: it has 4 octets; expected at least 8"},
		{"prefix length", "\x00\x05\x00\x08\x00\x00\x00\x01\x81\x00\x00\x00", ospfv3.EASExternal, "the prefix length is 129"},
		{"prefix cut", "\x00\x05\x00\x0c\x00\x00\x00\x01\x21\x00\x00\x00abcd", ospfv3.EType7, "a prefix of length 33 needs 8 octets, but 4 are left"},
		{"flags of 5 octets", "\x00\x05\x00\x14\x00\x00\x00\x01\x00\x00\x00\x00\x00\x25\x00\x05\x20\x00\x00\x00\x00\x00\x00\x00", ospfv3.EASExternal,
			"(sub-TLV 37) have 5 octets"},
	} {
		if _, err := ospfv3.Decode(c.lsaType, []byte(c.body)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", c.name, err, c.want)
		}
	}
}

// FuzzDecode: a body that decodes can be encoded, and decodes to the same again.
func FuzzDecode(f *testing.F) {
	for _, l := range update(f, scapy(f)) {
		f.Add(l.Type, l.Body)
	}
	f.Fuzz(func(t *testing.T, lsaType uint16, body []byte) {
		l, err := ospfv3.Decode(lsaType, body)
		if err != nil || len(body) > 60000 {
			return
		}
		b, err := elsa.Body(&l, lsaType)
		if err != nil {
			t.Fatalf("%+v: %v", l, err)
		}
		if again, err := ospfv3.Decode(lsaType, b); err != nil || !reflect.DeepEqual(again, l) {
			t.Fatalf("%v\ngot  %+v\nwant %+v", err, again, l)
		}
	})
}
