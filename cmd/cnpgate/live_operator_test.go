//go:build live && secondopinion && !nodpdk

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/internal/testkit/ontime"
)

const operatorConfig = `gateway: {name: operator, ipv6: "fd00:18::fe"}
dpdk: {hugepages: false, workers: [0], idle: backoff}
ports:
  - {name: fabric, device: "net_af_packet0,iface=a0", role: fabric, peer: wan, rate: 10Gbps, mtu: 4200, queue_capacity: 1MB}
  - {name: wan, device: "net_af_packet1,iface=b0", role: wan, peer: fabric, rate: 100Mbps, rtt: 2ms, mtu: 4200, queue_capacity: 5MB}
profiles: {default: {mode: thresholds, k_base: 100KB}}
endpoints: [{prefix: "fd00:18::/64", accepts: [long-haul-cnp]}]
notifications: {mode: observe, long_haul_cnp: {enabled: true}}
flows: {capacity: 1Ki}
management: {listen: "unix:%s/api.sock"}
`

// operator is a person who runs a gateway as docs/troubleshooting.md describes.
type operator struct {
	*process
	t      *testing.T
	config string
	socket string
}

// does runs a command of cnpgate's, which must succeed.
func (o *operator) does(args ...string) string {
	o.t.Helper()
	r := cnpgate(o.t, o.dir, append(args, "--socket", o.socket)...)
	if r.status != 0 {
		o.t.Fatalf("cnpgate %s: exit status %d\n%s%s", strings.Join(args, " "), r.status, r.stdout, r.stderr)
	}
	return r.stdout
}

// asks runs a command until its JSON shows the expected state.
func asks[T any](o *operator, what string, shows func(*T) bool, args ...string) *T {
	o.t.Helper()
	var text string
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		r := within(o.t, o.dir, append(args, "-o", "json", "--socket", o.socket)...)
		if text = r.stdout; r.status != 0 {
			o.t.Fatalf("cnpgate %s: exit status %d\n%s%s", strings.Join(args, " "), r.status, text, r.stderr)
		}
		answer := new(T)
		if err := json.Unmarshal([]byte(text), answer); err != nil {
			o.t.Fatalf("%v\n%s", err, text)
		}
		if shows(answer) {
			return answer
		}
	}
	o.t.Fatalf("cnpgate %s never shows %s, but\n%s", strings.Join(args, " "), what, text)
	return nil
}

// changes edits the configuration and reloads it; the answer must name the changed key.
func (o *operator) changes(old, replacement, key string) {
	o.t.Helper()
	text, err := os.ReadFile(o.config)
	if err != nil {
		o.t.Fatal(err)
	}
	edited := strings.Replace(string(text), old, replacement, 1)
	if edited == string(text) {
		o.t.Fatalf("%q is not in the configuration", old)
	}
	if err := os.WriteFile(o.config, []byte(edited), 0o600); err != nil {
		o.t.Fatal(err)
	}
	if answer := o.does("reload"); !strings.Contains(answer, key) {
		o.t.Fatalf("reload answers %q, expected that it names %s", answer, key)
	}
}

