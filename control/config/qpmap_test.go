package config

import (
	"maps"
	"net/netip"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/yamldoc"
)

func TestParseQPPair(t *testing.T) {
	good := map[string]string{"source_ip": "10.0.0.1", "destination_ip": "10.0.0.2", "source_qp": "2", "destination_qp": "0xfffffe"}
	want := QPPair{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2"), 2, 0xfffffe, "", ""}
	if p, err := ParseQPPair(good); err != nil || p != want {
		t.Fatalf("%+v, %v", p, err)
	}
	for _, c := range []struct{ key, value, want string }{
		{"source_ip", "", "source_ip: missing; expected a unicast IPv4 or IPv6 address"},
		{"destination_qp", "", "destination_qp: missing; expected a whole number, 2 to 16777214"},
		{"source_ip", "host1", `source_ip: "host1" is not an IP address; expected a unicast`},
		{"source_ip", "224.0.0.1", "source_ip: 224.0.0.1 is not the address of a host"},
		{"source_ip", "fe80::1%eth0", "source_ip: "},
		{"source_ip", "::ffff:10.0.0.1", "source_ip: ::ffff:10.0.0.1 is an IPv4 address in IPv6 form"},
		{"destination_ip", "fd00::2", "destination_ip: fd00::2 is not of the same IP version as the source 10.0.0.1; expected two addresses of one version"},
		{"destination_ip", "10.0.0.1", "destination_ip: 10.0.0.1 is also the source; expected the address of the host at the other end"},
		{"source_qp", "1", `source_qp: "1" is too low; expected 2 to 16777214`},
		{"source_qp", "16777215", `source_qp: "16777215" is too high; expected 2 to 16777214`},
		{"destination_qp", "1.5", `destination_qp: "1.5" is not a whole number`},
	} {
		values := maps.Clone(good)
		if values[c.key] = c.value; c.value == "" {
			delete(values, c.key)
		}
		if _, err := ParseQPPair(values); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s %q: error %v, want %s", c.key, c.value, err, c.want)
		}
	}
}

// TestPairScopes: the VLAN and the tunnel of a pair, in their one form, and the scope that they name.
func TestPairScopes(t *testing.T) {
	tag := packet.MakeTag
	for _, c := range []struct {
		tags, tunnel     string
		asTags, asTunnel string
		want             packet.Scope
		none             bool
		wrong            string // the beginning of the error
	}{
		{none: true},
		{tags: "none", asTags: "none"},
		{tags: "010", asTags: "10", want: packet.ScopeInVLAN(0, tag(0x8100, 10), 0)},
		{tags: "0", asTags: "0", want: packet.ScopeInVLAN(0, tag(0x8100, 0), 0)},
		{tags: "0x8100:10", asTags: "10", want: packet.ScopeInVLAN(0, tag(0x8100, 10), 0)},
		{tags: "0x88A8:100/20", asTags: "0x88a8:100/20", want: packet.ScopeInVLAN(0, tag(0x88a8, 100), tag(0x8100, 20))},
		{tunnel: "vxlan:5000", asTunnel: "vxlan:5000", want: packet.ScopeInTunnel(0, packet.Tunnel{Kind: packet.VXLAN, ID: 5000}, 0)},
		{tunnel: "srv6", asTunnel: "srv6:0", want: packet.ScopeInTunnel(0, packet.Tunnel{Kind: packet.SRv6}, 0)},
		{tags: "7", tunnel: "gre:4294967295", asTags: "7", asTunnel: "gre:4294967295", want: packet.ScopeInTunnel(0, packet.Tunnel{Kind: packet.GRE, ID: 1<<32 - 1}, tag(0x8100, 7))},
		{tags: "4095", wrong: `tags: "4095" is not a VLAN's tags; expected a VID of 0 to 4094`},
		{tags: "ten", wrong: `tags: "ten" is not a VLAN's tags`},
		{tags: "1/2/3", wrong: `tags: "1/2/3" is not a VLAN's tags`},
		{tags: "0x1234:1", wrong: `tags: "0x1234:1" is not a VLAN's tags`},
		{tunnel: "vlan:1", wrong: `tunnel: "vlan:1" is not a tunnel; expected a kind, ` + yamldoc.Either(packet.TunnelNames())},
		{tunnel: "vxlan:x", wrong: `tunnel: "vxlan:x" is not a tunnel`},
		{tags: "1/2", tunnel: "vxlan:1", wrong: `tags: "1/2" is two tags`},
	} {
		values := map[string]string{"source_ip": "10.0.0.1", "destination_ip": "10.0.0.2", "source_qp": "2", "destination_qp": "3"}
		for key, v := range map[string]string{"tags": c.tags, "tunnel": c.tunnel} {
			if v != "" {
				values[key] = v
			}
		}
		p, err := ParseQPPair(values)
		if c.wrong != "" {
			if err == nil || !strings.HasPrefix(err.Error(), c.wrong) {
				t.Errorf("%q, %q: error %v, expected %s", c.tags, c.tunnel, err, c.wrong)
			}
			continue
		}
		s, in := p.Scope()
		if err != nil || p.Tags != c.asTags || p.Tunnel != c.asTunnel || s != c.want || in == c.none {
			t.Errorf("%q, %q: %+v, scope %#x, %v, error %v", c.tags, c.tunnel, p, s, in, err)
		}
	}
}
