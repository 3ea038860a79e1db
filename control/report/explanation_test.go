package report_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/control/assemble"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/notify"
	"github.com/cnpgate/cnpgate/dataplane/respond"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
)

const explainedConfig = `gateway: {name: gw, ipv4: 192.0.2.1}
ports:
  - {name: dc, device: d0, role: fabric, peer: wan, rate: 10Gbps}
  - {name: wan, device: d1, role: wan, peer: dc, rate: 1Mbps}
profiles: {default: {mode: thresholds, k_base: 4KB}}
flows: {capacity: 1Ki}
endpoints: [{prefix: 10.1.0.0/16, accepts: [standard-cnp]}]
notifications: {mode: send, standard_cnp: {enabled: true}, limits: {per_port: 1000000/s}}
qp_map: [{source_ip: 10.1.0.1, destination_ip: 10.9.0.9, source_qp: 50, destination_qp: 100}]
`

// TestGates: a gateway with a configuration gets packets until its queue is long. The gate that stops notifications is the one whose reason the gateway
// counts, and it names the key.
func TestGates(t *testing.T) {
	const law, thresholds = "{mode: law, target_delay: 10ms}", "{mode: thresholds, k_base: 4KB}"
	encapsulate := func(f []byte) []byte { return testkit.VXLAN(f, 77, packet.ECT0, false) }
	for _, c := range []struct {
		name, old, new string
		in             func([]byte) []byte
		port           int // at which packets arrive
		silent         int64
		gate, reason   string // that stops or, with wait, waits
		wait           bool
		key            string
	}{
		{name: "notified"},
		{name: "no endpoint", old: "10.1.0.0/16", new: "10.2.0.0/16", gate: "grant", reason: "no-endpoint", key: "endpoints: add {prefix: 10.1.0.1/32, accepts: [standard-cnp]}"},
		{name: "nothing accepted", old: "[standard-cnp]", new: "[]", gate: "grant", reason: "nothing-accepted", key: "endpoints[].accepts"},
		{name: "not enabled", old: "enabled: true", new: "enabled: false", gate: "format", reason: "not-enabled", key: "notifications.standard_cnp.enabled: true"},
		{name: "no address", old: "[standard-cnp]", new: "[long-haul-cnp]", gate: "format", reason: "no-gateway-address", key: "gateway.ipv4 and gateway.ipv6"},
		{name: "action", old: "[standard-cnp]", new: "[ppfc]", gate: "format", reason: "action-not-expressible", key: "profiles.NAME.policy, or endpoints[].accepts"},
		{name: "QP", old: "10.9.0.9", new: "10.9.0.8", gate: "source-qp", reason: "source-qp-unknown", key: "qp_map, or give a hint by cnpgate hint"},
		{name: "tunnel", in: encapsulate, gate: "recipient", reason: "encapsulated", key: "proxy.senders: add {prefix: 10.1.0.1/32, proxy: ADDRESS}"},
		{name: "observe", old: "mode: send", new: "mode: observe", gate: "mode", key: "notifications.mode: send"},
		{name: "observe one kind", old: "enabled: true", new: "enabled: observe", gate: "mode", key: "notifications.standard_cnp.enabled: true"},
		{name: "short queue", old: "rate: 1Mbps", new: "rate: 10Gbps", gate: "queue", key: "ports[].rate"},
		{name: "from the WAN", port: 1, gate: "path", key: "ports[].role"},
		{name: "silent", silent: 20e9, gate: "flow"},
		{name: "silent, and no endpoint", old: "10.1.0.0/16", new: "10.2.0.0/16", silent: 20e9, gate: "grant", reason: "no-endpoint",
			key: "endpoints: add {prefix: 10.1.0.1/32, accepts: [standard-cnp]}"},
		{name: "CE on arrival", old: "rate: 1Mbps", new: "rate: 10Gbps"},
		{name: "limit of a flow", old: "per_port: 1000000/s", new: "per_flow: 1h", gate: "limits", reason: "flow-limit", wait: true, key: "notifications.limits.per_flow"},
		{name: "limit of a sender", old: "per_port: 1000000/s", new: "per_destination: 1/s", gate: "limits", reason: "destination-limit", wait: true, key: "notifications.limits.per_destination"},
		{name: "limit of a port", old: "per_port: 1000000/s", new: "per_port: 1/s", gate: "limits", reason: "port-limit", wait: true, key: "notifications.limits.per_port"},
	} {
		for _, mode := range []string{thresholds, law} {
			byThresholds := c.reason == "flow-limit" || c.reason == "action-not-expressible" // only then
			if mode == law && byThresholds {
				continue
			}
			t.Run(c.name+" "+mode, func(t *testing.T) {
				text := strings.Replace(strings.Replace(explainedConfig, c.old, c.new, 1), thresholds, mode, 1)
				switch c.name {
				case "no address":
					text = strings.NewReplacer("ipv4: 192.0.2.1", `ipv6: "fd00::1"`, "standard_cnp:", "long_haul_cnp:").Replace(text)
				case "CE on arrival":
					text = strings.NewReplacer("mode: thresholds", "mode: thresholds, ce_on_arrival: true", "mode: law", "mode: law, ce_on_arrival: true").Replace(text)
				case "action":
					text = strings.NewReplacer("standard_cnp:", "ppfc:", "k_base: 4KB", "k_base: 4KB, actions: [mark, notify]").Replace(text)
				}
				cfg, err := config.Parse("test.yaml", []byte(text))
				if err != nil {
					t.Fatal(err)
				}
				ecn := uint8(packet.ECT0)
				if c.name == "CE on arrival" {
					ecn = packet.CE
				}
				frame := testkit.RoCE{Src: "10.1.0.1", Dst: "10.9.0.9", DestQP: 100, Size: 1000, ECN: ecn}.Frame()
				if c.in != nil {
					frame = c.in(frame)
				}
				r := testkit.New(t, testkit.Setup{Buffers: 20_000, Forget: true, Change: func(d *dataplane.Config) {
					s, err := assemble.Settings(cfg, 1, 1, nil)
					if err != nil {
						t.Fatal(err)
					}
					s.Backends, s.Allocate = d.Backends, d.Allocate
					*d = s
				}})
				for range 200 {
					r.Inject(t, c.port, frame)
					r.Settle()
					r.Advance(20_000)
				}
				if c.silent > 0 {
					r.Advance(c.silent)
				}
				e := explained(t, r, cfg)
				gates, state := e.Gates(), report.Stops
				if c.wait {
					state = report.Waits
				}
				i := slices.IndexFunc(gates, func(g report.Gate) bool { return g.State == state })
				if !c.wait {
					i = report.FirstStop(gates)
				}
				switch {
				case c.gate == "":
					if i >= 0 || !e.Notified() {
						t.Errorf("not notified: %+v", gates)
					}
				case i < 0 || gates[i].Name != c.gate || gates[i].Reason != c.reason || gates[i].Key != c.key || gates[i].Text == "":
					t.Errorf("the gates are %+v, want %s %s %s", gates, c.gate, c.reason, c.key)
				}
				stats := r.Plane.Port(0)
				counted := stats.Values()["notifications_suppressed_total"].By
				if c.reason != "" && counted[c.reason] == 0 {
					t.Errorf("counted %v, want %s", counted, c.reason)
				}
				r.Drain()
				r.Close(t)
			})
		}
	}
}

