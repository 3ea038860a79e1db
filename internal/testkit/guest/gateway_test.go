//go:build live && !nodpdk && long

package guest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cnpgate/cnpgate/cnpdec"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
)

// drivers are DPDK's plugins that the guest needs.
var drivers = []string{"bus_pci", "bus_vdev", "mempool_ring", "net_virtio", "net_e1000", "net_vmxnet3"}

// gatewayFiles are the gateway and all it needs to run in a guest.
func gatewayFiles(t *testing.T, binary string) []File {
	t.Helper()
	names := []string{binary + ":/usr/bin/cnpgate"}
	for _, d := range drivers {
		found, _ := filepath.Glob("/usr/lib/*/dpdk/pmds-23.0/librte_" + d + ".so.23.0")
		if len(found) != 1 {
			t.Fatalf("DPDK's driver %s is at %q; run scripts/setup --runtime", d, found)
		}
		names = append(names, found[0])
	}
	files, err := Programs(names...)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// boot starts a guest with two NICs bound to vfio-pci, as deploy/README.md says for bare metal.
func boot(t *testing.T, binary, model string) *Guest {
	t.Helper()
	dir, err := os.MkdirTemp("", "cnpgate-guest") // short: a socket's path has 107 characters
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	g, err := Boot(Config{
		Folder: dir, CPUs: 3, MemoryMiB: 1024, NICs: []string{model, model}, Files: gatewayFiles(t, binary), Modules: []string{"vfio-pci", "vfio_iommu_type1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	run(t, g, "echo 200 > /proc/sys/vm/nr_hugepages")
	for _, n := range g.NICs {
		device := "/sys/bus/pci/devices/" + n.Address()
		run(t, g, fmt.Sprintf("echo vfio-pci > %s/driver_override && echo %s > /sys/bus/pci/drivers_probe && ls -d %s/driver/%s", device, n.Address(), device, n.Address()))
	}
	return g
}

func run(t *testing.T, g *Guest, command string) string {
	t.Helper()
	out, err := g.Run(command)
	if err != nil {
		t.Fatalf("%v\nconsole:\n%s\nlog:\n%s", err, g.Console(), tail(g))
	}
	return strings.TrimSpace(out)
}

func tail(g *Guest) string {
	out, _ := g.Run("head -n 25 /tmp/log; echo ...; tail -n 15 /tmp/log")
	return out
}

// gateway is one run of the gateway in a guest, between the guest's two NICs.
type gateway struct {
	*Guest
	t *testing.T
}

const gatewayConfig = `
gateway: {name: guest, ipv4: 192.0.2.1, ipv6: "2001:db8::1"}
dpdk: {hugepages: true, in_memory: true, workers: %s, idle: backoff}
ports:
  - {name: fabric, device: "%s", role: fabric, peer: wan, rate: 10Gbps, mtu: %d, queue_capacity: 2MB}
  - {name: wan, device: "%s", role: wan, peer: fabric, rate: %s, mtu: %d, queue_capacity: 2MB}
flows: {capacity: 1Ki}
endpoints: [{prefix: "fd00:18::/32", accepts: [fast-cnp]}]
notifications: {fast_cnp: {enabled: true}, limits: {per_flow: 0s}}
`

// start starts the gateway and waits until both links are up.
func start(t *testing.T, g *Guest, workers, wanRate string, mtu int) *gateway {
	t.Helper()
	return startWith(t, g, fmt.Sprintf(gatewayConfig, workers, g.NICs[0].Address(), mtu, g.NICs[1].Address(), wanRate, mtu))
}

// startWith starts the gateway with a configuration and waits until both links are up.
func startWith(t *testing.T, g *Guest, config string) *gateway {
	t.Helper()
	for i, line := range strings.Split(strings.TrimSpace(config), "\n") {
		redirect := ">>"
		if i == 0 {
			redirect = ">"
		}
		run(t, g, fmt.Sprintf("echo '%s' %s /tmp/c.yaml", line, redirect))
	}
	run(t, g, "rm -f /tmp/r.json /tmp/status; (cnpgate run --config /tmp/c.yaml --report /tmp/r.json 2>/tmp/log; echo $? >/tmp/status) & true")
	w := &gateway{g, t}
	w.until("[ -e /tmp/status ] || [ $(grep -c 'link is up' /tmp/log) = 2 ]")
	if out := run(t, g, "cat /tmp/status 2>/dev/null || true"); out != "" {
		t.Fatalf("the gateway ended with status %s:\n%s", out, tail(g))
	}
	return w
}

func (w *gateway) until(condition string) {
	w.t.Helper()
	if err := w.Until(condition); err != nil {
		w.t.Fatalf("%v\nlog:\n%s", err, tail(w.Guest))
	}
}

// counters are of a report: sums of all ports.
type counters struct {
	Counters struct {
		Received  uint64            `json:"received_packets_total"`
		Forwarded uint64            `json:"forwarded_packets_total"`
		Consumed  map[string]uint64 `json:"consumed_packets_total"`
		Dropped   map[string]uint64 `json:"dropped_packets_total"`
		Sent      map[string]uint64 `json:"notifications_sent_total"`
		Marked    uint64            `json:"queue_ecn_marked_packets_total"`
	} `json:"counters"`
}

// stop ends the gateway in order and reads its report.
func (w *gateway) stop() (c counters) {
	w.t.Helper()
	run(w.t, w.Guest, "kill -TERM $(pidof cnpgate)")
	w.until("[ -e /tmp/status ]")
	if status := run(w.t, w.Guest, "cat /tmp/status"); status != "0" {
		w.t.Errorf("the gateway ended with status %s:\n%s", status, tail(w.Guest))
	}
	if err := json.Unmarshal([]byte(run(w.t, w.Guest, "cat /tmp/r.json")), &c); err != nil {
		w.t.Fatalf("the report: %v", err)
	}
	return c
}

// window is how many frames are on their way at most: less than the smallest ring of an emulated NIC, which drops silently when full.
const window = 48

// carry sends frames into one NIC and returns what comes out of the other, until all have, or nothing comes any more.
func (w *gateway) carry(from, to int, frames [][]byte) [][]byte {
	w.t.Helper()
	var got [][]byte
	for sent := 0; len(got) < len(frames); {
		for ; sent < len(frames) && sent-len(got) < window; sent++ {
			if err := w.NICs[from].Send(frames[sent]); err != nil {
				w.t.Fatal(err)
			}
		}
		f, err := w.NICs[to].Receive(quiet)
		if err != nil {
			w.t.Fatal(err)
		}
		if f == nil {
			return got
		}
		got = append(got, f)
	}
	return got
}

// quiet is the time without a frame after which frames count as lost.
const quiet = 10 * time.Second

// passes checks that every frame leaves unchanged; in order, if one worker forwards.
func (w *gateway) passes(what string, frames [][]byte) {
	w.t.Helper()
	for from := range 2 {
		got := w.carry(from, 1-from, frames)
		if len(got) != len(frames) {
			w.t.Errorf("%s, from NIC %d: %d frames of %d came out", what, from, len(got), len(frames))
			return
		}
		missing := map[string]int{}
		for _, f := range frames {
			missing[string(f)]++
		}
		for i, f := range got {
			if missing[string(f)]--; missing[string(f)] < 0 {
				w.t.Errorf("%s, from NIC %d: frame %d came out as %d bytes that nobody sent: % x ...", what, from, i, len(f), f[:min(len(f), 64)])
				return
			}
		}
	}
}

// mixed are frames of all kinds and lengths up to an MTU: RoCEv2 and others, IPv4 and IPv6, without tags, with one and with two.
func mixed(mtu, tags int) (frames [][]byte) {
	random := rand.New(rand.NewPCG(uint64(mtu), uint64(tags)))
	add := func(f []byte) { frames = append(frames, f) }
	for i := range 60 {
		r := testkit.RoCE{Src: "198.18.0.1", Dst: "198.19.0.1", DestQP: uint32(100 + i%7), PSN: uint32(i), SrcPort: uint16(0xc000 + i%11)}
		if i%2 == 1 {
			r.Src, r.Dst = "fd00:19::1", "fd00:18::1" // nobody notifies these
		}
		if i%3 <= tags && i%3 > 0 {
			r.Tags = []uint32{0x88a8_0064, 0x8100_0065}[2-i%3:]
		}
		head := 14 + 4*len(r.Tags)
		r.Size = head + 100 + random.IntN(mtu-99)
		if i%5 == 0 {
			r.Size = head + mtu
		}
		add(r.Frame())
	}
	for i := range 40 {
		f := make([]byte, 60+random.IntN(mtu+14-59))
		for j := range f {
			f[j] = byte(random.Uint32())
		}
		copy(f, []byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 1, byte(i), 0x88, 0xb5})
		add(f)
	}
	return frames
}

// testDevice is all that a kind of device has to show.
func testDevice(t *testing.T, binary, model string, mtus []int, workers string) {
	g := boot(t, binary, model)
	for _, mtu := range mtus {
		frames := mixed(mtu, 2)
		w := start(t, g, workers, "10Gbps", mtu)
		w.passes(fmt.Sprint("MTU ", mtu), frames)
		t.Log(run(t, g, "grep 'device MTU' /tmp/log || true"))
		testSecond(t, g)
		c := w.stop()
		if n := uint64(2 * len(frames)); c.Counters.Received != n || c.Counters.Forwarded != n {
			t.Errorf("MTU %d: %d frames sent, %d received, %d forwarded, dropped %v\n%s", mtu, n, c.Counters.Received, c.Counters.Forwarded, c.Counters.Dropped, tail(g))
		}
	}
	testClock(t, g, mtus[0])
	testFlaps(t, g, mtus[0])
	testCongestion(t, g)
	// QEMU's vmxnet3 reads address 0 while it is being reset, which the IOMMU refuses.
	if bad := run(t, g, "dmesg | grep -E 'fault addr|kernel BUG|Oops:|soft lockup' | grep -v 'fault addr 0x0 ' | head -5"); bad != "" {
		t.Errorf("the guest's kernel says: %s", bad)
	}
}

// testSecond starts a second gateway on the devices of the running one, which is named; check doesn't mind it.
func testSecond(t *testing.T, g *Guest) {
	t.Helper()
	first := strings.TrimSpace(run(t, g, "pidof cnpgate"))
	want := "PCI device " + g.NICs[0].Address() + " is in use by the gateway with process ID " + first
	for command, status := range map[string]string{"run": "1", "check": "0"} {
		out := run(t, g, "cnpgate "+command+" --config /tmp/c.yaml >/dev/null 2>/tmp/second; echo status $?; cat /tmp/second")
		if !strings.HasPrefix(out, "status "+status+"\n") || !strings.Contains(out, want) {
			t.Errorf("%s beside a gateway: %s; expected status %s and %q", command, out, status, want)
		}
	}
}

// testClock sets the guest's clock while frames pass: by hours, as whoever corrects a wrong one, and by a second, as for a leap second.
func testClock(t *testing.T, g *Guest, mtu int) {
	w := start(t, g, "[1]", "10Gbps", mtu)
	frames := mixed(mtu, 1)
	steps := []int{3600, -7200, 1, -1}
	for _, seconds := range steps {
		run(t, g, fmt.Sprintf("before=$(date +%%s); (date -s @$((before + %d)) >/dev/null) & true", seconds))
		w.passes(fmt.Sprintf("while the clock is set by %d s", seconds), frames)
	}
	c := w.stop()
	if n := uint64(len(steps) * 2 * len(frames)); c.Counters.Received != n || c.Counters.Forwarded != n {
		t.Errorf("clock: %d frames sent, %d received, %d forwarded, dropped %v\n%s", n, c.Counters.Received, c.Counters.Forwarded, c.Counters.Dropped, tail(g))
	}
}

// testFlaps pulls the cables of both NICs in turn; frames pass whenever both are in, and those that were sent while one was out never come.
func testFlaps(t *testing.T, g *Guest, mtu int) {
	w := start(t, g, "[1]", "10Gbps", mtu)
	frames := mixed(mtu, 1)
	up := func() string { return run(t, g, "grep -c 'link is up' /tmp/log") }
	for round := range 4 {
		nic := g.NICs[round%2]
		before := up()
		for _, plugged := range []bool{false, true} {
			if err := nic.SetLink(plugged); err != nil {
				t.Fatal(err)
			}
			if !plugged {
				w.until(fmt.Sprintf("[ $(grep -c 'link is down' /tmp/log) -gt %d ]", round))
			}
		}
		w.until("[ $(grep -c 'link is up' /tmp/log) -gt " + before + " ]")
		w.until(`last() { grep 'link is' /tmp/log | tail -n 1 | grep -q 'link is up'; }; last && sleep 1 && last`)
		w.passes(fmt.Sprint("after flap ", round), frames)
	}
	c := w.stop()
	if n := uint64(4 * 2 * len(frames)); c.Counters.Forwarded != n {
		t.Errorf("flaps: %d frames sent, %d forwarded, dropped %v\n%s", n, c.Counters.Forwarded, c.Counters.Dropped, tail(g))
	}
}

// testCongestion offers more than the WAN port carries: the sender gets Fast CNPs that it accepts, as many as the report says.
func testCongestion(t *testing.T, g *Guest) {
	w := start(t, g, "[1]", "20Mbps", 1500)
	sender := testkit.RoCE{Src: "fd00:18::1", Dst: "fd00:19::1", DestQP: 77, ECN: packet.ECT0, SrcPort: 0xc123, Size: 1000}
	const frames = 300
	for i := range uint32(frames) {
		sender.PSN = i
		if err := g.NICs[0].Send(sender.Frame()); err != nil {
			t.Fatal(err)
		}
	}
	arrived, marked := 0, 0
	for {
		f, err := g.NICs[1].Receive(3 * time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if f == nil {
			break
		}
		arrived++
		if f[15]>>4&3 == packet.CE {
			marked++
		}
	}
	receiver := cnpdec.Receiver{Code: packet.DefaultCodePoints, ICRC: cnpdec.ICRCEither}
	notified := uint64(0)
	for {
		f, err := g.NICs[0].Receive(time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if f == nil {
			break
		}
		var p packet.Parsed
		packet.Parse(f, uint32(len(f)), &p)
		var n cnpdec.Notification
		if reason := receiver.Decode(f, &p, &n); reason != cnpdec.Accepted || n.Kind != packet.FastCNP || n.Dst.Netip().String() != sender.Src || n.BTH.DestQP != sender.DestQP {
			t.Errorf("the sender got %+v (%v)", n, reason)
		}
		notified++
	}
	c := w.stop()
	if notified == 0 || c.Counters.Sent["fast-cnp"] != notified || marked == 0 || uint64(marked) != c.Counters.Marked || uint64(arrived) != c.Counters.Forwarded {
		t.Errorf("congestion: %d frames arrived, %d marked, %d notifications; the report: %+v", arrived, marked, notified, c.Counters)
	}
}
