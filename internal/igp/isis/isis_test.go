package isis_test

import (
	"bytes"
	"encoding/hex"
	"net/netip"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/internal/igp/isis"
	"github.com/cnpgate/cnpgate/internal/testkit/pcap"
)

var (
	ipv4 = netip.MustParseAddr("192.0.2.9")
	ipv6 = netip.MustParseAddr("2001:db8::9")
)

// scapy returns the LSPs that testdata/build.py has scapy build.
func scapy(t testing.TB) (all [][]byte) {
	t.Helper()
	text, err := os.ReadFile("testdata/scapy.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Fields(string(text)) {
		b, err := hex.DecodeString(line)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b)
	}
	return all
}

// lsp is what testdata/build.py describes.
func lsp(kind isis.PDUType) isis.LSP {
	l := isis.LSP{Type: kind, Lifetime: 1000, ID: isis.LSPID{0, 0, 0, 0, 0, 9, 0, 0}, Sequence: 2, Flags: 3, RouterIDs: isis.RouterIDs{IPv4: ipv4}}
	l.Unknown = []isis.TLV{{Type: 1, Value: []byte("\x03\x49\x00\x01")}, {Type: 129, Value: []byte{0xcc, 0x8e}}}
	for _, topology := range []uint16{0, 2} {
		tlv := uint8(isis.IPReach)
		if topology != 0 {
			tlv = isis.MTIPReach
		}
		l.Prefixes = append(l.Prefixes,
			isis.Prefix{TLV: tlv, Topology: topology, Metric: 10, Prefix: netip.MustParsePrefix("198.51.100.0/24"), Attributes: []byte{0x21}, Source4: ipv4,
				Unknown: []isis.TLV{{Type: 200, Value: []byte("xyz")}}},
			isis.Prefix{TLV: tlv, Topology: topology, Metric: 20, Down: true, Prefix: netip.MustParsePrefix("203.0.113.0/25")})
	}
	for _, topology := range []uint16{0, 2} {
		tlv := uint8(isis.IPv6Reach)
		if topology != 0 {
			tlv = isis.MTIPv6Reach
		}
		l.Prefixes = append(l.Prefixes,
			isis.Prefix{TLV: tlv, Topology: topology, Metric: 30, Prefix: netip.MustParsePrefix("2001:db8:a::/48"), Attributes: []byte{1}, Source6: ipv6},
			isis.Prefix{TLV: tlv, Topology: topology, Metric: 40, External: true, Prefix: netip.MustParsePrefix("2001:db8:b::/48"), Attributes: []byte{0xfe}})
	}
	return l
}

// TestScapy: an LSP that scapy built decodes to what it was built of, and cnpgate encodes the same octets.
func TestScapy(t *testing.T) {
	kinds := []isis.PDUType{isis.L1LSP, isis.L2LSP}
	built := scapy(t)
	if len(built) != len(kinds) {
		t.Fatalf("%d LSPs, want %d", len(built), len(kinds))
	}
	for i, b := range built {
		want := lsp(kinds[i])
		got, err := isis.Decode(b)
		if err != nil || !got.ChecksumOK {
			t.Fatalf("%v: %v, checksum right: %v", kinds[i], err, got.ChecksumOK)
		}
		encoded, err := want.Append(nil)
		if err != nil || !bytes.Equal(encoded, b) {
			t.Errorf("%v: %v\ngot  %x\nwant %x", kinds[i], err, encoded, b)
		}
		want.Checksum, want.ChecksumOK = got.Checksum, true
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%v:\ngot  %+v\nwant %+v", kinds[i], got, want)
		}
		for j, p := range []bool{true, false, true, false, true, false, true, false} {
			if got.Prefixes[j].P() != p {
				t.Errorf("%v: the P-flag of %v is %v", kinds[i], got.Prefixes[j].Prefix, !p)
			}
		}
	}
}

