//go:build live && !nodpdk && long

package guest

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/internal/testkit/ontime"
)

const interfacesConfig = `
gateway: {name: guest, ipv4: 192.0.2.1}
dpdk: {hugepages: false, workers: [0, 1], idle: backoff}
ports:
  - {name: fabric, device: "net_af_packet0,iface=eth0", role: fabric, peer: wan, rate: 10Gbps, mtu: 1500, queue_capacity: 2MB}
  - {name: wan, device: "net_af_packet1,iface=eth1", role: wan, peer: fabric, rate: 10Gbps, mtu: 1500, queue_capacity: 2MB}
flows: {capacity: 1Ki}
`

// TestInterfaceMadeAgain runs two workers on kernel interfaces of Debian 12's kernel, where sockets of an interface that is down can't share its
// frames (PACKET_FANOUT). An interface goes with its driver and comes back switched off, and is switched on later: frames pass again, both ways.
func TestInterfaceMadeAgain(t *testing.T) {
	if ontime.Again(t) {
		return
	}
	dir, err := os.MkdirTemp("", "cnpgate-guest") // short: a socket's path has 107 characters
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	g, err := Boot(Config{
		Folder: dir, CPUs: 3, MemoryMiB: 1024, NICs: []string{"virtio-net-pci", "virtio-net-pci"}, Files: gatewayFiles(t, buildGateway(t)),
		Modules: []string{"virtio_pci", "virtio_net"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	for i := range g.NICs {
		run(t, g, fmt.Sprintf("echo 1 > /proc/sys/net/ipv6/conf/eth%d/disable_ipv6; ip link set eth%d mtu 1500 up", i, i))
	}
	w := startWith(t, g, interfacesConfig)
	frames := mixed(1400, 1)
	w.passes("at first", frames)
	device := run(t, g, "basename $(readlink -f /sys/class/net/eth1/device)")
	for round := 1; round <= 2; round++ {
		// The interface is there for a while before it is switched on, as it is where an operator or a network manager does it.
		run(t, g, "echo "+device+" > /sys/bus/virtio/drivers/virtio_net/unbind")
		w.until(fmt.Sprintf("[ $(grep -c 'Interface eth1 is gone' /tmp/log) = %d ] && [ $(grep -c 'link is down' /tmp/log) = %d ]", round, round))
		run(t, g, "echo "+device+" > /sys/bus/virtio/drivers/virtio_net/bind && echo 1 > /proc/sys/net/ipv6/conf/eth1/disable_ipv6")
		w.until(fmt.Sprintf("[ $(grep -c 'Interface eth1 is back' /tmp/log) = %d ]", round))
		run(t, g, "ip link set eth1 up")
		w.until(fmt.Sprintf("[ $(grep -c 'link is up' /tmp/log) = %d ]", 2+round))
		w.passes(fmt.Sprint("made again ", round), frames)
	}
	log := run(t, g, "cat /tmp/log")
	if c := w.stop(); c.Counters.Forwarded != uint64(3*2*len(frames)) {
		t.Errorf("%d frames sent, %+v\n%s", 3*2*len(frames), c.Counters, log)
	}
	for line := range strings.Lines(log) {
		if !strings.HasPrefix(line, "{") {
			t.Errorf("a line of the log is no JSON: %s", line)
		}
	}
	t.Log(log)
}
