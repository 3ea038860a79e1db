package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/endpoint"
	"github.com/cnpgate/cnpgate/endpoint/runner"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// TestEndpointRefuses: mistakes on the command line are reported before a device is opened, which this binary can't do.
func TestEndpointRefuses(t *testing.T) {
	send := strings.Fields("endpoint send -i eth0 --address 10.0.0.1 --peer 10.0.0.2 --peer-mac 02:00:00:00:00:02 --trust 10.0.0.254")
	receive := strings.Fields("endpoint receive -i eth0 --address 10.0.0.2")
	with := func(args []string, more ...string) []string { return append(slices.Clip(args), more...) }
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"endpoint"}, `"endpoint" needs a command after it; expected one of:`},
		{send, "built without DPDK"},
		{receive, "built without DPDK"},
		{send[:len(send)-2], "missing: --trust; expected with a value"},
		{with(receive[:2], "--address", "10.0.0.2"), "missing: one of --interface, --device; see cnpgate endpoint receive --help"},
		{with(send, "--device", "net_null0"), "--device and --interface exclude each other"},
		{with(send, "--address", "10.0.0.300"), `--address: "10.0.0.300" is not a unicast IP address; expected one such as 10.0.0.1 or fd00::1`},
		{with(send, "--peer", "ff02::1"), `--peer: "ff02::1" is not a unicast IP address`},
		{with(send, "--peer-mac", "01:00:00:00:00:00"), "is not a unicast MAC address"},
		{with(send, "--trust", "10.0.0.1/8"), "--trust: 10.0.0.1/8 has host bits set; expected 10.0.0.0/8, or an address alone"},
		{with(send, "--accept", "long-haul"), `--accept: "long-haul" is not known; did you mean long-haul-cnp? Expected fast-cnp,`},
		{with(send, "--verb", "atomic"), `--verb: "atomic" is not known; expected write, send, read or rping`},
		{with(send, "--message", "64"), "expected a number with unit, such as 64KB"},
		{with(send, "--message", "2GiB"), "is too large; expected at most 2GiB less a byte"},
		{with(send, "--rate", "300"), `--rate: "300" is not a rate; expected a number with unit, such as 100Gbps`},
		{with(send, "--rate", "50Mbps,300Mbps"), `--rate: phase "50Mbps" has no duration`},
		{with(send, "--rate", "50Mbps:0s"), `--rate: phase "50Mbps:0s": 0s is no time; expected more than 0`},
		{with(send, "--rate", "50Mbps:1s", "--duration", "2s"), "expected one of them"},
		{with(receive, "--rate", "50Mbps:1s"), `--rate "50Mbps:1s" has phases; expected one rate`},
		{with(send, "--timeout", "0s"), "a timeout of 0 ns, an RTT of 1000000 ns and a CNP interval of 50000 ns; expected more than 0"},
		{with(send, "--rtt", "-1ms"), "an RTT of -1000000 ns"},
		{with(receive, "--cnp-interval", "0"), "a CNP interval of 0 ns"},
		{with(send, "--mtu", "0"), "a path MTU of 0 bytes; expected 1 to 9216"},
		{with(send, "--qps", "0"), "0 QPs; expected 1 to 4096"},
		{with(send, "--window", "1KB"), "a window of at least a packet of 1024"},
		{with(send, "--duration", "-1s"), "phase 1 of the load has"},
		{with(receive, "--first-qp", "0"), "the first QPs are 0 at this end and 256 at the other; expected numbers from 1 to 16777215"},
		{with(receive, "--peer-first-qp", "16777215", "--qps", "2"), "the first QPs are 512 at this end and 16777215 at the other"},
		{with(receive, "--psn", "16777216"), "a starting PSN of 16777216; expected 0 to 16777215"},
		{with(receive, "--accept", "ppfc,long-haul-cnp"), "both long-haul-cnp and ppfc are to be accepted"},
		{with(receive, "--accept", "ppfc,ppfc"), "built without DPDK"},
		{with(receive, "--peer", "fd00::1"), "the addresses 10.0.0.2 and fd00::1 have different IP versions"},
		{with(send, "--cm", "--psn", "5"), "--cm and --psn exclude each other"},
		{with(receive, "--cm", "--peer-first-qp", "5"), "--cm and --peer-first-qp exclude each other"},
		{with(receive, "--cm", "--cm-port", "0"), "--cm-port is 0; expected 1 to 65535"},
		{with(receive, "--cm"), "built without DPDK"},
		{with(send, "--cm"), "built without DPDK"}, // SEND
		{with(send, "--cm", "--verb", "write"), "--verb write with --cm needs --rkey and --virtual-address of the receiver's memory"},
		{with(send, "--cm", "--verb", "read", "--rkey", "0x1ff"), "only one of --rkey and --virtual-address is given"},
		{with(send, "--cm", "--verb", "write", "--rkey", "0x1ff", "--virtual-address", "0x7f0000001000"), "built without DPDK"},
		{with(send, "--cm", "--rkey", "1", "--virtual-address", "0"), "--verb send uses no --rkey and --virtual-address"},
		{with(send, "--verb", "rping"), "--verb rping needs --cm"},
		{with(send, "--cm", "--verb", "rping"), "built without DPDK"},
		{with(send, "--cm", "--verb", "rping", "--message", "64KiB"), "is too large for --verb rping; expected at most 65535B"},
		{with(send, "--cm", "--message", "0B"), "messages of 0 bytes"},
		{with(receive, "--cm", "--mtu", "1000"), "RDMA-CM knows 256, 512, 1024, 2048 and 4096 only"},
		{with(receive, "--cm", "--first-qp", "1"), "the first QP is 1, expected 2 to 16777148 for 66 connections of RDMA-CM"},
		{with(send, "-o", "yaml"), `--output: "yaml" is not known; expected text or json`},
	} {
		run := within
		if c.want == "built without DPDK" {
			run = cnpgate
		}
		got := run(t, t.TempDir(), c.args...)
		if got.status != 1 || !strings.Contains(got.stderr, c.want) {
			t.Errorf("%q: exit status %d, %s; expected %q", c.args, got.status, got.stderr, c.want)
		}
	}
}