// TestFRR: FRR's LSPs decode, their checksums are right, and encoding gives a valid LSP with the same content. The capture also has the LSPs of
// testdata/build.py as FRR flooded them: with the P-flag, which FRR doesn't know.
func TestFRR(t *testing.T) {
	var lsps, flooded int
	kinds := map[isis.PDUType]int{}
	for _, f := range pcap.Read(t, "testdata/frr.pcap") {
		pdu, ok := bytes.CutPrefix(f.Octets[14:], []byte(isis.LLC))
		if !ok {
			t.Fatalf("no IS-IS: %x", f.Octets)
		}
		kind, err := isis.Type(pdu)
		if err != nil {
			t.Fatal(err)
		}
		kinds[kind]++
		if kind != isis.L1LSP && kind != isis.L2LSP {
			if _, err := isis.Decode(pdu); err == nil {
				t.Errorf("%v was decoded as an LSP", kind)
			}
			continue
		}
		l, err := isis.Decode(pdu)
		if err != nil || !l.ChecksumOK {
			t.Fatalf("%v: %v, checksum right: %v", l.ID, err, l.ChecksumOK)
		}
		lsps++
		if l.ID.String() == "0000.0000.0009.00-00" {
			flooded += len(l.Prefixes)
			if !l.Prefixes[0].P() || l.Prefixes[0].Source4 != ipv4 {
				t.Errorf("flooded: %+v", l.Prefixes[0])
			}
		} else if l.ID.String() != "0000.0000.0002.00-00" || l.RouterIDs.IPv4 != netip.MustParseAddr("192.0.2.2") || len(l.Prefixes) != 3 ||
			l.Prefixes[1].Prefix != netip.MustParsePrefix("192.0.2.2/32") || l.Prefixes[2].Prefix != netip.MustParsePrefix("2001:db8::2/128") {
			t.Errorf("%+v", l)
		}
		roundTrip(t, &l)
	}
	if lsps != 6 || flooded == 0 || kinds[24] == 0 || kinds[26] == 0 {
		t.Errorf("%d LSPs, %d flooded prefixes, %v", lsps, flooded, kinds)
	}
}

// roundTrip encodes an LSP and checks that decoding gives it again.
func roundTrip(t *testing.T, l *isis.LSP) {
	t.Helper()
	b, err := l.Append(nil)
	if err != nil {
		t.Fatalf("%+v: %v", l, err)
	}
	again, err := isis.Decode(b)
	if err != nil || !again.ChecksumOK {
		t.Fatalf("%x: %v, checksum right: %v", b, err, again.ChecksumOK)
	}
	want := *l
	want.Checksum, want.ChecksumOK = again.Checksum, true
	if !reflect.DeepEqual(again, want) {
		t.Fatalf("got  %+v\nwant %+v", again, want)
	}
}

// TestProxy: the proxy is the source router ID, or the TE Router ID of a router that is certainly the originator.
func TestProxy(t *testing.T) {
	ids := isis.RouterIDs{IPv4: netip.MustParseAddr("192.0.2.1"), IPv6: netip.MustParseAddr("2001:db8::1")}
	v4, v6 := netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("2001:db8:a::/48")
	for _, c := range []struct {
		name   string
		prefix isis.Prefix
		ids    isis.RouterIDs
		want   string
	}{
		{"source of the prefix's family", isis.Prefix{Prefix: v4, Attributes: []byte{1}, Source4: ipv4, Source6: ipv6}, ids, "192.0.2.9"},
		{"the same of IPv6", isis.Prefix{Prefix: v6, Attributes: []byte{1}, Source4: ipv4, Source6: ipv6}, ids, "2001:db8::9"},
		{"source of the other family", isis.Prefix{Prefix: v4, Attributes: []byte{1}, Source6: ipv6}, ids, "2001:db8::9"},
		{"TE Router ID", isis.Prefix{Prefix: v4, Attributes: []byte{1}}, ids, "192.0.2.1"},
		{"TE Router ID of IPv6", isis.Prefix{Prefix: v6, Attributes: []byte{1, 0xff}}, ids, "2001:db8::1"},
		{"leaked, with a source", isis.Prefix{Prefix: v4, Attributes: []byte{1 | isis.FlagR}, Source4: ipv4}, ids, "192.0.2.9"},
		{"leaked: R", isis.Prefix{Prefix: v4, Attributes: []byte{1 | isis.FlagR}}, ids, ""},
		{"leaked: down", isis.Prefix{Prefix: v4, Attributes: []byte{1}, Down: true}, ids, ""},
		{"no address", isis.Prefix{Prefix: v4, Attributes: []byte{1}}, isis.RouterIDs{}, ""},
		{"unspecified address", isis.Prefix{Prefix: v4, Attributes: []byte{1}, Source4: netip.IPv4Unspecified()}, isis.RouterIDs{}, ""},
		{"no P-flag", isis.Prefix{Prefix: v4, Attributes: []byte{0xfe}, Source4: ipv4}, ids, ""},
		{"P in the second octet", isis.Prefix{Prefix: v4, Attributes: []byte{0, 1}, Source4: ipv4}, ids, ""},
		{"no flags", isis.Prefix{Prefix: v4, Source4: ipv4}, ids, ""},
	} {
		got, ok := c.prefix.Proxy(c.ids)
		if ok != (c.want != "") || ok && got.String() != c.want {
			t.Errorf("%s: %v, %v; want %q", c.name, got, ok, c.want)
		}
	}
}

