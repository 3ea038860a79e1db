//go:build !nodpdk

package dpdk

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheck: what can't start on this host is found without starting anything, all of it at once, each with its part.
func TestCheck(t *testing.T) {
	null := func(change func(*Config)) Config {
		c := oneWorker("net_null0", "net_null1")
		change(&c)
		return c
	}
	for _, c := range []struct {
		name  string
		cfg   Config
		part  Part
		index int
		want  string // "": no fault
	}{
		{"ready", null(func(*Config) {}), 0, 0, ""},
		{"missing core", null(func(c *Config) { c.Cores = []int{-1, 99_999} }), Workers, 1, "core 99999 is not there"},
		{"missing interface", oneWorker("net_null0", "net_af_packet0,iface=nope0"), Ports, 1, "there is none of that name"},
		{"no arguments", oneWorker("net_af_packet0"), Ports, 0, "needs the interface"},
		{"missing PCI device", oneWorker("net_null0", "0000:ff:1f.7"), Ports, 1, "there is none at that address"},
		{"no such driver", oneWorker("net_nosuch0"), Ports, 0, "no driver for net_nosuch0 is installed"},
		{"no such argument", oneWorker("net_null0,colour=red"), Ports, 0, `no argument "colour"`},
		{"an argument", oneWorker("eth_null0,size=64,copy=1"), 0, 0, ""},
		{"no socket", oneWorker("net_virtio_user0,path=/no/such/socket"), Ports, 0, "/no/such/socket: no such file"},
		{"serves the socket", oneWorker("net_virtio_user0,path=/no/such/socket,server=1"), 0, 0, ""},
		{"no capture", oneWorker("net_pcap0,rx_pcap=/no/such.pcap"), Ports, 0, "/no/such.pcap: no such file"},
		{"not an option", null(func(c *Config) { c.EALArgs = []string{"--no-such"} }), EALArgs, 0, `"--no-such" is not an option of EAL`},
		{"not a letter", null(func(c *Config) { c.EALArgs = []string{"-x"} }), EALArgs, 0, `"-x" is not an option of EAL`},
		{"options", null(func(c *Config) { c.EALArgs = []string{"--log-level=8", "--legacy", "-n", "4"} }), 0, 0, ""},
		{"ends the process", null(func(c *Config) { c.EALArgs = []string{"--version"} }), EALArgs, 0, "is not for a service"},
		{"memory", null(func(c *Config) { c.Frames = 1 << 40 }), MemorySize, 0, "of memory are needed"},
		{"hugepages", null(func(c *Config) { c.Frames, c.Hugepages = 1<<40, true }), MemorySize, 0, "of hugepages are needed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			faults, unseen := Check(c.cfg)
			if len(unseen) > 0 {
				t.Errorf("unseen: %v", unseen)
			}
			switch {
			case c.want == "" && len(faults) > 0:
				t.Errorf("faults %v, expected none", faults)
			case c.want != "" && (len(faults) != 1 || faults[0].Part != c.part || faults[0].Index != c.index || !strings.Contains(faults[0].Err.Error(), c.want)):
				t.Errorf("faults %+v, expected %q in part %d, %d", faults, c.want, c.part, c.index)
			}
		})
	}
	all := oneWorker("net_af_packet0", "net_nosuch0")
	all.Cores, all.EALArgs = []int{99_999}, []string{"--no-such"}
	if faults, _ := Check(all); len(faults) != 4 {
		t.Errorf("%v; expected four faults", faults)
	}
}

// TestCheckBesideGateway: what a running gateway uses is no fault, and neither is the memory that it has; a second gateway is refused with the process ID of the
// first, also for a PCI device that can't be looked at.
func TestCheckBesideGateway(t *testing.T) {
	const address = "0000:fe:1f.6"
	l, err := lockResource(resource{pciResource, address})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.release() })
	cfg := oneWorker("net_null0", address)
	cfg.Frames = 1 << 40
	want := fmt.Sprintf("PCI device %s is in use by the gateway with process ID %d", address, os.Getpid())
	faults, unseen := Check(cfg)
	if len(faults) != 0 || len(unseen) != 2 || !strings.Contains(unseen[0].Error(), want) || !strings.Contains(unseen[1].Error(), "memory") {
		t.Errorf("faults %v, unseen %v; expected only %q to be unseen, and the memory", faults, unseen, want)
	}
	if _, err := eal.Open(oneWorker("net_null0", address)); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("a second gateway: %v, expected %q", err, want)
	}
	if err := l.release(); err != nil {
		t.Fatal(err)
	}
	if faults, _ := Check(oneWorker(address)); len(faults) != 1 || !strings.Contains(faults[0].Err.Error(), "none at that address") {
		t.Errorf("afterwards: %v", faults)
	}
}

// TestLockHolder: the kernel's list of locks names the holder of a file; a lock of another file or kind doesn't count.
func TestLockHolder(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.lock")
	if pid := lockHolder(path, "/proc/locks"); pid != 0 {
		t.Errorf("no file: %d", pid)
	}
	l, err := takeLock(path, "x")
	if err != nil {
		t.Fatal(err)
	}
	if pid := lockHolder(path, "/proc/locks"); pid != os.Getpid() {
		t.Errorf("locked: %d, expected %d", pid, os.Getpid())
	}
	other := filepath.Join(dir, "locks")
	if err := os.WriteFile(other, []byte("1: POSIX  ADVISORY  WRITE 7 00:1a:1 0 EOF\n2: FLOCK  ADVISORY  WRITE 8 00:00:0 0 EOF\n2: -> FLOCK\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if pid := lockHolder(path, other); pid != 0 {
		t.Errorf("other locks: %d", pid)
	}
	if err := l.release(); err != nil {
		t.Fatal(err)
	}
}

// TestBuffersOfAFXDP: a buffer of net_af_xdp fits a page, so MTUs above 3034 are refused, also if another port needs the larger buffers.
func TestBuffersOfAFXDP(t *testing.T) {
	if mostMTU(xdpRoom) != 3034 || bufferFor(3034) > xdpRoom || bufferFor(3035) <= xdpRoom {
		t.Errorf("the highest MTU is %d; MTU 3034 needs %d bytes, 3035 %d", mostMTU(xdpRoom), bufferFor(3034), bufferFor(3035))
	}
	for mtu, want := range map[int]string{3034: "", 3035: "set an mtu of at most 3034", 9000: "set an mtu of at most 3034"} {
		cfg := oneWorker("net_af_xdp0", "net_null0")
		cfg.Ports[1].MTU = mtu
		faults, _ := Check(cfg)
		text := faults.Error()
		if want == "" && text != "" || !strings.Contains(text, want) {
			t.Errorf("MTU %d: %q, expected %q", mtu, text, want)
		}
	}
}
