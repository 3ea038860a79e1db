//go:build !nodpdk

package dpdk

import (
	"strings"
	"testing"
)

func TestParseDevice(t *testing.T) {
	for _, c := range []struct {
		device, devargs, fault string
	}{
		{device: "0000:3b:00.0", devargs: "0000:3b:00.0"},
		{device: "3B:00.1,dv_flow_en=1", devargs: "0000:3b:00.1,dv_flow_en=1"},
		{device: "net_ring0", devargs: "net_ring0"},
		{device: "net_virtio_user0,path=/tmp/s,queues=2", devargs: "net_virtio_user0,path=/tmp/s,queues=2"},
		{device: "net_af_packet0,iface=eth0", devargs: "net_af_packet0,iface=eth0"},
		{device: "eth_af_packet0,iface=eth0,framesz=4096,framecnt=128", devargs: "eth_af_packet0,iface=eth0,framesz=4096,framecnt=128"},
		{device: "net_af_packet0", fault: "needs the interface"},
		{device: "net_af_packet0,iface=eth0,snaplen=2", fault: "no argument \"snaplen\""},
		{device: "ens1f0", fault: "expected a PCI address (0000:3b:00.0) or a virtual device with its arguments (net_af_packet0,iface=ens1f0)"},
		{device: "", fault: "expected a PCI address"},
		{device: "3b:00.9", fault: "expected a PCI address"},
		{device: "net_", fault: "expected a PCI address"},
	} {
		d, err := parseDevice(c.device)
		switch {
		case c.fault != "":
			if err == nil || !strings.Contains(err.Error(), c.fault) {
				t.Errorf("%q: error %v, expected one with %q", c.device, err, c.fault)
			}
		case err != nil || d.devargs() != c.devargs:
			t.Errorf("%q became %q (%v), expected %q", c.device, d.devargs(), err, c.devargs)
		}
	}
}

func FuzzParseDevice(f *testing.F) {
	for _, s := range []string{"0000:3b:00.0,x=1", "net_af_packet0,iface=a,framesz=1", "net_ring_x-1", ",", "net_af_packet0,,=,iface=x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := parseDevice(s)
		if err == nil && d.name == "" {
			t.Errorf("%q has no name", s)
		}
		if err == nil && d.is("af_packet") != (d.iface != "") {
			t.Errorf("%q has interface %q", s, d.iface)
		}
	})
}

// What can't work is refused with the port's name and what was wrong, and leaves nothing behind.
func TestOpenErrors(t *testing.T) {
	many := Config{MainCore: -1, Cores: make([]int, 20), Ports: []PortConfig{{Name: "wan", Device: "net_ring7"}}}
	for i := range many.Cores {
		many.Cores[i] = -1
	}
	pcap := oneWorker("net_pcap0,rx_pcap=/nonexistent.pcap")
	large := oneWorker("net_null0")
	large.Frames = 1 << 20
	huge := oneWorker("net_null0")
	huge.DataRoom = 1 << 17
	core := oneWorker("net_null0")
	core.Cores = []int{1 << 16}
	twice := oneWorker("net_null0")
	twice.Cores = []int{0, -1, 0}
	wide := oneWorker("net_null0")
	wide.Burst = 65
	for _, c := range []struct {
		name   string
		cfg    Config
		faults []string
	}{
		{"no ports", oneWorker(), []string{"1 workers and 0 ports"}},
		{"burst", wide, []string{"burst is 65, expected 1 to 64"}},
		{"missing core", core, []string{"core 65536", "it may use"}},
		{"two workers on a core", twice, []string{"core 0 has two workers"}},
		{"missing interface", oneWorker("net_af_packet0,iface=nope0"), []string{"port port0", "interface nope0", "ip link"}},
		{"long interface", oneWorker("net_af_packet0,iface=a123456789012345"), []string{"a name of 1 to 15"}},
		{"PCI device", oneWorker("0000:ff:1f.7"), []string{"port port0", "PCI device 0000:ff:1f.7", "none at that address"}},
		{"same device twice", oneWorker("net_null0", "net_null0"), []string{"port port1", "port port0 uses net_null0 already"}},
		{"driver that is not there", oneWorker("net_nosuch0"), []string{"port port0", "can't be opened", "no driver for net_nosuch0 is installed"}},
		{"missing capture", pcap, []string{"port port0", "can't be opened", "nonexistent.pcap"}},
		{"too few queues", many, []string{"port wan", "16 pairs of queues for 20 workers"}},
		{"too little memory", large, []string{"a pool of ", "needs 26", "MiB", "does not have"}},
		{"room", huge, []string{"frames of 131072 bytes"}},
		{"second fails", oneWorker("net_null0", "net_nosuch0"), []string{"port port1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := eal.Open(c.cfg)
			if err == nil {
				d.Close()
				t.Fatal("it opened")
			}
			for _, fault := range c.faults {
				if !strings.Contains(err.Error(), fault) {
					t.Errorf("error %q does not say %q", err, fault)
				}
			}
		})
	}
	open(t, oneWorker("net_null0")) // what failed half-way gave the name back
}

// TestRoom: buffers are as large as is asked for, and as the device and its frames need, whichever is most.
func TestRoom(t *testing.T) {
	for _, c := range []struct{ asked, least, mtu, want int }{
		{0, 0, 0, 2048}, {1000, 0, 0, 2048}, {9000, 0, 0, 9000}, {0, 0, 9000, 9216}, {0, 0, 4200, 5120}, {0, 0, 4096, 5120}, {0, 0, 1500, 2048}, {100, 128, 0, 128}, {200, 128, 0, 200}, {0, 128, 1500, 2048},
	} {
		cfg := oneWorker("net_null0")
		cfg.DataRoom, cfg.LeastRoom, cfg.Ports[0].MTU = c.asked, c.least, c.mtu
		if p, err := newPlan(cfg); err != nil || p.room != c.want {
			t.Errorf("%+v: %+v, %v", c, p, err)
		}
	}
}
