//go:build live && !nodpdk && long

package guest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/internal/testkit/ontime"
)

const roceConfig = `gateway: {name: roce, ipv4: 192.0.2.1}
dpdk: {hugepages: false, workers: [0], idle: backoff}
ports:
  - {name: fabric, device: "net_af_packet0,iface=tapa", role: fabric, peer: wan, rate: 10Gbps, mtu: 4200, queue_capacity: 32MB}
  - {name: wan, device: "net_af_packet1,iface=tapb", role: wan, peer: fabric, rate: 10Gbps, mtu: 4200, queue_capacity: 32MB}
flows: {capacity: 1Ki}
`

// hostConfig describes a host with the kernel's Soft-RoCE.
type hostConfig struct {
	taps    []string // interfaces; the first one has RDMA
	address string   // its IPv4 address
	cpus    int
	files   []File // besides the tools
}

// roceHost boots a host with the kernel's Soft-RoCE behind a tap interface, and the tools that measure RDMA.
func roceHost(t *testing.T, c hostConfig) *Guest {
	t.Helper()
	return softRoCE(t, Config{CPUs: c.cpus, Taps: c.taps, Files: c.files},
		[]string{"/usr/bin/rdma", "/usr/bin/ib_write_bw", "/usr/bin/ib_read_bw", "/usr/bin/ib_send_bw", "/usr/bin/ibv_rc_pingpong", "/usr/bin/rping"},
		"echo 1 > /proc/sys/net/ipv6/conf/eth0/disable_ipv6", "ip link set eth0 mtu 4200 up", "ip address add "+c.address+"/24 dev eth0",
		"rdma link add rxe0 type rxe netdev eth0")
}

// TestSoftRoCE runs RDMA between two kernels with the gateway in the wire: writes, reads and sends, several QPs, a path MTU of 4096. None fails, and
// no packet arrives with a wrong ICRC.
func TestSoftRoCE(t *testing.T) {
	if ontime.Again(t) {
		return
	}
	binary := buildGateway(t)
	makeTaps(t, "tapa", "tapb")
	a := roceHost(t, hostConfig{taps: []string{"tapa"}, address: "198.18.0.1", cpus: 1})
	b := roceHost(t, hostConfig{taps: []string{"tapb"}, address: "198.18.0.2", cpus: 1})
	config, log := filepath.Join(t.TempDir(), "c.yaml"), &console{}
	if err := os.WriteFile(config, []byte(roceConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	gateway := exec.Command(binary, "run", "--config", config)
	gateway.Stderr = log
	if err := gateway.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- gateway.Wait() }()
	defer func() { _ = gateway.Process.Kill() }()
	for deadline := time.Now().Add(patience); strings.Count(log.String(), "link is up") < 2; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the gateway: %s", log)
		}
	}
	// What is in flight fits every queue on the path however slow the guests are, also the 1000 frames of a tap interface: 4 messages (-t) of
	// 64 KiB on each of 4 QPs, and no retransmission for being slow: a time-out of 2^21 * 4.096 us (-u).
	for i, program := range []string{"ib_write_bw", "ib_read_bw", "ib_send_bw"} {
		arguments := fmt.Sprintf("%s -d rxe0 -x 1 -m 4096 -q 4 -s 65536 -n 100 -t 4 -u 21 -F -p %d", program, 18515+i)
		if _, err := a.Run(fmt.Sprintf("(timeout 100 %s >/tmp/%s 2>&1; echo $? >/tmp/%s.status) & sleep 2", arguments, program, program)); err != nil {
			t.Fatal(err)
		}
		out, err := b.Run("timeout 100 " + arguments + " 198.18.0.1 2>&1")
		if err != nil {
			server, _ := a.Run("cat /tmp/" + program)
			t.Errorf("%v\nthe server: %s\nthe gateway: %s", err, server, log)
			continue
		}
		if err := a.Until("[ -e /tmp/" + program + ".status ]"); err != nil {
			t.Error(err)
		}
		t.Logf("%s:\n%s", program, out)
	}
	for name, g := range map[string]*Guest{"a": a, "b": b} {
		if out, _ := g.Run("dmesg | grep -i icrc"); out != "" {
			t.Errorf("guest %s says: %s", name, out)
		}
	}
	if err := gateway.Process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("the gateway: %v\n%s", err, log)
	}
	if strings.Contains(log.String(), "dropped_packets_total") {
		t.Errorf("the gateway dropped: %s", log)
	}
	t.Log(log)
}
