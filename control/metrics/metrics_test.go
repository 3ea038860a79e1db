package metrics

import (
	"context"
	"io"
	"log"
	"net/http"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/cnpgate/cnpgate/control/advertise"
	"github.com/cnpgate/cnpgate/control/assemble"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/control/fleetlink"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/fleet"
	"github.com/cnpgate/cnpgate/health"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/burst/inmem"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/telemetry"
)

const text = `
gateway: {name: test, ipv4: 192.0.2.1}
flows: {capacity: 1Ki}
ports:
  - {name: dc, device: none0, role: fabric, peer: line, rate: 1Gbps, queue_capacity: 1MB}
  - name: line
    device: none1
    role: wan
    peer: dc
    rate: 1Gbps
    rtt: 4ms
    queue_capacity: 2MB
    traffic_classes: [{name: control, dscp: [48]}, {name: rest}]
`

// source is a gateway that has forwarded eleven packets; one more waits.
func source(t *testing.T) Source {
	t.Helper()
	c, err := config.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	memory, _ := testkit.Heap(2048 * 1024)
	b, err := inmem.New(inmem.Config{Ports: 2, Burst: 32, BufferSize: 2048, Memory: memory})
	if err != nil {
		t.Fatal(err)
	}
	d, err := assemble.Dataplane(c, assemble.Options{Backends: []burst.Backend{b}})
	if err != nil {
		t.Fatal(err)
	}
	frame := testkit.RoCE{Src: "198.18.0.1", Dst: "198.19.0.1", DestQP: 7, Size: 476}.Frame()
	now := int64(testkit.Epoch)
	for range 12 {
		if !b.Inject(0, frame, uint32(len(frame))) {
			t.Fatal("no buffer")
		}
	}
	for range 11 {
		b.SetTime(now)
		d.Worker(0).Step()
		now += 4_000 // 500 octets at 1 Gbps
	}
	b.SetTime(now + 2_000_000 - 4_000) // workers publish histograms every millisecond
	d.Worker(0).Step()
	counters := func() *report.Counters {
		n := report.MakeCounters(c, d)
		n.Histograms = report.MakeHistograms(c, d)
		n.Ports[1].Device = telemetry.Values{telemetry.DeviceMissed.Name: {Value: 3}}
		return n
	}
	return Source{
		Counters: counters, Problems: func() map[string]string { return map[string]string{"dc": "no link"} },
		Build: Build{Version: "v1", Commit: "c0ffee", DPDK: "DPDK 22.11"}, Hash: c.File.Hash,
		RDMA: func() *health.Report {
			r := (&health.Builder{}).Report(nil, 0)
			r.Verdicts = []health.Verdict{{Name: health.ShortTimeOut, Connections: 2}}
			r.Prefixes = []health.Sum{{Name: "10.1.0.0/24 -> 10.9.0.0/24", Totals: health.Totals{
				GoodputBytes: 4096, LostUpstream: 3, LostDownstream: 5, Causes: map[string]health.Amount{health.Spurious.String(): {Packets: 7}},
			}}}
			return r
		},
		BGP: func() advertise.Status {
			return advertise.Status{Running: true, Peers: []advertise.Peer{
				{Address: "192.0.2.10", State: advertise.Established, Announced: 2, Received: 5, Learned: 3, Ignored: map[string]int{"malformed": 1}},
				{Address: "2001:db8::10", State: "active"},
			}}
		},
		Fleet: func() fleetlink.FleetStatus {
			s := fleetlink.None()
			s.Enabled = true
			s.Members = []fleet.MemberView{{Name: "gw1", Self: true, State: "active"}, {Name: "gw2", State: "active", RoundUS: 250}, {Name: "gw3", State: "silent"}}
			s.Connections = []fleetlink.FleetConnection{{URL: "tls://192.0.2.2:4222", Connected: true}, {URL: "tls://192.0.2.3:4222"}}
			s.Shares = fleetlink.FleetShares{Wants: 4, Wanted: 5, RemoteFlows: 6, Pairs: 7}
			s.Counters = map[string]uint64{"sent_status": 8, "received_status": 9, "sent_bytes": 10, "received_bytes": 11, "dropped_in": 12, "adopted": 13}
			s.Refused = map[string]uint64{"hints of h1": 14}
			return s
		},
	}
}

