package replay_test

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/internal/testkit"
)

// TestSide: which port a frame comes in by.
func TestSide(t *testing.T) {
	arp := func(sender string, head string) []byte {
		b := append([]byte("\xff\xff\xff\xff\xff\xff\x02\x00\x00\x00\x00\x01\x08\x06"+head), make([]byte, 38)...)
		copy(b[28:], netip.MustParseAddr(sender).AsSlice())
		return b
	}
	const arpIPv4 = "\x00\x01\x08\x00\x06\x04\x00\x01"
	unsound := frameOf(1)
	unsound[16] = 0xff // the total length
	tagged := testkit.RoCE{Src: "10.1.0.1", Dst: "10.9.0.9", Tags: []uint32{0x88a8_0064, 0x8100_00c8}}.Frame()
	twice := slices.Concat(tagged[:12], []byte{0x81, 0, 0, 1}, tagged[12:])
	fabric := "10.1.0.0/16 fd00:1::/32 10.2.0.7/32"
	for _, c := range []struct {
		name   string
		frame  []byte
		fabric string
		inside bool
	}{
		{"IPv4 inside", frameOf(1), fabric, true},
		{"IPv4 outside", testkit.RoCE{Src: "10.9.0.9", Dst: "10.1.0.1"}.Frame(), fabric, false},
		{"IPv4 by the last prefix", testkit.RoCE{Src: "10.2.0.7", Dst: "10.9.0.9"}.Frame(), fabric, true},
		{"IPv4 beside the last prefix", testkit.RoCE{Src: "10.2.0.8", Dst: "10.9.0.9"}.Frame(), fabric, false},
		{"IPv6 inside", testkit.RoCE{Src: "fd00:1::1", Dst: "fd00:9::9"}.Frame(), fabric, true},
		{"IPv6 outside", testkit.RoCE{Src: "fd00:2::1", Dst: "fd00:9::9"}.Frame(), fabric, false},
		{"everything of IPv6 isn't IPv4", frameOf(1), "::/0", false},
		{"everything of IPv4", frameOf(1), "0.0.0.0/0", true},
		{"two tags", tagged, fabric, true},
		{"three tags hide the source", twice, fabric, false},
		{"IPv4 that isn't sound", unsound, fabric, true},
		{"ARP inside", arp("10.1.0.1", arpIPv4), fabric, true},
		{"ARP outside", arp("10.9.0.9", arpIPv4), fabric, false},
		{"ARP for something else", arp("10.1.0.1", "\x00\x06\x08\x00\x06\x04\x00\x01"), fabric, false},
		{"ARP cut", arp("10.1.0.1", arpIPv4)[:41], fabric, false},
		{"LLDP", append([]byte("\x01\x80\xc2\x00\x00\x0e\x02\x00\x00\x00\x00\x01\x88\xcc"), make([]byte, 46)...), "0.0.0.0/0 ::/0", false},
		{"a runt", []byte{1, 2, 3}, "0.0.0.0/0 ::/0", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := classic(binary.LittleEndian, micro, 1, whole(1, 0, c.frame))
			r := replayed(t, &scenario{config: wire, path: save(t, b), fabric: prefixes(strings.Fields(c.fabric)...)})
			if got := r.report.Ports[0].Counters["received_packets_total"].Value == 1; got != c.inside {
				t.Errorf("came in by the fabric port: %v, want %v", got, c.inside)
			}
			if len(r.forwarded) != 1 || !bytes.Equal(r.forwarded[0].octets, c.frame) {
				t.Error("the frame didn't pass as it was")
			}
		})
	}
}
