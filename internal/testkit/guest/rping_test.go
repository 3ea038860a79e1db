//go:build live && !nodpdk

package guest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/endpoint/runner"
	"github.com/cnpgate/cnpgate/internal/testkit/program"
)

const rpingTap = "tapc"

// softRoCE boots a host with the kernel's Soft-RoCE and programs of this machine, and runs commands there. c has what differs.
func softRoCE(t *testing.T, c Config, programs []string, commands ...string) *Guest {
	t.Helper()
	// The provider of Soft-RoCE, and the library that threads load when they end.
	for _, pattern := range []string{"/usr/lib/*/libibverbs/librxe-rdmav*.so", "/lib/*/libgcc_s.so.1"} {
		found, _ := filepath.Glob(pattern)
		if len(found) != 1 {
			t.Fatalf("%s is at %q, expected one; run scripts/setup --test", pattern, found)
		}
		programs = append(programs, found[0])
	}
	files, err := Programs(programs...)
	if err != nil {
		t.Fatalf("%v; run scripts/setup --test", err)
	}
	if c.Folder, err = os.MkdirTemp("", "cnpgate-guest"); err != nil { // short: a socket's path has 107 characters
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(c.Folder) })
	c.MemoryMiB, c.Files = 512, append(append(files, c.Files...), File{Path: "/etc/libibverbs.d/rxe.driver", Text: "driver rxe\n", Mode: 0o644})
	c.Modules = append(c.Modules, "virtio_pci", "virtio_net", "crc32_generic", "rdma_rxe", "ib_uverbs", "rdma_ucm")
	g, err := Boot(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	for _, command := range commands {
		if _, err := g.Run(command); err != nil {
			t.Fatalf("%v\n%s", err, g.Console())
		}
	}
	return g
}

// playRping runs rping, whose peer is the kernel's Soft-RoCE and RDMA-CM, with `cnpgate endpoint` as its server and as its client. rping -V compares
// what comes back with what it sent. So the kernel accepts the endpoint's READs and WRITEs to its memory, and rping the endpoint's answers. What the kernel
// refuses ends the endpoint with an error that says so. The caller's thread is in the namespace of the tap interface.
func playRping(t *testing.T, g *Guest, binary string) {
	t.Helper()
	both := "-i " + rpingTap + " --address 198.19.0.1 --mac " + endpointMAC + " --mtu 4096 --cm -o json --progress"
	sender := "send " + both + " --peer 198.19.0.2 --peer-mac " + macOf(rpingTap) + " --trust 198.19.0.254 --timeout 2s --duration 2s"
	e := startEndpoint(t, binary, "receive "+both)
	for _, size := range []int{64, 5000, 65535} {
		out, err := g.Run(fmt.Sprintf("timeout 100 rping -c -a 198.19.0.1 -C 20 -S %d -V 2>&1", size))
		if err != nil {
			t.Errorf("rping -c -S %d: %v\n%s", size, err, out)
		}
	}
	if r, err := e.stop(); err != nil || r.Pings != 60 || r.PingErrors != 0 || r.CM.Established != 3 || r.CM.Ended["closed"] != 3 {
		t.Errorf("the server: %v: %+v, %+v", err, r.CM, r)
	}

	serveRping(t, g, "-S 6000")
	for _, size := range []string{"64B", "5000B"} {
		r, err := startEndpoint(t, binary, sender+" --verb rping --message "+size).wait()
		if err != nil || r.Pings < 3 || r.PingErrors != 0 || r.Messages != r.Pings || r.CM.Ended["closed"] != 1 {
			t.Errorf("the client, %s: %v: %+v, %+v", size, err, r.CM, r)
		}
	}

	for arguments, want := range map[string]string{
		" --cm-port 7174 --verb write --rkey 0x1234 --virtual-address 0x7f0000000000": "198.19.0.2 refused a request (NAK: remote access error; check --rkey, --virtual-address",
		" --cm-port 7174": "198.19.0.2 refused a request (NAK: remote operational error; check that its receive buffers", // SEND of 64 KiB, for which rping has no buffer
	} {
		r, err := startEndpoint(t, binary, sender+arguments).wait()
		if err == nil || !strings.Contains(err.Error(), want) || r.CM == nil || r.CM.Established != 1 {
			t.Errorf("%s: %v, expected %q; %+v", arguments, err, want, r)
		}
	}
	if out, err := g.Run("killall rping; cat /tmp/rping"); err != nil {
		t.Errorf("rping -s: %v: %s", err, out)
	}
}

// serveRping starts a server of rping that serves clients one after another.
func serveRping(t *testing.T, g *Guest, arguments string) {
	t.Helper()
	if _, err := g.Run("(timeout 300 rping -s -P " + arguments + " >/tmp/rping 2>&1) & sleep 1"); err != nil {
		t.Fatal(err)
	}
}

// runningEndpoint is `cnpgate endpoint` in the test's namespace.
type runningEndpoint struct {
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer
	said           chan struct{} // closed at the end of stderr
}

// startEndpoint starts an endpoint and waits until it runs.
func startEndpoint(t *testing.T, binary, arguments string) *runningEndpoint {
	t.Helper()
	e := &runningEndpoint{said: make(chan struct{}), cmd: exec.Command(binary, append([]string{"endpoint"}, strings.Fields(arguments)...)...)}
	e.cmd.Stdout = &e.stdout
	stderr, err := e.cmd.StderrPipe()
	if err == nil {
		err = e.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.cmd.Process.Kill() })
	lines := bufio.NewReader(stderr)
	for line := ""; !strings.HasPrefix(line, "running: "); e.stderr.WriteString(line) {
		if line, err = lines.ReadString('\n'); err != nil {
			t.Fatalf("%s: %v: %s%s", arguments, err, &e.stderr, line)
		}
	}
	go func() {
		defer close(e.said)
		_, _ = e.stderr.ReadFrom(lines)
	}()
	return e
}

// stop ends the endpoint.
func (e *runningEndpoint) stop() (runner.Report, error) {
	if err := e.cmd.Process.Signal(unix.SIGTERM); err != nil {
		return runner.Report{}, err
	}
	return e.wait()
}

// wait waits for the endpoint's end, and reads its report.
func (e *runningEndpoint) wait() (r runner.Report, err error) {
	<-e.said
	if err = e.cmd.Wait(); err != nil {
		err = fmt.Errorf("%w: %s", err, &e.stderr)
	}
	if e := json.Unmarshal(e.stdout.Bytes(), &r); e != nil && err == nil {
		err = e
	}
	return r, err
}

// buildGateway returns a program with DPDK.
func buildGateway(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cnpgate")
	program.Put(t, "../../..", path)
	return path
}

// makeTaps makes tap interfaces in a network namespace that the test's thread enters.
func makeTaps(t *testing.T, names ...string) {
	t.Helper()
	runtime.LockOSThread() // never unlocked: the namespace ends with the thread, and with what runs in it
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	for _, tap := range names {
		for _, line := range []string{"tuntap add mode tap name " + tap, "link set dev " + tap + " mtu 4200 up"} {
			if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
				t.Fatalf("ip %s: %v\n%s", line, err, out)
			}
		}
		if out, err := exec.Command("sysctl", "-qw", "net.ipv6.conf."+tap+".disable_ipv6=1").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
}
