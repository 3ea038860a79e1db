//go:build live && !nodpdk

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/internal/testkit/ontime"
)

const firstAnswer = 2 * time.Minute // from the first command to the first notification that was observed

// TestLiveInit: three commands and no edit lead from two interfaces to the first notification that the gateway would send.
func TestLiveInit(t *testing.T) {
	if ontime.Again(t) {
		return
	}
	for _, mirrors := range []int{0, 2, 1} {
		t.Run(fmt.Sprintf("mirror ports: %d", mirrors), func(t *testing.T) { firstNotification(t, mirrors) })
	}
}

// firstNotification tries it with a gateway between the hosts, or with one that only listens: at the ports of a bridge between them, or at one more
// port to which the bridge copies all frames of both directions.
func firstNotification(t *testing.T, mirrors int) {
	tap := mirrors > 0
	program := liveBinary(t)
	enterNamespace(t)
	ip(t, "link set lo up") // of the metrics
	flags := []string{"init", "--fabric", "a0", "--wan", "b0", "--listen", "2s", "--rate", "100Mbps"}
	if tap {
		flags = append(flags, "--tap")
		ip(t, "link add br0 type bridge mcast_snooping 0", "link set br0 mtu 4300 up", "link set a0 master br0", "link set b0 master br0")
	}
	if mirrors == 1 {
		addWire(t, "m")
		ip(t, "link set m0 master br0 mtu 4300 up")
		ip(t, "link set m1 mtu 4300 up")
		ip(t, "link set br0 type bridge ageing_time 0")
		flags = []string{"init", "--fabric", "m1", "--tap", "--hosts", "fd00:18::2/128", "--listen", "2s", "--rate", "100Mbps"}
	}
	setMTU(t, 4300, "a0", "a1", "b0", "b1")
	here := namespace(t)
	elsewhere(t, "b1", func() { startEndpoint(t, program, receiverArgs) })
	// Without a bridge nothing forwards yet: the sender gives up and is started again, until something does.
	dir := t.TempDir()
	put(t, dir, "again", []byte(`while :; do setpriv --pdeathsig KILL "$@"; sleep 0.1; done`))
	elsewhere(t, "a1", func() {
		args := strings.NewReplacer("--duration 2s", "--duration 2m", "--timeout 500ms", "--timeout 1s").Replace(senderArgs)
		startEndpoint(t, "sh", filepath.Join(dir, "again")+" "+program+" "+args)
	})
	enter(t, here)

	file, socket := filepath.Join(dir, "c.yaml"), filepath.Join(dir, "api.sock")
	begin := time.Now()
	r := finished(t, exec.Command(program, append(flags, "--socket", socket, "-o", file)...))
	if r.status != 0 {
		t.Fatalf("init: exit status %d\n%s", r.status, r.stderr)
	}
	p := startFile(t, program, dir, file)
	for time.Since(begin) < firstAnswer {
		r := within(t, dir, "show", "notifications", "--socket", socket, "--outcome", "observed", "-o", "json")
		var answer struct{ Notifications []report.Notification }
		if err := json.Unmarshal([]byte(r.stdout), &answer); err != nil {
			t.Fatalf("%v\n%s%s", err, r.stdout, r.stderr)
		}
		if len(answer.Notifications) == 0 {
			time.Sleep(20 * time.Millisecond)
			continue
		}
		if n := &answer.Notifications[0]; n.Kind != "standard-cnp" || n.SourceIP.String() != "fd00:18::2" || n.SourceQP == nil || *n.SourceQP < senderFirstQP || *n.SourceQP >= senderFirstQP+4 {
			t.Errorf("the first notification is %+v, expected a standard CNP to fd00:18::2 about one of its QPs", n)
		}
		if fabric, wan := p.stop(); tap && (fabric.Counters.Forwarded+wan.Counters.Forwarded != 0 || fabric.Counters.Received == 0 || wan.Counters.Received == 0) {
			t.Errorf("a tap has the counters %+v and %+v, expected that it received at both ports and forwarded nothing", fabric.Counters, wan.Counters)
		}
		t.Logf("the first notification was observed %v after the first command", time.Since(begin))
		return
	}
	text, _ := os.ReadFile(file)
	t.Fatalf("no notification was observed within %v; init said\n%s\nand proposed\n%s", firstAnswer, r.stderr, text)
}

