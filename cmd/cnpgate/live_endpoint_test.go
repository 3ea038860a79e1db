//go:build live && !nodpdk

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/endpoint/runner"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit/ontime"
)

// The hosts of these tests are endpoints in namespaces of their own. They offer three times the WAN's rate:
//
//	[ endpoint send -- a1 ]==[ a0 -- cnpgate -- b0 ]==[ b1 -- endpoint receive ]
//
// The receiver doesn't answer CE with CNPs: without a WAN round trip they would arrive as early as the gateway's notifications. If possible,
// the tested processes get a higher priority than others.
const endpointsConfig = `gateway: {name: live, ipv4: 198.18.0.254, ipv6: "fd00:18::fe"}
dpdk: {hugepages: false, workers: [0], idle: backoff}
ports:
  - {name: fabric, device: "net_af_packet0,iface=a0", role: fabric, peer: wan, rate: 10Gbps, mtu: 4200, queue_capacity: 1MB}
  - {name: wan, device: "net_af_packet1,iface=b0", role: wan, peer: fabric, rate: 100Mbps, rtt: 2ms, mtu: 4200, queue_capacity: 5MB, profile: live}
profiles: {live: {mode: thresholds, k_base: 100KB}}
flows: {capacity: 1Ki}
management: {listen: "unix:%%s/api.sock"}
%s
`

const (
	wanMbps      = 100
	bothArgs     = " --qps 4 --mtu 4096 --rtt 2ms -o json --progress"
	receiverArgs = "endpoint receive -i b1 --address fd00:18::1 --mac 02:00:00:18:00:01 --no-cnp" + bothArgs
	senderArgs   = "endpoint send -i a1 --address fd00:18::2 --peer fd00:18::1 --peer-mac 02:00:00:18:00:01 --trust fd00:18::fe" +
		" --rate 300Mbps --duration 2s --timeout 500ms" + bothArgs
)

// outcome is the result of a run.
type outcome struct {
	peak, dropped uint64
	sender        runner.Report
}

// TestLiveEndpoints: with notifications no frame is lost, the queue is a fifth as long, and the WAN is used.
func TestLiveEndpoints(t *testing.T) {
	if ontime.Again(t) {
		return
	}
	program := liveBinary(t)
	off := runEndpoints(t, program, "")
	if off.dropped == 0 || off.sender.Sent.Retransmitted == 0 {
		t.Fatalf("without notifications %d frames were dropped and %d sent again; expected some", off.dropped, off.sender.Sent.Retransmitted)
	}
	for i, c := range []struct{ format, section string }{{"long-haul-cnp", "long_haul_cnp"}, {"long-haul-cnp-icmpv6", "long_haul_cnp"}, {"fast-cnp", "fast_cnp"}} {
		if i > 0 && !everyVariant {
			continue
		}
		on := runEndpoints(t, program, c.format, fmt.Sprintf("endpoints: [{prefix: 'fd00:18::2/128', accepts: [%s]}]\nnotifications: {%s: {enabled: true}}",
			c.format, c.section))
		if on.dropped != 0 || on.peak > off.peak/5 {
			t.Errorf("%s: %d frames dropped, peak %d bytes; without notifications %d and %d; expected none, and a fifth at most", c.format, on.dropped,
				on.peak, off.dropped, off.peak)
		}
		if on.sender.GoodputBps < 0.9*wanMbps*1e6 {
			t.Errorf("%s: the goodput is %.1f Mbit/s, expected %d at least", c.format, on.sender.GoodputBps/1e6, wanMbps*9/10)
		}
		if n := on.sender.Notifications; sum(n.Accepted) == 0 || len(n.Refused) != 0 {
			t.Errorf("%s: notifications are %+v, expected some to be accepted and none refused", c.format, n)
		}
	}
}

// runEndpoints runs the gateway with more settings, and sends for some seconds. format is what the sender accepts, "" for none.
func runEndpoints(t *testing.T, program, format string, settings ...string) (o outcome) {
	t.Helper()
	t.Run(cmp.Or(format, "off"), func(t *testing.T) {
		enterNamespace(t)
		setMTU(t, 4300, "a0", "a1", "b0", "b1")
		var sending *os.File
		var receiver *endpointProcess
		elsewhere(t, "a1", func() { sending = namespace(t) })
		elsewhere(t, "b1", func() { receiver = startEndpoint(t, program, receiverArgs) })
		p := startWith(t, program, fmt.Sprintf(endpointsConfig, strings.Join(settings, "\n")))
		here, args := namespace(t), senderArgs
		if format != "" {
			args += " --accept " + format
		}
		enter(t, sending)
		sender := startEndpoint(t, program, args)
		enter(t, here)
		o.sender = sender.ends()
		if err := receiver.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if r := receiver.ends(); r.Received.InSequence == 0 || r.Sent.CNPs != 0 {
			t.Errorf("the receiver reports %+v, expected packets in sequence and no CNP", r)
		}
		_, wan := p.stop()
		o.dropped, o.peak = wan.Counters.Dropped["queue-full-bytes"]+wan.Counters.Dropped["queue-full-frames"], wan.Watermark
		t.Logf("300 Mbit/s offered to %d: goodput %.1f Mbit/s, peak %d KB, %d frames dropped, %d sent again, notifications %v", wanMbps,
			o.sender.GoodputBps/1e6, o.peak/1000, o.dropped, o.sender.Sent.Retransmitted, o.sender.Notifications.Accepted)
	})
	return o
}

