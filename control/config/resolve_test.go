package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// head is the part of a configuration that every gateway has.
const head = `gateway: {name: gw1, ipv4: 10.9.0.1, ipv6: "fd00:9::1"}
ports:
  - {name: lan0, device: d0, role: fabric, peer: wan0, rate: 1Gbps}
  - {name: wan0, device: d1, role: wan, peer: lan0, rate: 1Gbps}
`

// warned parses a configuration that must be valid, and gives its warnings.
func warned(t *testing.T, rest string) (texts []string) {
	t.Helper()
	cfg, err := Parse("f", []byte(head+rest))
	if err != nil {
		t.Fatalf("%v\nin\n%s", err, rest)
	}
	for _, w := range cfg.Warnings {
		texts = append(texts, w.String())
	}
	return texts
}

// TestWarnsOfWhatIsNeverSent: a format needs both a grant and its switch.
func TestWarnsOfWhatIsNeverSent(t *testing.T) {
	const (
		noFast = "f:6:37: notifications.fast_cnp.enabled: has no effect, as no endpoint accepts fast-cnp; " +
			"add fast-cnp to accepts of the endpoints that understand it"
		noLong = "f:6:42: notifications.long_haul_cnp.enabled: has no effect, as no endpoint accepts long-haul-cnp or long-haul-cnp-icmpv6; " +
			"add long-haul-cnp or long-haul-cnp-icmpv6 to accepts of the endpoints that understand it"
	)
	fast, long := "{fast_cnp: {enabled: true}}", "{long_haul_cnp: {enabled: true}}"
	six := func(accepts string) string { return `[{prefix: "fd00:123::/32", accepts: [` + accepts + "]}]" }
	for _, c := range []struct {
		name, endpoints, notifications string
		want                           []string
	}{
		{"nothing at all", "[]", "{}", nil},
		{"fast-cnp, both", six("fast-cnp"), fast, nil},
		{"long-haul-cnp, both", six("long-haul-cnp"), long, nil},
		{"long-haul-cnp-icmpv6 is enough", six("long-haul-cnp-icmpv6"), long, nil},
		{"enabled, no endpoints", "[]", fast, []string{noFast}},
		{"enabled, endpoints that accept nothing", six(""), fast, []string{noFast}},
		{"enabled, other formats granted", six("fast-cnp"), long, []string{
			"f:5:49: endpoints[0].accepts[0]: fast-cnp has no effect, as it is not enabled; " +
				"set notifications.fast_cnp.enabled to true, or remove it here", noLong}},
		{"granted, switch not given", six("fast-cnp"), "{}", []string{
			"f:5:49: endpoints[0].accepts[0]: fast-cnp has no effect, as it is not enabled; " +
				"set notifications.fast_cnp.enabled to true, or remove it here"}},
		{"granted, switched off", six("long-haul-cnp-icmpv6"), "{long_haul_cnp: {enabled: false}}", []string{
			"f:5:49: endpoints[0].accepts[0]: long-haul-cnp-icmpv6 has no effect, as it is not enabled; " +
				"set notifications.long_haul_cnp.enabled to true, or remove it here"}},
		{"second choice", six("fast-cnp, ppfc"), fast, []string{
			"f:5:59: endpoints[0].accepts[1]: ppfc has no effect, as it is not enabled; " +
				"set notifications.ppfc.enabled to true, or remove it here"}},
		{"ppfc, both", six("ppfc"), "{ppfc: {enabled: true}}", nil},
		{"standard-cnp, both", six("standard-cnp"), "{standard_cnp: {enabled: true}}", nil},
		{"ppfc, granted to no one", six("standard-cnp"), "{ppfc: {enabled: true}, standard_cnp: {enabled: true}}", []string{
			"f:6:33: notifications.ppfc.enabled: has no effect, as no endpoint accepts ppfc; add ppfc to accepts of the endpoints that understand it"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := warned(t, "endpoints: "+c.endpoints+"\nnotifications: "+c.notifications+"\n")
			if !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

// TestWarnsOncePerFormat: many endpoints with the same grant are one warning, which counts them.
func TestWarnsOncePerFormat(t *testing.T) {
	for entries, also := range map[int]string{1: "", 2: " here and in 1 more entry", 300: " here and in 299 more entries"} {
		var b strings.Builder
		b.WriteString("endpoints:\n")
		for i := range entries {
			fmt.Fprintf(&b, "  - {prefix: 10.%d.%d.0/24, accepts: [standard-cnp]}\n", i/256, i%256)
		}
		want := "f:6:37: endpoints[0].accepts[0]: standard-cnp has no effect" + also + ", as it is not enabled; " +
			"set notifications.standard_cnp.enabled to true, or remove it here"
		if got := warned(t, b.String()); len(got) != 1 || got[0] != want {
			t.Errorf("%d entries: got %q, want %q", entries, got, want)
		}
	}
}

// TestICMPv6Types: of the informational types those in IANA's registry are refused, the reserved one is warned about, the rest is free.
func TestICMPv6Types(t *testing.T) {
	for n := 128; n <= 255; n++ {
		cfg, err := Parse("f", fmt.Appendf(nil, "%snotifications: {long_haul_cnp: {icmpv6_type: %d}}\n", head, n))
		switch {
		case n <= 161 && (err == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf("f:5:46: notifications.long_haul_cnp.icmpv6_type: %d is assigned to ", n))):
			t.Errorf("type %d is assigned, but gives %v", n, err)
		case n > 161 && err != nil:
			t.Errorf("type %d is not assigned, but gives %v", n, err)
		case n > 161 && (len(cfg.Warnings) != 0) != (n == 255):
			t.Errorf("type %d: warnings %v", n, cfg.Warnings)
		}
	}
}

// TestStandardCNPNeedsNoAddress: its source is the receiver's address, so a gateway without one of its own may send it, over either IP version.
func TestStandardCNPNeedsNoAddress(t *testing.T) {
	text := strings.Replace(head, `, ipv4: 10.9.0.1, ipv6: "fd00:9::1"`, "", 1) +
		"endpoints: [{prefix: 10.0.0.0/8, accepts: [standard-cnp]}, {prefix: \"::/0\", accepts: [standard-cnp]}]\n" +
		"notifications: {standard_cnp: {enabled: true}}\n"
	cfg, err := Parse("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if p := cfg.Dataplane.Policy; len(cfg.Warnings) != 0 || !p.Who.Enabled[packet.StandardCNP] || p.Build.HasIPv4 || p.Build.HasIPv6 {
		t.Errorf("%+v, %v", cfg, err)
	}
}

const twoPorts = `gateway: {name: gw1, ipv4: 10.9.0.1}
ports:
  - {name: lan0, device: '0000:01:00.0', role: fabric, peer: wan0, rate: 100Gbps}
  - {name: wan0, device: '0000:01:00.1', role: wan, peer: lan0, rate: 100Gbps}
`

// TestProxyPort: a port of another protocol is refused, as the domain filter would drop that protocol.
func TestProxyPort(t *testing.T) {
	const domain = "domain: {members: [10.0.0.0/8], notification_sources: []}\n"
	parse := func(port int, more string) (*Config, error) {
		return Parse("c.yaml", fmt.Appendf(nil, "%sproxy: {port: %d}\n%s", twoPorts, port, more))
	}
	for _, port := range []int{1, 53, 67, 68, 123, 161, 319, 443, 500, 862, 1020, 1023, 2152, 3784, 3785, 4500, 4784, 4789, 4790, 4791, 6081, 6635, 7784, 8472, 51820} {
		want := fmt.Sprintf("c.yaml:5:15: proxy.port: %d is the port of ", port)
		for _, more := range []string{"", domain} {
			if _, err := parse(port, more); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%d: %v, expected %q", port, err, want)
			}
		}
	}
	for port, warnings := range map[int]int{1021: 0, 1022: 0, 1024: 0, 7471: 0, 32767: 0, 32768: 1, 50000: 1, 65535: 1} {
		if c, err := parse(port, domain); err != nil || len(c.Warnings) != warnings {
			t.Errorf("%d with domain: %v, %v; expected %d warnings", port, c, err, warnings)
		}
		if c, err := parse(port, ""); err != nil || len(c.Warnings) != 0 {
			t.Errorf("%d without domain: %v, %v; expected no warning", port, c, err)
		}
	}
}

// TestSharedArguments: two ports can't have one interface, tap or socket, whichever argument names it.
func TestSharedArguments(t *testing.T) {
	for _, c := range []struct {
		a, b   string
		shared string // "" for nothing
	}{
		{"net_virtio_user0,path=/run/a", "net_virtio_user1,path=/run/a", "/run/a"},
		{"net_virtio_user0,path=/run/a", "net_virtio_user1,path=/run/b", ""},
		{"net_virtio_user0,path=/dev/vhost-net,iface=a", "net_virtio_user1,path=/dev/vhost-net,iface=b", ""},
		{"net_pcap0,rx_iface=a,tx_iface=a", "net_pcap1,rx_iface=b,tx_iface=b", ""},
		{"net_pcap0,rx_iface=a,tx_iface=a", "net_pcap1,rx_iface=b,tx_iface=a", "a"},
		{"net_tap0,iface=t0,remote=a", "net_af_packet0,iface=a", "a"},
	} {
		text := fmt.Sprintf(`gateway: {name: gw, ipv4: 192.0.2.1}
ports:
  - {name: dc, device: "%s", role: fabric, peer: wan, rate: 10Gbps}
  - {name: wan, device: "%s", role: wan, peer: dc, rate: 10Gbps}
`, c.a, c.b)
		_, err := Parse("test.yaml", []byte(text))
		if want := fmt.Sprintf("test.yaml:4:25: ports[1].device: the interface %q is that of ports[0].device", c.shared); (err != nil) != (c.shared != "") ||
			err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s and %s: error %v, want %q", c.a, c.b, err, want)
		}
	}
}

// TestWarnsOfMTUs: the ports of a pair have the same MTU.
func TestWarnsOfMTUs(t *testing.T) {
	text := strings.Replace(head, "wan0, device: d1,", "wan0, device: d1, mtu: 1500,", 1)
	cfg, err := Parse("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if len(cfg.Warnings) != 1 || !strings.Contains(cfg.Warnings[0].String(), "ports[0].mtu: 9000 differs from 1500 of its peer wan0 (f:4:") {
		t.Errorf("%v", cfg.Warnings)
	}
}

// TestOverlap: addresses at which only one server can listen.
func TestOverlap(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"127.0.0.1:9464", "127.0.0.1:9464", true}, {"127.0.0.1:9464", "127.0.0.1:9465", false}, {"127.0.0.1:9464", "127.0.0.2:9464", false},
		{"0.0.0.0:9464", "127.0.0.1:9464", true}, {"[::1]:9464", "[::]:9464", true}, {"[::]:9464", "127.0.0.1:9464", false}, {"127.0.0.1:0", "127.0.0.1:0", false}, {"", "127.0.0.1:1", false},
	} {
		if overlap(c.a, c.b) != c.want || overlap(c.b, c.a) != c.want {
			t.Errorf("%s, %s: not %t", c.a, c.b, c.want)
		}
	}
}