// hub connects a wire to interfaces for two hosts, host0 and host1, in a namespace: a device has one program.
func hub(t *testing.T, in *os.File, wire string) {
	t.Helper()
	here := namespace(t)
	enter(t, in)
	shell(t, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1")
	ip(t, "link add hub type bridge mcast_snooping 0")
	ip(t, "link set "+wire+" master hub")
	for _, host := range []string{"host0", "host1"} {
		ip(t, "link add "+host+" mtu 4300 type veth peer name "+host+"-hub mtu 4300")
		ip(t, "link set "+host+"-hub up master hub")
		ip(t, "link set "+host+" up")
	}
	ip(t, "link set hub up mtu 4300")
	enter(t, here)
}

// startPair starts host 1 or 3 as a receiver and the one after it as a sender, with a QP each. The receiver answers CE with no CNP.
func startPair(t *testing.T, program string, fabric, wan *os.File, receiver int, rate string, senderQP, receiverQP int) (sending, receiving *endpointProcess) {
	t.Helper()
	here := namespace(t)
	start := func(role string, host, qp, peerQP int, more string) *endpointProcess {
		return startEndpoint(t, program, fmt.Sprintf("endpoint %s --address fd00:18::%d --mac 02:00:00:00:00:0%d --first-qp %d --peer-first-qp %d --mtu 4096 --rtt 2ms -o json --progress %s",
			role, host, host, qp, peerQP, more))
	}
	enter(t, wan)
	receiving = start("receive", receiver, receiverQP, senderQP, fmt.Sprintf("-i host%d --no-cnp", receiver/2))
	enter(t, fabric)
	sending = start("send", receiver+1, senderQP, receiverQP, fmt.Sprintf("-i host%d --peer fd00:18::%d --peer-mac 02:00:00:00:00:0%d --accept long-haul-cnp --trust fd00:18::fe --timeout 2s --rate %s",
		receiver/2, receiver, receiver, rate))
	enter(t, here)
	return sending, receiving
}

// TestLiveOperator is a session: a wrong configuration, observe mode, congestion, the flow and the QP that cause it, notifications, another threshold, their
// effect, and a captured notification in tshark.
func TestLiveOperator(t *testing.T) {
	if ontime.Again(t) {
		return
	}
	program := liveBinary(t)
	enterNamespace(t)
	setMTU(t, 4300, "a0", "a1", "b0", "b1")
	var fabric, wan *os.File
	elsewhere(t, "a1", func() { fabric = namespace(t) })
	elsewhere(t, "b1", func() { wan = namespace(t) })
	hub(t, fabric, "a1")
	hub(t, wan, "b1")

	// A wrong configuration is refused with the place of the mistake, by check as by run.
	dir := t.TempDir()
	wrong := filepath.Join(dir, "wrong.yaml")
	if err := os.WriteFile(wrong, fmt.Appendf(nil, strings.Replace(operatorConfig, "k_base: 100KB", "k_base: much", 1), dir), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"check", "run"} {
		out, err := exec.Command(program, verb, "--config", wrong).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "wrong.yaml:6:") || !strings.Contains(string(out), "much") {
			t.Fatalf("%s of a wrong configuration: %v\n%s", verb, err, out)
		}
	}

	// Observe mode: one sender offers more than the WAN port can send, another one little. Nobody is notified.
	p := startIn(t, program, dir, operatorConfig)
	o := &operator{process: p, t: t, config: filepath.Join(dir, "c.yaml"), socket: filepath.Join(dir, "api.sock")}
	guilty, itsReceiver := startPair(t, program, fabric, wan, 1, "300Mbps", 300, 400)
	innocent, otherReceiver := startPair(t, program, fabric, wan, 3, "5Mbps", 500, 600)
	fromGuilty := func(f *report.EpisodeFlow) bool { return f.SourceIP.String() == "fd00:18::2" }
	episodes := asks(o, "a congestion episode with the sender that causes it", func(e *api.Episodes) bool {
		return len(e.Episodes) > 0 && e.Episodes[0].End == nil && e.Episodes[0].Observed > 0 && len(e.Episodes[0].Flows) > 1 && e.Episodes[0].Flows[0].SourceQP != nil && e.Episodes[0].Flows[0].Notifications > 0
	}, "show", "episodes")
	e := &episodes.Episodes[0]
	if f := &e.Flows[0]; e.Port != "wan" || len(e.Notifications) != 0 || !fromGuilty(f) || *f.SourceQP != 300 || f.DestinationQP != 400 {
		t.Fatalf("the episode is %+v; expected QP 300 of fd00:18::2 to cause it, and no notification", e)
	}
	if e.Flows[0].Notifications == 0 {
		t.Errorf("the sender that causes the congestion would not be notified: %+v", e)
	}
	depth := func(below uint64) func(*report.Counters) bool {
		return func(c *report.Counters) bool { return c.Ports[1].Queues[0].DepthBytes < below }
	}
	asks(o, "a full queue", func(c *report.Counters) bool { return c.Ports[1].Queues[0].DepthBytes > 4_000_000 }, "show", "queues")

	// Enabled, with a capture: the queue drains, and only the sender that causes the congestion is notified.
	captured := filepath.Join(dir, "notifications.pcapng")
	capture := command(dir, "capture", "--write", captured, "--count", "5", "--outcome", "sent", "--source", "fd00:18::2", "--socket", o.socket)
	begun, err := capture.StderrPipe()
	if err == nil {
		err = capture.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	for seen, b := "", make([]byte, 1); !strings.HasSuffix(seen, "capturing notifications"); seen += string(b) {
		if _, err := begun.Read(b); err != nil {
			t.Fatalf("%v after %q", err, seen)
		}
	}
	o.changes("mode: observe, ", "", "notifications.mode")
	if err := capture.Wait(); err != nil {
		t.Fatal(err)
	}
	asks(o, "a queue that has drained", depth(1_000_000), "show", "queues")

	// Another threshold is in force at once, and in the reasons of the notifications that follow.
	before := asks(o, "K_max", func(c *report.Counters) bool { return c.Ports[1].KMaxBytes > 0 }, "show", "queues").Ports[1].KMaxBytes
	o.changes("k_base: 100KB", "k_base: 50KB", "profiles.default.k_base")
	after := asks(o, "a lower K_max", func(c *report.Counters) bool { return c.Ports[1].KMaxBytes < before }, "show", "queues").Ports[1].KMaxBytes
	asks(o, "a notification by the new threshold", func(n *api.Notifications) bool {
		for i := range n.Notifications {
			if n.Notifications[i].Outcome == "sent" && n.Notifications[i].Trigger == "depth" && n.Notifications[i].Threshold == after {
				return true
			}
		}
		return false
	}, "show", "notifications")

	// tshark with the dissector names the captured notification, whom it is for and why it was sent.
	lua, err := filepath.Abs("../../deploy/wireshark/cnpgate.lua")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("tshark", "-X", "lua_script:"+lua, "-n", "-r", captured, "-T", "fields", "-e", "ipv6.dst", "-e", "cnpgate.kind", "-e", "infiniband.bth.destqp",
		"-e", "frame.comment").Output()
	if err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(strings.TrimSpace(string(out)), "\n")
	for i, row := range rows {
		f := strings.Split(row, "\t")
		if len(rows) != 5 || len(f) != 4 || f[0] != "fd00:18::2" || f[1] != "long-haul-cnp" || f[2] != "0x00012c" || i == 0 && !strings.Contains(f[3], "senders are notified above") {
			t.Fatalf("tshark shows\n%s", out)
		}
	}

	accepted := map[*endpointProcess]uint64{}
	for _, e := range []*endpointProcess{guilty, innocent, itsReceiver, otherReceiver} {
		if err := e.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		accepted[e] = sum(e.ends().Notifications.Accepted)
	}
	if accepted[guilty] == 0 || accepted[itsReceiver]+accepted[otherReceiver] != 0 {
		t.Errorf("the sender that causes the congestion has accepted %d notifications, the other one %d, receivers %d and %d; expected some for the first and none for the receivers",
			accepted[guilty], accepted[innocent], accepted[itsReceiver], accepted[otherReceiver])
	}
	p.stop()
	t.Logf("K_max %d bytes, then %d; %d notifications to the sender that causes the congestion, %d to the other one", before, after, accepted[guilty], accepted[innocent])
}
