//go:build !nodpdk

package dpdk

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"testing"
)

// TestResources: what a device string claims for its port alone.
func TestResources(t *testing.T) {
	for device, want := range map[string][]resource{
		"0000:3b:00.0,x=1":                                {{pciResource, "0000:3b:00.0"}},
		"net_af_packet0,iface=eth0":                       {{interfaceResource, "eth0"}},
		"eth_af_packet0,iface=eth0,framesz=4096":          {{interfaceResource, "eth0"}},
		"net_af_xdp0,iface=eth0,start_queue=0":            {{interfaceResource, "eth0"}},
		"net_pcap0,iface=eth0":                            {{interfaceResource, "eth0"}},
		"net_pcap0,rx_iface=eth0,tx_iface=eth0":           {{interfaceResource, "eth0"}},
		"net_pcap0,rx_iface_in=eth0,tx_iface=eth1":        {{interfaceResource, "eth0"}, {interfaceResource, "eth1"}},
		"net_pcap0,rx_pcap=a,tx_pcap=b":                   nil,
		"net_tap0,iface=tap7,remote=eth0":                 {{tapResource, "tap7"}, {interfaceResource, "eth0"}},
		"net_vhost0,iface=/tmp/s,queues=1":                {{serverResource, "/tmp/s"}},
		"net_virtio_user0,path=/tmp/s":                    {{clientResource, "/tmp/s"}},
		"net_virtio_user0,path=/dev/vhost-net,iface=tap0": nil,
		"net_null0":                nil,
		"net_ring_fabric":          nil,
		"net_tapestry0,iface=eth0": nil,
	} {
		d, err := parseDevice(device)
		if got := d.resources(); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s claims %v (%v), expected %v", device, got, err, want)
		}
	}
}

// TestMemoryOfDrivers: what check prints is what the drivers will want: e1000e a power of two of bytes a buffer.
func TestMemoryOfDrivers(t *testing.T) {
	const dev = "sys/bus/pci/devices/0000:3b:00.0/"
	for _, c := range []struct {
		vendor, device string
		mtu, room      int
	}{
		{"0x8086", "0x10d3", 9000, 16384}, {"0x8086", "0x10d3", 1500, 2048}, {"0x8086", "0x10d3", 4200, 8192},
		{"0x8086", "0x1572", 9000, 9216}, {"0x15b3", "0x10d3", 9000, 9216}, {"", "", 9000, 9216},
	} {
		files := map[string]string{}
		if c.vendor != "" {
			files[dev+"vendor"], files[dev+"device"] = c.vendor+"\n", c.device+"\n"
		}
		cfg := oneWorker("3b:00.0")
		cfg.Frames, cfg.Ports[0].MTU = 100_000, c.mtu
		got, err := memoryOf(root(t, files), cfg)
		p := startPlan(cfg)
		p.devices, p.frames, p.room = make([]device, 1), cfg.Frames+rxDescriptors+txDescriptors, c.room
		p.addWorkers()
		if want := p.memory(); err != nil || got != want {
			t.Errorf("%s:%s at MTU %d: %d bytes (%v), expected %d", c.vendor, c.device, c.mtu, got, err, want)
		}
	}
}

// TestRaisedBuffers: a driver that wants more than was planned is refused with the pages to reserve, not with what the pool lacks.
func TestRaisedBuffers(t *testing.T) {
	cfg := oneWorker("net_null0")
	cfg.Hugepages, cfg.Frames = true, 1<<40
	p := startPlan(cfg)
	if p.raise(1024); p.checkRaised() != nil {
		t.Error("a smaller buffer needs more")
	}
	p.raise(16384)
	says(t, p.checkRaised(), "a device wants buffers of 16384 bytes: dpdk: ")
	says(t, p.checkRaised(), "pages more")
}

// TestEMDevices compares the list with what DPDK's driver says it takes.
func TestEMDevices(t *testing.T) {
	library, err := os.ReadFile("/usr/lib/x86_64-linux-gnu/librte_net_e1000.so.23")
	if err != nil {
		t.Fatal("the driver isn't installed, which scripts/setup installs: ", err)
	}
	var want []uint64
	for _, m := range regexp.MustCompile(`PMD_INFO_STRING= (\{.*?\]\]\})`).FindAllSubmatch(library, -1) {
		var info struct {
			Name string     `json:"name"`
			IDs  [][]uint64 `json:"pci_ids"`
		}
		if err := json.Unmarshal(m[1], &info); err != nil {
			t.Fatal(err)
		}
		if info.Name == em {
			for _, id := range info.IDs {
				want = append(want, id[1])
			}
		}
	}
	slices.Sort(want)
	if !slices.Equal(want, emDevices) {
		t.Errorf("the driver takes %s", fmt.Sprintf("%#04x", want))
	}
}
