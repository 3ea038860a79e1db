//go:build live && secondopinion && !nodpdk

package main

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/internal/testkit/ontime"
)

const congestedConfig = `gateway: {name: live, ipv6: "2001:db8::1"}
dpdk: {hugepages: false, workers: [0], idle: backoff}
ports:
  - {name: fabric, device: "net_af_packet0,iface=a0", role: fabric, peer: wan, rate: 10Gbps, mtu: 1500, queue_capacity: 500KB}
  - {name: wan, device: "net_af_packet1,iface=b0", role: wan, peer: fabric, rate: 2Mbps, mtu: 1500, queue_capacity: 500KB}
profiles: {default: {mode: thresholds, k_base: 50KB}}
endpoints: [{prefix: "fd00:18::/64", accepts: [fast-cnp]}]
notifications: {fast_cnp: {enabled: true}}
flows: {capacity: 1Ki}
management: {listen: "unix:%s/api.sock"}
`

// TestLiveCongestedQueue: two flows fill a queue, one of them far more. Its sender's notification is captured into a pipe, and tshark says what it is and
// why it was sent; the episode names the flow.
func TestLiveCongestedQueue(t *testing.T) {
	if ontime.Again(t) {
		return
	}
	program := liveBinary(t)
	enterNamespace(t)
	p := startWith(t, program, congestedConfig)
	a := newHost(t, "a1")
	socket := filepath.Join(p.dir, "api.sock")
	lua, err := filepath.Abs("../../deploy/wireshark/cnpgate.lua")
	if err != nil {
		t.Fatal(err)
	}
	captured := make(chan string, 1)
	capture := exec.Command("sh", "-c", `"$0" capture --count 2 --destination ,7 -w - --socket "$1" | tshark -X lua_script:"$2" -n -r - -T fields -e frame.interface_name -e ipv6.dst -e cnpgate.kind -e frame.comment`,
		program, socket, lua)
	begun, err := capture.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	out := &strings.Builder{}
	capture.Stdout = out
	if err := capture.Start(); err != nil {
		t.Fatal(err)
	}
	for seen, b := "", make([]byte, 1); !strings.HasSuffix(seen, "capturing notifications"); seen += string(b) {
		if _, err := begun.Read(b); err != nil {
			t.Fatalf("%v after %q", err, seen)
		}
	}
	go func() {
		_ = capture.Wait() // what it printed says enough
		captured <- out.String()
	}()
	frame := func(qp uint32) []byte {
		return testkit.RoCE{Src: "fd00:18::1", Dst: "fd00:19::1", DestQP: qp, Size: 1000, ECN: packet.ECT0}.Frame()
	}
	large, small := frame(7), frame(8)
	for i := range 300 {
		f := large
		if i%5 == 0 {
			f = small
		}
		if err := unix.Send(a.send, f, 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	select {
	case text := <-captured:
		rows := strings.Split(strings.TrimSpace(text), "\n")
		for _, row := range rows {
			f := strings.Split(row, "\t")
			if len(rows) != 2 || len(f) != 4 || f[0] != "fabric" || f[1] != "fd00:18::1" || f[2] != "fast-cnp" ||
				!strings.Contains(f[3], "senders are notified above 50KB") || !strings.Contains(f[3], "destination QP 7") {
				t.Errorf("tshark says\n%s", text)
			}
		}
	case <-time.After(30 * time.Second):
		t.Error("no two notifications were captured")
	}
	p.says(`"message":"Congestion of the queue ended."`, 1)
	shown := within(t, p.dir, "show", "episodes", "--socket", socket, "-o", "json")
	var answer api.Episodes
	if err := json.Unmarshal([]byte(shown.stdout), &answer); err != nil || len(answer.Episodes) == 0 {
		t.Fatalf("%v: %s%s", err, shown.stdout, shown.stderr)
	}
	e := answer.Episodes[0]
	if e.Port != "wan" || e.PeakBytes <= 50_000 || e.ECNMarked == 0 || e.Notifications["fast-cnp"] == 0 || e.Flows[0].DestinationQP != 7 || e.Flows[0].Notifications == 0 {
		t.Errorf("%s", shown.stdout)
	}
	if shown := within(t, p.dir, "show", "notifications", "--socket", socket, "-n", "3"); strings.Count(shown.stdout, "  fast-cnp  ") != 3 {
		t.Errorf("%+v", shown)
	}
	p.stop()
}