// TestLiveInitRefuses: interfaces that the machine's own network uses, also through a bridge, or by an SSH session.
func TestLiveInitRefuses(t *testing.T) {
	enterNamespace(t)
	shell(t, "ip", "link", "add", "br0", "type", "bridge")
	for _, line := range []string{"link set a0 master br0", "link set br0 up", "addr add 10.0.0.1/24 dev br0", "addr add 10.1.0.1/24 dev b0"} {
		ip(t, line)
	}
	refuses := func(want string, environment ...string) {
		t.Helper()
		c := command(t.TempDir(), "init", "--fabric", "a0", "--wan", "b0", "--listen", "0s")
		c.Env = append(os.Environ(), environment...)
		if r := finished(t, c); r.status != 1 || r.stdout != "" || !strings.Contains(r.stderr, want) {
			t.Errorf("exit status %d, expected 1 and %q:\n%s%s", r.status, want, r.stdout, r.stderr)
		}
	}
	refuses("an SSH session from 10.1.0.7 is by b0", "SSH_CONNECTION=10.1.0.7 50000 10.1.0.1 22")
	refuses("an SSH session from 10.0.0.7 is by br0", "SSH_CONNECTION=10.0.0.7 50000 10.0.0.1 22")
	ip(t, "route add default via 10.1.0.254")
	refuses("the default route is by b0", "SSH_CONNECTION=")
	ip(t, "route replace default via 10.0.0.254")
	refuses("the default route is by br0", "SSH_CONNECTION=")
	ip(t, "route del default")
	if r := finished(t, command(t.TempDir(), "init", "--fabric", "a0", "--wan", "b0", "--listen", "0s")); r.status != 0 {
		t.Errorf("without a route: exit status %d\n%s", r.status, r.stderr)
	}
}

// TestLiveInitOutput: standard output has only the configuration, Ctrl-C ends the listening, a file is only written over with --force, and a user without
// rights learns what is missing.
func TestLiveInitOutput(t *testing.T) {
	if ontime.Again(t) {
		return
	}
	enterNamespace(t)
	dir := t.TempDir()
	put(t, dir, "c.yaml", []byte("precious"))
	initAs := func(args ...string) *exec.Cmd {
		return command(dir, append([]string{"init", "--fabric", "a0", "--wan", "b0"}, args...)...)
	}
	if r := finished(t, initAs("--listen", "1m", "-o", "c.yaml")); r.status != 1 || !strings.Contains(r.stderr, "c.yaml exists; expected a new file, or --force") {
		t.Errorf("exit status %d\n%s", r.status, r.stderr)
	}
	c := initAs("--listen", "1m")
	stderr, err := c.StderrPipe()
	var stdout strings.Builder
	c.Stdout = &stdout
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	said := bufio.NewScanner(stderr)
	for said.Scan() && !strings.Contains(said.Text(), "Ctrl-C ends it earlier") {
	}
	begin := time.Now()
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	for said.Scan() {
	}
	if err := c.Wait(); err != nil || time.Since(begin) > 30*time.Second {
		t.Errorf("after Ctrl-C: %v, %v later", err, time.Since(begin))
	}
	put(t, dir, "piped.yaml", []byte(stdout.String()))
	if r := cnpgate(t, dir, "check", "--offline", "-c", "piped.yaml"); r.status != 0 {
		t.Errorf("check: exit status %d\n%s\n%s", r.status, r.stderr, stdout.String())
	}
	tagged := initAs("--listen", "2s", "-o", "c.yaml", "--force")
	if stderr, err = tagged.StderrPipe(); err == nil {
		err = tagged.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for said = bufio.NewScanner(stderr); said.Scan(); text.WriteString(said.Text() + "\n") {
		if strings.Contains(said.Text(), "Ctrl-C ends it earlier") {
			sendTagged(t, "a1")
		}
	}
	if err := tagged.Wait(); err != nil || !strings.Contains(text.String(), "VLAN priorities 3; VLANs 20\n") {
		t.Errorf("%v: it doesn't say VLAN 20 with priority 3:\n%s", err, text.String())
	}
	if r := cnpgate(t, dir, "check", "--offline", "-c", "c.yaml"); r.status != 0 {
		t.Errorf("check: exit status %d\n%s", r.status, r.stderr)
	}
	c = initAs("--listen", "1m")
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	c.Dir = "/"
	if r := finished(t, c); r.status != 1 || !strings.Contains(r.stderr, "operation not permitted; run it as root (sudo), or give the program CAP_NET_RAW") {
		t.Errorf("as nobody: exit status %d\n%s", r.status, r.stderr)
	}
}

// sendTagged sends a RoCEv2 packet in VLAN 20, with priority 3. The receiving kernel takes the tag out of the frame.
func sendTagged(t *testing.T, iface string) {
	t.Helper()
	f := testkit.RoCE{Src: "10.1.0.1", Dst: "10.9.0.9", DestQP: 5, Size: 1000}.Frame()
	f = append(append(append([]byte{}, f[:12]...), 0x81, 0, 3<<5, 20), f[12:]...)
	if err := unix.Send(newHost(t, iface).send, f, 0); err != nil {
		t.Fatal(err)
	}
}