// TestMetrics: values, labels and units are those of the gateway.
func TestMetrics(t *testing.T) {
	s := source(t)
	server, err := Open("127.0.0.1:0", s, log.New(io.Discard, "", 0))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	answer, err := http.Get("http://" + server.Address() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	for _, want := range []string{
		"# HELP cnpgate_received_packets_total Frames received by this port. SONiC: RX_OK. OpenConfig: in-pkts.",
		"# TYPE cnpgate_received_packets_total counter",
		`cnpgate_received_packets_total{port="dc"} 12`,
		`cnpgate_forwarded_packets_total{port="line"} 11`,
		`cnpgate_queued_packets{port="line"} 1`,
		`cnpgate_queue_depth_bytes{class="rest",port="line"} `,
		`cnpgate_queue_depth_bytes{class="control",port="line"} 0`,
		`cnpgate_dropped_packets_total{port="line",reason="queue-full-bytes"} 0`,
		`cnpgate_rtt_estimate_seconds{port="line"} 0.004`,
		`cnpgate_k_max_bytes{port="line"} 500000`,
		`cnpgate_queue_capacity_bytes{port="line"} 2e+06`,
		`cnpgate_adjusted_ratio{port="line"} 1`,
		`cnpgate_device_missed_packets_total{port="line"} 3`,
		"cnpgate_flows 1",
		`cnpgate_build_info{commit="c0ffee",config_hash="` + s.Hash() + `",dpdk_version="DPDK 22.11",go_version="` + runtime.Version() + `",version="v1"} 1`,
		`cnpgate_queue_occupancy_bytes_bucket{class="rest",port="line",le="1024"} `, `cnpgate_queue_occupancy_bytes_count{class="control",port="line"} `,
		`cnpgate_loop_gap_seconds_bucket{worker="0",le="2.048e-06"} 0`, `cnpgate_loop_gap_seconds_bucket{worker="0",le="4.096e-06"} 10`,
		`cnpgate_loop_gap_seconds_bucket{worker="0",le="+Inf"} 11`, `cnpgate_loop_gap_seconds_sum{worker="0"} 0.00204`, `cnpgate_loop_gap_seconds_count{worker="0"} 11`,
		`cnpgate_reaction_time_seconds_count{port="dc"} 0`, "Queue depth, sampled once a millisecond; sum divided by count is the average. OpenConfig: avg-queue-len.",
		`cnpgate_port_healthy{port="dc"} 0`, `cnpgate_port_healthy{port="line"} 1`,
		`cnpgate_bgp_session_established{peer="192.0.2.10"} 1`, `cnpgate_bgp_session_established{peer="2001:db8::10"} 0`,
		`cnpgate_bgp_routes_announced{peer="192.0.2.10"} 2`, `cnpgate_bgp_routes_received{peer="192.0.2.10"} 5`,
		`cnpgate_bgp_prefixes_learned{peer="192.0.2.10"} 3`, `cnpgate_bgp_routes_ignored{peer="192.0.2.10",reason="malformed"} 1`,
		`cnpgate_bgp_routes_ignored{peer="2001:db8::10",reason="other-next-hop"} 0`,
		`cnpgate_fleet_members{state="active"} 2`, `cnpgate_fleet_members{state="silent"} 1`, `cnpgate_fleet_round_trip_seconds{member="gw2"} 0.00025`,
		`cnpgate_fleet_connected{server="tls://192.0.2.2:4222"} 1`, `cnpgate_fleet_connected{server="tls://192.0.2.3:4222"} 0`,
		`cnpgate_fleet_sent_messages_total{kind="status"} 8`, `cnpgate_fleet_received_messages_total{kind="status"} 9`,
		`cnpgate_fleet_bytes_total{direction="sent"} 10`, `cnpgate_fleet_bytes_total{direction="received"} 11`, `cnpgate_fleet_dropped_messages_total{direction="received"} 12`,
		`cnpgate_fleet_refused_messages_total{reason="hints of h1"} 14`, "cnpgate_fleet_remote_flows 6", "cnpgate_fleet_pairs 7",
		`cnpgate_fleet_wants{by="self"} 4`, `cnpgate_fleet_wants{by="others"} 5`, "cnpgate_fleet_adopted_flows_total 13",
		`cnpgate_rdma_goodput_bytes{prefixes="10.1.0.0/24 -> 10.9.0.0/24"} 4096`,
		`cnpgate_rdma_retransmitted_packets{cause="spurious",prefixes="10.1.0.0/24 -> 10.9.0.0/24"} 7`,
		`cnpgate_rdma_lost_packets{prefixes="10.1.0.0/24 -> 10.9.0.0/24",where="upstream"} 3`,
		`cnpgate_rdma_lost_packets{prefixes="10.1.0.0/24 -> 10.9.0.0/24",where="downstream"} 5`,
		`cnpgate_rdma_verdict_connections{verdict="timeout-shorter-than-rtt"} 2`,
		"go_goroutines ", "process_resident_memory_bytes ",
	} {
		if !strings.Contains(string(body), want) {
			t.Errorf("%q is missing", want)
		}
	}
	if m := regexp.MustCompile(`(?m)^cnpgate_device_missed_packets_total\{port="dc"\}.*`).Find(body); m != nil {
		t.Errorf("a device that counts nothing has %s", m)
	}
	if t.Failed() {
		t.Logf("%s", body)
	}
	answer, err = http.Post("http://"+server.Address()+"/metrics", "", nil)
	if err != nil || answer.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %v, %v", answer, err)
	}
	_ = answer.Body.Close()
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// TestLint: Prometheus' own linter finds nothing, and all metrics that the catalogue has for this gateway are there.
func TestLint(t *testing.T) {
	r := registry(source(t))
	problems, err := testutil.GatherAndLint(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, prefix) {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
	for i := range catalogue {
		m := &catalogue[i]
		name := regexp.MustCompile(`fqName: "([^"]+)"`).FindStringSubmatch(m.desc.String())[1]
		n, err := testutil.GatherAndCount(r, name)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 && m.Scope != telemetry.Device && m.Label == "" && m.Name != telemetry.ConfigFileDiffers.Name && m.Name != telemetry.LogLinesLost.Name { // that is of a gateway that runs
			t.Errorf("%s has no value", name)
		}
	}
}

// TestAddressInUse: the error says which address it is.
func TestAddressInUse(t *testing.T) {
	first, err := Open("127.0.0.1:0", source(t), log.Default())
	if err != nil {
		t.Fatal(err)
	}
	defer first.listener.Close()
	if _, err := Open(first.Address(), source(t), log.Default()); err == nil || !strings.Contains(err.Error(), first.Address()) {
		t.Errorf("%v, want an error that names %s", err, first.Address())
	}
}