// TestLastResort: what is configured decides what keeps a full queue from dropping.
func TestLastResort(t *testing.T) {
	const wan = "{name: wan, device: d1, role: wan, peer: dc, rate: 1Mbps"
	for _, c := range []struct{ fabric, wan, want string }{
		{"", "", "marks, then loss"},
		{"", ", pacing: {enabled: true, senders: [10.1.0.0/16]}", "pacing of the port's senders"},
		{", flow_control: {}", ", queue_capacity: 8MB, traffic_classes: [{name: rdma, priority: 3, lossless: true}]", "PFC, which stops priority 3 of the fabric above 7.84MB"},
		{", flow_control: {}", ", queue_capacity: 8MB, traffic_classes: [{name: other, dscp: [1]}, {name: rdma, priority: 3, lossless: true}]", "marks, then loss"},
	} {
		text := strings.NewReplacer(wan, wan+c.wan, "rate: 10Gbps}", "rate: 10Gbps"+c.fabric+"}", "mode: thresholds, k_base: 4KB", "mode: law").Replace(explainedConfig)
		cfg, err := config.Parse("test.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := report.LastResort(cfg, 1, 0); got != c.want {
			t.Errorf("%s: %q, want %q", c.wan, got, c.want)
		}
	}
}

// explained is the one flow of a rig, with its standing.
func explained(t *testing.T, r *testkit.Rig, cfg *config.Config) *report.Explained {
	t.Helper()
	address := func(s string) packet.Addr { return packet.AddrFrom(netip.MustParseAddr(s)) }
	s := &dataplane.Snapshot{Flows: make([]dataplane.FlowRecord, 0, 4), Between: &dataplane.Between{
		A: address("10.9.0.9"), B: address("10.1.0.1"), Standings: make([]respond.Standing, 0, 4)}}
	w := r.Plane.Worker(0)
	for w.Ask(s); w.Asked(s); {
		w.Step()
	}
	if len(s.Flows) != 1 {
		t.Fatalf("the flows are %+v", s.Flows)
	}
	e := &report.Explained{Config: cfg, Policy: r.Plane.Policy(), Flow: &s.Flows[0], Standing: &s.Between.Standings[0]}
	last := make([]notify.NotificationRecord, 1)
	if n, _ := w.Notifications().Read(max(w.Notifications().Recorded(), 1)-1, last); n == 1 {
		e.Last = &last[0]
	}
	return e
}
