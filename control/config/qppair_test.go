package config

import (
	"maps"
	"net/netip"
	"strings"
	"testing"
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
