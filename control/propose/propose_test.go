package propose_test

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cnpgate/cnpgate/control/capturefile"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/control/propose"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/internal/netif"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
)

var update = flag.Bool("update", false, "write testdata anew")

func plan() propose.Plan {
	return propose.Plan{
		Command: "cnpgate init --fabric eth1 --wan eth2", Name: "dci-1", Core: 7, Socket: "/run/cnpgate/cnpgate.sock",
		Fabric: netif.Facts{Name: "eth1", MTU: 9000, Up: true, Rate: 100e9, Driver: "ice", PCI: "0000:3b:00.0", NUMA: 0, Offloads: []string{"GRO"}},
		WAN: netif.Facts{Name: "eth2", MTU: 1500, Up: true, Driver: "virtio_net", NUMA: -1, Master: "br0",
			Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.9/24")}},
	}
}

// proposed ends a proposal, and checks that its configuration is valid, observes, and sends nothing but standard CNPs.
func proposed(t *testing.T, p *propose.Proposal) (yaml, said string, c *config.Config) {
	t.Helper()
	yaml, lines, err := p.End(60*time.Second, 0)
	if err != nil {
		t.Fatal(err)
	}
	c, err = config.Parse("proposal", []byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	d := c.Dataplane.Policy
	if standard := [packet.SentNotifications]bool{packet.StandardCNP: true}; !d.Observe || d.Who.Enabled != standard || d.Domain != nil {
		t.Errorf("the proposal does more than observe standard CNPs: %+v", d)
	}
	return yaml, strings.Join(lines, "\n") + "\n", c
}

// TestProposalOfCapture: real traffic of 8 QPs. Its senders are granted what NICs obey, its DSCP gets a class, and its source QPs are found.
func TestProposalOfCapture(t *testing.T) {
	const name = "rc_write_q8_v4"
	file, err := os.Open("../../testdata/captures/" + name + ".pcap")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, err := capturefile.NewReader(name, file)
	if err != nil {
		t.Fatal(err)
	}
	p := propose.New(plan())
	for {
		f, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		var parsed packet.Parsed
		packet.Parse(f.Octets, f.Length, &parsed)
		if err == nil {
			err = p.Add(parsed.Src.Netip() == netip.MustParseAddr("198.18.0.2"), r.First, f)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	yaml, said, _ := proposed(t, p)
	for suffix, got := range map[string]string{".yaml": yaml, ".txt": said} {
		path := filepath.Join("testdata", name+suffix)
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(path); err != nil || string(want) != got {
			t.Errorf("%s (%v; write it with -update):\n%s\nwant\n%s", path, err, got, want)
		}
	}
}

// add makes a RoCEv2 packet arrive, with tags in front of its IP header.
func add(t *testing.T, p *propose.Proposal, fromFabric bool, r testkit.RoCE, tags ...uint16) {
	t.Helper()
	f := r.Frame()
	for _, tci := range tags {
		f = append(append(append([]byte{}, f[:12]...), 0x81, 0, byte(tci>>8), byte(tci)), f[12:]...)
	}
	if err := p.Add(fromFabric, time.Unix(1, 0), capturefile.Frame{Octets: f, Length: uint32(len(f))}); err != nil {
		t.Fatal(err)
	}
}

// TestNothingSeen: the proposal is valid, and says that nothing will be notified.
func TestNothingSeen(t *testing.T) {
	_, said, c := proposed(t, propose.New(plan()))
	if !strings.Contains(said, "no RoCEv2 came from the fabric") || len(c.Endpoints) != 0 {
		t.Errorf("endpoints %v, said\n%s", c.Endpoints, said)
	}
}

// TestTagsAndTraffic: VLANs, priorities and packets that are not ECN-capable are reported. DSCP 0 gets no class: other traffic has it, too.
func TestTagsAndTraffic(t *testing.T) {
	p := propose.New(plan())
	add(t, p, true, testkit.RoCE{Src: "10.1.0.1", Dst: "10.9.0.9", DestQP: 5, Size: 1000}, 3<<13|20)
	add(t, p, false, testkit.RoCE{Src: "10.9.0.9", Dst: "10.1.0.1", DestQP: 6, Size: 1000}, 20, 3<<13|7)
	yaml, said, c := proposed(t, p)
	for _, want := range []string{"DSCPs 0; VLAN priorities 3; VLANs 20\n", "VLANs 7/20\n", "1 of 1 data packets from the fabric are not ECN-capable",
		"eth2 belongs to br0", "eth2 has the address 192.0.2.9/24", "eth2 doesn't tell its rate"} {
		if !strings.Contains(said, want) {
			t.Errorf("it doesn't say %q but\n%s", want, said)
		}
	}
	if c.Ports[1].Classes != 1 || !strings.Contains(yaml, `{prefix: "10.1.0.1/32", accepts: [standard-cnp]} # hosts: 1, packets: 1`) {
		t.Errorf("expected one class, and the grant of 10.1.0.1 alone:\n%s", yaml)
	}
}

// TestGrants: many hosts become few prefixes, unless such a prefix held a host of the other side.
func TestGrants(t *testing.T) {
	for _, c := range []struct {
		far  string
		want []string
	}{
		{"10.9.0.9", []string{"10.1.0.0/24", "10.1.1.0/24", "fd00:1::/64"}},
		{"10.1.1.200", nil}, // 40 hosts
	} {
		p := propose.New(plan())
		for i := range 38 {
			add(t, p, true, testkit.RoCE{Src: fmt.Sprintf("10.1.%d.%d", i%2, i+1), Dst: c.far, DestQP: 5, Size: 200})
		}
		for i := range 2 {
			add(t, p, true, testkit.RoCE{Src: fmt.Sprintf("fd00:1::%d", i+1), Dst: "fd00:9::9", DestQP: 5, Size: 200})
		}
		add(t, p, false, testkit.RoCE{Src: c.far, Dst: "10.1.0.1", DestQP: 6, Size: 200})
		_, _, cfg := proposed(t, p)
		var got []string
		for _, e := range cfg.Endpoints {
			got = append(got, e.Prefix.String())
			if e.Prefix.Contains(netip.MustParseAddr(c.far)) {
				t.Errorf("%v grants %s, a host behind the WAN", e.Prefix, c.far)
			}
		}
		if c.want == nil && len(got) != 40 || c.want != nil && fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("with %s behind the WAN the grants are %v, want %v", c.far, got, c.want)
		}
	}
}

// TestOddNames: whatever an interface, a host or a socket is called, the file is valid.
func TestOddNames(t *testing.T) {
	for _, name := range []string{`a"b\`, "ё", "#x", "%s"} {
		odd := plan()
		odd.Name, odd.Fabric.Name, odd.Command = name, name, "cnpgate init --fabric "+name
		_, _, c := proposed(t, propose.New(odd))
		if want := "net_af_packet0,iface=" + name; c.Ports[0].Device != want || c.Name != name {
			t.Errorf("the device is %q and the name %q, want %q and %q", c.Ports[0].Device, c.Name, want, name)
		}
	}
}

// TestTap: the proposal for mirror ports is valid, and transmits nothing.
func TestTap(t *testing.T) {
	mirrored := plan()
	mirrored.Tap = true
	p := propose.New(mirrored)
	add(t, p, true, testkit.RoCE{Src: "10.1.0.1", Dst: "10.9.0.9", DestQP: 5, Size: 1000})
	_, _, c := proposed(t, p)
	if !c.Ports[0].Tap || !c.Ports[1].Tap || c.Ports[0].Role != dataplane.Fabric || c.Ports[1].Role != dataplane.WAN || len(c.Endpoints) != 1 {
		t.Errorf("the ports are %+v, the endpoints %v; expected mirrors of both sides, and one sender", c.Ports, c.Endpoints)
	}
}