// TestMalformed: what can't be an LSP is refused, and the error says why.
func TestMalformed(t *testing.T) {
	change := func(at int, to ...byte) []byte {
		b := bytes.Clone(scapy(t)[0])
		copy(b[at:], to)
		return b
	}
	with := func(tlvs string) []byte {
		l := isis.LSP{Type: isis.L2LSP}
		b, err := l.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		b = append(b, tlvs...)
		b[9] = byte(len(b))
		return b
	}
	for _, c := range []struct {
		name string
		pdu  []byte
		want string
	}{
		{"short", []byte{0x83}, "a PDU has 1 octets"},
		{"another protocol", change(0, 0x81), "expected 0x83, IS-IS"},
		{"version", change(2, 2), "the versions 2 and 1"},
		{"system ID", change(3, 8), "system IDs have 8 octets"},
		{"hello", change(4, 16), "isis-l2-hello is no LSP"},
		{"header cut", scapy(t)[0][:20], "an LSP has 20 octets"},
		{"length beyond the frame", change(8, 0xff), "an LSP of"},
		{"TLV cut", with("\x01"), "1 octet is left where a TLV begins"},
		{"TLV too long", with("\x01\x05ab"), "TLV 1 has a length of 5 octets, but 2 are left"},
		{"prefix cut", with("\x87\x03abc"), "3 octets are left where a prefix begins"},
		{"prefix length", with("\x87\x0a\x00\x00\x00\x0a\x21\x01\x02\x03\x04\x05"), "a prefix has the length 33"},
		{"IPv6 prefix length", with("\xec\x07\x00\x00\x00\x0a\x00\x81\x01"), "a prefix has the length 129"},
		{"prefix without its address", with("\x87\x06\x00\x00\x00\x0a\x18\x01"), "a prefix has the length 24, and 1 octets are left"},
		{"sub-TLVs too long", with("\x87\x0a\x00\x00\x00\x0a\x58\x01\x02\x03\x04\x04"), "don't end within the TLV"},
		{"sub-TLV too long", with("\x87\x0b\x00\x00\x00\x0a\x58\x01\x02\x03\x02\x04\x05"), "sub-TLVs of 1.2.3.0/24: TLV 4 has a length of 5 octets"},
		{"no topology", with("\xeb\x01\x00"), "expected at least the 2 of the topology"},
	} {
		if _, err := isis.Decode(c.pdu); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", c.name, err, c.want)
		}
	}
}

// TestAppendRefuses: what doesn't fit into an LSP is an error, not a broken LSP.
func TestAppendRefuses(t *testing.T) {
	v4 := netip.MustParsePrefix("198.51.100.0/24")
	for name, l := range map[string]isis.LSP{
		"TLV 1 has 256 octets":     {Unknown: []isis.TLV{{Type: 1, Value: make([]byte, 256)}}},
		"TLV 22 has no prefix":     {Prefixes: []isis.Prefix{{TLV: 22, Prefix: v4}}},
		"doesn't belong into":      {Prefixes: []isis.Prefix{{TLV: isis.IPv6Reach, Prefix: v4}}},
		"of the wrong family":      {Prefixes: []isis.Prefix{{TLV: isis.IPReach, Prefix: v4, Source4: ipv6}}},
		"its sub-TLVs have 257":    {Prefixes: []isis.Prefix{{TLV: isis.IPReach, Prefix: v4, Attributes: make([]byte, 255)}}},
		"TLV 135 has 257 octets":   {Prefixes: []isis.Prefix{{TLV: isis.IPReach, Prefix: v4, Attributes: make([]byte, 246)}}},
		"an LSP has 65819 octets;": {Unknown: slicesOf(256)},
	} {
		if _, err := l.Append(nil); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v; want %q", err, name)
		}
	}
}

func slicesOf(n int) []isis.TLV {
	all := make([]isis.TLV, n)
	for i := range all {
		all[i] = isis.TLV{Type: 1, Value: make([]byte, 255)}
	}
	return all
}

// FuzzDecode: an LSP that decodes can be encoded, and decodes to the same again.
func FuzzDecode(f *testing.F) {
	for _, b := range scapy(f) {
		f.Add(b)
	}
	for _, frame := range pcap.Read(f, "testdata/frr.pcap") {
		f.Add(frame.Octets[17:])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if l, err := isis.Decode(b); err == nil {
			roundTrip(t, &l)
		}
	})
}
