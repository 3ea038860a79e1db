package config

import (
	"fmt"
	"strings"
	"testing"
)

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
