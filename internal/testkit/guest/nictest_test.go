//go:build live && long && !nodpdk

package guest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/internal/testkit/ontime"
	"github.com/cnpgate/cnpgate/nictest"
)

const nictestTap = "tapn"

// TestNICTestWithSoftRoCE has `cnpgate nictest` measure the kernel's Soft-RoCE, which ignores CNPs, by two clients: ib_write_bw -R, which ends by itself
// with its result after the test has served it, and rping. Neither the kernel nor a client fails. The guest finds the endpoint by ARP.
func TestNICTestWithSoftRoCE(t *testing.T) {
	if ontime.Again(t) {
		return
	}
	binary := buildGateway(t)
	makeTaps(t, nictestTap)
	g := nictestGuest(t)
	both := "nictest -i " + nictestTap + " --address 198.20.0.1 --mac " + endpointMAC + " --mtu 1024 --bin 1ms --quick --silence 100s -o json"

	n := startNICTest(t, binary, both)
	out, err := g.Run("timeout 100 ib_write_bw -R -d rxe0 -x 1 -m 1024 -s 16384 -t 4 -n 200 -F 198.20.0.1 2>&1")
	if err != nil || !strings.Contains(out, "16384      200") {
		t.Errorf("ib_write_bw ends with %v: %s", err, out)
	}
	n.stop()
	n.wait() // whatever it has measured in so short a time

	n = startNICTest(t, binary, both)
	if out, err := g.Run("(timeout 200 ib_write_bw -R -d rxe0 -x 1 -m 1024 -s 16384 -t 4 -D 180 -F 198.20.0.1 >/tmp/bw 2>&1) &"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	r := n.wait()
	log, _ := g.Run("cat /tmp/bw")
	if r.Verdict != nictest.IgnoresCNPs || !r.Complete || r.Sender != "198.20.0.2" || len(r.Suggest.Formats) != 0 || !strings.Contains(r.File, "obeys: []") {
		t.Errorf("verdict %q, complete %v: %+v\n%s\n%s", r.Verdict, r.Complete, r.Trials, n.stderr.String(), log)
	}
	_, _ = g.Run("killall ib_write_bw")

	n = startNICTest(t, binary, both)
	if out, err := g.Run("timeout 100 rping -c -a 198.20.0.1 -C 60 -S 8192 -V 2>&1"); err != nil {
		t.Errorf("rping: %v: %s", err, out)
	}
	n.stop()
	if r := n.wait(); r.Sender != "198.20.0.2" {
		t.Errorf("with rping: %+v\n%s", r, n.stderr.String())
	}
	if out, _ := g.Run("dmesg | grep -E 'ICRC|icrc|BUG:|Oops|WARNING:'"); out != "" {
		t.Errorf("the guest says: %s", out)
	}
}

// nictestGuest is a host with Soft-RoCE behind a tap interface, and perftest and rping.
func nictestGuest(t *testing.T) *Guest {
	t.Helper()
	return softRoCE(t, Config{CPUs: 1, Taps: []string{nictestTap}}, []string{"/usr/bin/rdma", "/usr/bin/ib_write_bw", "/usr/bin/rping"},
		"ip link set lo up", "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6",
		"ip link set eth0 mtu 1500 up", "ip address add 198.20.0.2/24 dev eth0", "rdma link add rxe0 type rxe netdev eth0")
}

// runningNICTest is `cnpgate nictest` in the test's namespace.
type runningNICTest struct {
	t              *testing.T
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer
}

func startNICTest(t *testing.T, binary, arguments string) *runningNICTest {
	t.Helper()
	n := &runningNICTest{t: t, cmd: exec.Command(binary, strings.Fields(arguments)...)}
	out := &console{}
	n.cmd.Stdout, n.cmd.Stderr = &n.stdout, out
	if err := n.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.cmd.Process.Kill() })
	for deadline := time.Now().Add(patience); !strings.Contains(out.String(), "running: "); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: %s", arguments, out)
		}
	}
	return n
}

func (n *runningNICTest) stop() { _ = n.cmd.Process.Signal(unix.SIGINT) }

// wait waits for the end, and reads the report.
func (n *runningNICTest) wait() (r nictest.Report) {
	n.t.Helper()
	err := n.cmd.Wait()
	if e := json.Unmarshal(n.stdout.Bytes(), &r); e != nil {
		n.t.Error(fmt.Errorf("%w, %w: %s%v", err, e, n.stdout.String(), n.cmd.Stderr))
	}
	return r
}