// namespace is the network namespace that the thread is in.
func namespace(t *testing.T) *os.File {
	t.Helper()
	f, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func enter(t *testing.T, namespace *os.File) {
	t.Helper()
	if err := unix.Setns(int(namespace.Fd()), unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
}

// TestLiveEndpointSignal: a sender without a duration goes on until a signal, and then ends at once with its report. Here its READs are answered over a
// wire without a gateway.
func TestLiveEndpointSignal(t *testing.T) {
	if ontime.Again(t) {
		return
	}
	program := liveBinary(t)
	enterNamespace(t)
	var receiver *endpointProcess
	elsewhere(t, "a1", func() {
		receiver = startEndpoint(t, program, "endpoint receive -i a1 --address 10.0.0.1 --mac 02:00:00:00:00:01 --rate 50Mbps -o json --progress")
	})
	sender := startEndpoint(t, program, "endpoint send -i a0 --address 10.0.0.2 --peer 10.0.0.1 --peer-mac 02:00:00:00:00:01 --trust 10.0.0.254"+
		" --verb read --rate 50Mbps -o json --progress")
	sender.says("1 s: ")
	sender.says("2 s: ")
	for _, e := range []*endpointProcess{sender, receiver} {
		begin := time.Now()
		if err := e.cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		r := e.ends()
		if took := time.Since(begin); took > stopTime {
			t.Errorf("%s ends after %v, expected at once", r.Role, took)
		}
		switch {
		case r.Role == "send" && (r.Bytes == 0 || r.Received.ReadResponses == 0 || r.Seconds < 1):
			t.Errorf("the sender reports %+v, expected data that it has read", r)
		case r.Role == "receive" && r.Peer != "10.0.0.2":
			t.Errorf("the receiver's peer is %q, expected the sender", r.Peer)
		}
	}
}

// endpointProcess is an endpoint that runs.
type endpointProcess struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdout bytes.Buffer
	stderr *bufio.Reader
}

// startEndpoint starts an endpoint in the thread's namespace, and waits until it runs.
func startEndpoint(t *testing.T, program, args string) *endpointProcess {
	t.Helper()
	e := &endpointProcess{t: t, cmd: exec.Command(program, strings.Fields(args)...)}
	e.cmd.Stdout = &e.stdout
	stderr, err := e.cmd.StderrPipe()
	if err == nil {
		err = e.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.cmd.Process.Kill() })
	e.stderr = bufio.NewReader(stderr)
	e.says("running: ")
	return e
}

// says waits until the endpoint has said something.
func (e *endpointProcess) says(text string) {
	e.t.Helper()
	for said := ""; ; {
		line, err := e.stderr.ReadString('\n')
		if said += line; strings.Contains(line, text) {
			return
		}
		if err != nil {
			e.t.Fatalf("the endpoint says no %q but: %s", text, said)
		}
	}
}

// ends waits until the endpoint has ended, and reads its report.
func (e *endpointProcess) ends() (r runner.Report) {
	e.t.Helper()
	said, _ := io.ReadAll(e.stderr) // an error is Wait's, too
	if err := e.cmd.Wait(); err != nil {
		e.t.Errorf("%v: %v\n%s", e.cmd.Args, err, said)
	}
	if err := json.Unmarshal(e.stdout.Bytes(), &r); err != nil {
		e.t.Fatalf("%v: %s", err, e.stdout.String())
	}
	return r
}

// TestLiveRDMACM: through a gateway, RDMA-CM sets up a connection for each QP, and DREQ ends it. The gateway confirms the source QPs by the exchange.
// The same receiver serves a second sender.
func TestLiveRDMACM(t *testing.T) {
	if ontime.Again(t) {
		return
	}
	program := liveBinary(t)
	enterNamespace(t)
	setMTU(t, 4300, "a0", "a1", "b0", "b1")
	var sending *os.File
	var receiver *endpointProcess
	elsewhere(t, "a1", func() { sending = namespace(t) })
	elsewhere(t, "b1", func() { receiver = startEndpoint(t, program, receiverArgs+" --cm") })
	p := startWith(t, program, fmt.Sprintf(endpointsConfig, ""))
	here := namespace(t)
	for range 2 {
		enter(t, sending)
		sender := startEndpoint(t, program, strings.Replace(senderArgs, "--rate 300Mbps --duration 2s", "--rate 50Mbps --duration 1s", 1)+" --cm")
		enter(t, here)
		r := sender.ends()
		if r.CM == nil || r.CM.Established != 4 || r.CM.Ended["closed"] != 4 || r.Messages == 0 || r.Sent.Retransmitted != 0 {
			t.Errorf("the sender reports %+v, %+v; expected 4 connections that are established and closed", r.CM, r)
		}
	}
	if err := receiver.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if r := receiver.ends(); r.CM == nil || r.CM.Established != 8 || r.CM.Ended["closed"] != 8 || r.Received.InSequence == 0 {
		t.Errorf("the receiver reports %+v, %+v; expected 8 connections that are established and closed", r.CM, r)
	}
	p.stop()
	text, err := os.ReadFile(p.report)
	var gateway struct{ Flows []report.Flow }
	if err := errors.Join(err, json.Unmarshal(text, &gateway)); err != nil {
		t.Fatal(err)
	}
	confirmed := map[string]int{} // by source, and whether DREQ has ended the flow
	for _, f := range gateway.Flows {
		if f.DestinationQP == packet.GSIQP {
			continue
		}
		if f.QPEvidence == nil || *f.QPEvidence != "cm" || f.QPState != "confirmed" {
			t.Errorf("a flow isn't confirmed by RDMA-CM: %+v", f)
		}
		confirmed[fmt.Sprint(f.SourceIP, " ", f.Ended)]++
	}
	if confirmed["fd00:18::2 dreq"] != 8 {
		t.Errorf("the gateway confirms %v, expected 8 flows from fd00:18::2 that DREQ has ended", confirmed)
	}
}
