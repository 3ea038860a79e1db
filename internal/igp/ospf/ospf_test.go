package ospf_test

import (
	"bytes"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/internal/igp/ospf"
	"github.com/cnpgate/cnpgate/internal/testkit/pcap"
)

// TestMalformed: what can't be an OSPF packet or an update is refused, and the error says why.
func TestMalformed(t *testing.T) {
	header := func(version, length byte) string {
		return string([]byte{version, ospf.LinkStateUpdate, 0, length}) + strings.Repeat("\x00", 20)
	}
	for _, c := range []struct{ name, packet, want string }{
		{"short", "\x02\x04\x00\x18", "an OSPF packet has 4 octets"},
		{"version", header(4, 24), "has version 4; expected 2 or 3"},
		{"length below the header", header(2, 23), "gives its length as 23; expected 24 to 24"},
		{"length beyond the packet", header(3, 25), "gives its length as 25; expected 16 to 24"},
		{"no count", header(2, 24), "a Link State Update has 0 octets"},
		{"many LSAs", header(2, 48) + "\xff\xff\xff\xff" + strings.Repeat("\x00", 20), "announces 4294967295 LSAs in 20 octets"},
		{"LSA length", header(2, 48) + "\x00\x00\x00\x01" + strings.Repeat("\x00", 19) + "\x13", "LSA 1 of 1: an LSA of type 0x0000 has a length of 19 octets"},
	} {
		p, err := ospf.DecodePacket([]byte(c.packet))
		if err == nil {
			err = p.Update(func(*ospf.LSA, bool) bool { return true })
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", c.name, err, c.want)
		}
	}
	for want, l := range map[string]ospf.LSA{
		"is no Router ID":  {},
		"more than 65,535": {Router: netip.IPv4Unspecified(), Body: make([]byte, 65536)},
	} {
		if _, err := l.Append(nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
}

// TestSetP sets one bit and keeps the others.
func TestSetP(t *testing.T) {
	for _, c := range []struct{ flags, want []byte }{
		{nil, []byte{0x20, 0, 0, 0}},
		{[]byte{0xc0, 1, 2, 3, 4, 5, 6, 7}, []byte{0xe0, 1, 2, 3, 4, 5, 6, 7}},
	} {
		a := ospf.Attributes{Flags: c.flags}
		if a.SetP(); !bytes.Equal(a.Flags, c.want) || !a.P() {
			t.Errorf("%x", a.Flags)
		}
	}
}

// FuzzPacket: whatever a packet is, its LSAs encode to the octets that were decoded, if their checksums are right.
func FuzzPacket(f *testing.F) {
	for _, frame := range pcap.Read(f, "../ospfv2/testdata/frr.pcap") {
		f.Add(frame.Octets[14+20:])
	}
	for _, frame := range pcap.Read(f, "../ospfv3/testdata/frr.pcap") {
		f.Add(frame.Octets[14+40:])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := ospf.DecodePacket(b)
		if err != nil {
			return
		}
		body := p.Body
		_ = p.Update(func(l *ospf.LSA, checksum bool) bool {
			encoded, err := l.Append(nil)
			if err != nil {
				t.Fatal(err)
			}
			if again, right, rest, err := ospf.NextLSA(encoded); err != nil || !right || len(rest) != 0 || !reflect.DeepEqual(again.Body, l.Body) {
				t.Fatalf("%+v, %v, %d, %v", again, right, len(rest), err)
			}
			if checksum && !bytes.Contains(body, encoded) {
				t.Fatalf("%x is encoded as %x", body, encoded)
			}
			return true
		})
	})
}