// TestEndpointConfig: what the flags mean.
func TestEndpointConfig(t *testing.T) {
	f, flags := endpointFlags{}, &cobra.Command{}
	f.Send = true
	f.add(flags)
	config := func(more string) (c runner.Config, err error) {
		if err = flags.ParseFlags(strings.Fields(more)); err == nil {
			c, err = f.config(flags.Flags().Changed)
		}
		return c, err
	}
	f.verb, f.PeerMAC = "read", [6]byte{2, 0, 0, 0, 0, 2}
	c, err := config("--address ::ffff:10.0.0.1 --peer 10.0.0.2 --mtu 4096 --qps 3 --rate 50Mbps:500ms,300Mbps --trust 10.0.0.254,fd00::/16 --accept fast-cnp,ppfc")
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case c.Addr.String() != "10.0.0.1", c.PeerMAC != [6]byte{2, 0, 0, 0, 0, 2}, c.MAC != [6]byte{}, c.Verb != endpoint.Read, c.Message != 65536,
		c.Timeout != 67e6, len(c.Trusted) != 2 || c.Trusted[0].String() != "10.0.0.254/32" || c.Trusted[1].String() != "fd00::/16",
		len(c.Accept) != 2 || c.Accept[0] != packet.FastCNP || c.Accept[1] != packet.PPFC,
		len(c.Load) != 2 || c.Load[0] != (runner.Phase{Rate: 50_000_000, Length: 5e8}) || c.Load[1] != (runner.Phase{Rate: 300_000_000}):
		t.Errorf("the configuration is %+v", c)
	}
	if c.CMPort != 0 {
		t.Errorf("RDMA-CM at port %d, expected none", c.CMPort)
	}
	f.verb = ""
	if c, err = config("--cm --cm-port 99"); err != nil || c.CMPort != 99 || c.Seed == 0 {
		t.Errorf("%v: RDMA-CM at port %d, seed %d; expected 99 and another seed", err, c.CMPort, c.Seed)
	}
	f.duration = 3 * time.Second
	if c, err = config("--cm=false --rate 1Gbps"); err != nil || len(c.Load) != 1 || c.Load[0] != (runner.Phase{Rate: 1e9, Length: 3e9}) {
		t.Errorf("%v: the load is %+v, expected 1 Gbit/s for 3 s", err, c.Load)
	}
}

// TestEndpointReport: the text names what happened; JSON is the report itself.
func TestEndpointReport(t *testing.T) {
	r := &runner.Report{
		Role: "send", Address: "10.0.0.1", Peer: "10.0.0.2", Seconds: 5, Bytes: 60_000_000, GoodputBps: 96e6, Messages: 915, TimeOuts: 1, WentBack: 3,
		Notifications: runner.Notifications{Accepted: map[string]uint64{"reduced": 6, "paused": 20}, Refused: map[string]uint64{"untrusted-source": 2}},
		QPs:           []runner.QPReport{{QP: 0x100, PeerQP: 0x200, RateBps: 25e6, Bytes: 60_000_000}, {QP: 0x101, PeerQP: 0x201, Failed: true}},
	}
	r.CM = &runner.CMReport{Established: 2, Ended: map[string]uint64{"closed": 2}, Sent: 7, Repeated: 1, Received: map[string]uint64{"taken": 4}}
	r.Sent.Packets, r.Sent.Data, r.Sent.Retransmitted, r.Received.NAKs = 15000, 14900, 12, 2
	var b bytes.Buffer
	if err := writeEndpointReport(&b, r, "text"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"send: 10.0.0.1 with 10.0.0.2 for 5.0 s\n", "915 acknowledged, 0 failed: 60MB, goodput 96Mbps\n",
		"15000 packets: 14900 with data, 12 of them sent again", "3 times sent again, after 2 NAKs and 1 timeouts\n",
		"2 connections established, ended: closed 2; 7 messages sent, 1 of them sent again, received: taken 4\n",
		"accepted: paused 20, reduced 6; refused: untrusted-source 2\n", "QP 0x000100    with 0x000200: 60MB acknowledged, rate 25Mbps\n",
		"with 0x000201: 0B acknowledged, rate 0bps, failed\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	b.Reset()
	var again runner.Report
	if err := errors.Join(writeEndpointReport(&b, r, "json"), json.Unmarshal(b.Bytes(), &again)); err != nil || !reflect.DeepEqual(*r, again) {
		t.Errorf("%v: read back, the report is %+v", err, again)
	}
	b.Reset()
	next := *r
	next.Seconds, next.Bytes, next.Sent.Bytes = 6, 72_500_000, 12_750_000
	writeProgress(&b, r, &next)
	if want := "6 s: sent 102Mbps, acknowledged 100Mbps, 0 packets sent again, 0 notifications accepted, rates of the QPs together 25Mbps\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}
