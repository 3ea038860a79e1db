package replay_test

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/control/replay"
	"github.com/cnpgate/cnpgate/internal/testkit"
)

// from makes a capture with a frame from each source; "" is a frame without one.
func from(t *testing.T, sources ...string) *replay.Capture {
	t.Helper()
	var records []record
	for i, source := range sources {
		f := append([]byte{1, 0x80, 0xc2, 0, 0, 0xe, 2, 0, 0, 0, 0, 5, 0x88, 0xcc}, make([]byte, 46)...) // LLDP
		switch {
		case strings.Contains(source, ":"):
			f = testkit.RoCE{Src: source, Dst: "fd00:9::9"}.Frame()
		case source != "":
			f = testkit.RoCE{Src: source, Dst: "10.9.0.9"}.Frame()
		}
		records = append(records, whole(uint32(i), 0, f))
	}
	c, err := replay.Open(save(t, classic(binary.LittleEndian, micro, 1, records...)), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestFabricOfTunnels: of RoCEv2 in an IP tunnel, the prefix may hold the hosts or the tunnel's end; over MPLS, the hosts.
func TestFabricOfTunnels(t *testing.T) {
	inner := testkit.RoCE{Src: "10.1.0.1", Dst: "10.9.0.9"}.Frame()
	for _, c := range []struct {
		frame  []byte
		fabric string
		want   bool
	}{
		{testkit.VXLAN(inner, 5, 0, false), "10.1.0.0/16", true},
		{testkit.VXLAN(inner, 5, 0, false), "192.0.2.17/32", true},
		{testkit.VXLAN(inner, 5, 0, true), "192.0.2.17/32", false},
		{testkit.VXLAN(inner, 5, 0, false), "10.9.0.0/16", false},
		{testkit.MPLS(inner, 5), "10.1.0.0/16", true},
		{testkit.MPLS(inner, 5), "10.9.0.0/16", false},
	} {
		capture, err := replay.Open(save(t, classic(binary.LittleEndian, micro, 1, whole(0, 0, c.frame))), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := capture.CheckFabric(prefixes(c.fabric)); (err == nil) != c.want {
			t.Errorf("%s: error %v, want none: %v", c.fabric, err, c.want)
		}
		if err := capture.Close(); err != nil {
			t.Error(err)
		}
	}
}

// many is sources in as many prefixes of 24 bits, a frame each.
func many(hosts int) (sources []string) {
	for i := range hosts {
		sources = append(sources, fmt.Sprintf("10.%d.%d.7", i/256, i%256))
	}
	return sources
}

// TestCheckFabric: each prefix must hold a source; the error names the first that doesn't, and where frames come from, most frames first.
func TestCheckFabric(t *testing.T) {
	for _, c := range []struct {
		name    string
		sources []string
		fabric  []netip.Prefix
		want    string // the error's end; "" for none
	}{
		{"all match", []string{"10.1.0.1", "fd00::1"}, prefixes("10.1.0.0/16", "fd00::/64"), ""},
		{"the last frame's", []string{"", "10.2.0.1", "10.1.0.1"}, prefixes("10.1.0.1/32"), ""},
		{"one within the other", []string{"10.1.0.1"}, prefixes("10.0.0.0/8", "10.1.0.1/32"), ""},
		{"no frames", nil, prefixes("10.0.0.0/8"), ""},
		{"no senders", []string{""}, prefixes("::/0"), "from no IP address at all"},
		{"none matches", []string{"10.2.0.1", "10.1.0.1", "10.1.0.1", "fd00::1"}, prefixes("192.0.2.0/24"),
			"from 10.1.0.1/32 (frames: 2), 10.2.0.1/32 (frames: 1), fd00::1/128 (frames: 1)"},
		{"one of two", []string{"10.2.0.1"}, prefixes("10.0.0.0/8", "fd00::/64"), "from 10.2.0.1/32 (frames: 1)"},
		{"a destination is no source", []string{"10.2.0.1"}, prefixes("10.9.0.9/32"), "from 10.2.0.1/32 (frames: 1)"},
		{"eight hosts", many(8), prefixes("fd00::/8"), "10.0.7.7/32 (frames: 1)"},
		{"nine hosts", many(9), prefixes("fd00::/8"), "from 10.0.0.0/16 (frames: 9)"},
		{"more hosts than are kept", many(6000), prefixes("fd00::/8"), "from 10.0.0.0/8 (frames: 6000)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			capture := from(t, c.sources...)
			err := capture.CheckFabric(c.fabric)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasSuffix(err.Error(), c.want)) {
				t.Errorf("error %v, want one that ends in %q", err, c.want)
			}
			if c.want != "" && err != nil && !strings.HasPrefix(err.Error(), c.fabric[len(c.fabric)-1].String()+": no frame of capture ") {
				t.Errorf("error %v, want one about %v", err, c.fabric[len(c.fabric)-1])
			}
			if c.want != "" || c.sources == nil {
				return
			}
			if f, err := capture.Next(); err != nil || f.Time != 0 {
				t.Errorf("the next frame is at %d (%v), want the first", f.Time, err)
			}
		})
	}
}
