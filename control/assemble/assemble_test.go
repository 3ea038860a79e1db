package assemble

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/host"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/burst/inmem"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/ratelimit"
)

func parse(t *testing.T, text string) *config.Config {
	t.Helper()
	c, err := config.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const full = `gateway: {name: gw, ipv6: "fd00:ffff::1"}
ports:
  - {name: dc, device: d0, role: fabric, peer: wan, rate: 100Gbps, mtu: 1500}
  - {name: wan, device: d1, role: wan, peer: dc, rate: 10Gbps, rtt: 10ms, mtu: 9000, queue_capacity: 64MiB,
     traffic_classes: [{name: urgent, dscp: [48, 46]}, {name: rdma, dscp: [26]}, {name: rest}]}
flows: {capacity: 1Ki}
endpoints:
  - {prefix: "fd00:1::/32", accepts: [long-haul-cnp-icmpv6, fast-cnp]}
  - {prefix: "fd00:1:1::/48", accepts: []}
notifications:
  dscp: 40
  fast_cnp: {enabled: true, option_type: 0x8A, trace_option_type: 0x8B, icrc_extension_headers: false}
  long_haul_cnp: {enabled: true, icmpv6_type: 201, extension_class: 250, reduce_percent: 45, disclose_metrics: false}
  limits: {per_destination: 5/s, per_port: 7/s}
qp_map: [{source_ip: 10.1.0.1, destination_ip: 10.9.0.9, source_qp: 50, destination_qp: 100}]
proxy: {port: 1021}
domain: {members: ["fd00:1::/32"], notification_sources: ["fd00:8::/32"]}
`

// TestPolicy: every setting that workers go by reaches them.
func policy(t *testing.T, c *config.Config) *dataplane.Policy {
	t.Helper()
	p, err := Policy(c, 1)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPolicy(t *testing.T) {
	p := policy(t, parse(t, full))
	if b := p.Build; b.HasIPv4 || !b.HasIPv6 || b.IPv6 != packet.AddrFrom(netip.MustParseAddr("fd00:ffff::1")) || b.DSCP != 40 ||
		b.ICRCExtensionHeaders || b.Code != (packet.CodePoints{
		FastCNPOption: 0x8a, FastCNPTraceOption: 0x8b, LongHaulICMPv6Type: 201, ExtensionClass: 250, ProxyPort: 1021,
	}) {
		t.Errorf("builds with %+v", b)
	}
	if p.Observe || p.PerDestination != ratelimit.PerSecond(5) || p.PerPort != ratelimit.PerSecond(7) || p.Domain == nil {
		t.Errorf("the policy is %+v", p)
	}
	const bdp = 12_500_000 // octets: 10 Gbps for 10 ms
	if w := p.Ports[1]; w.PerFlow != 10e6 || w.Thresholds != (congestion.Thresholds{KMin: bdp / 2, KMax: bdp}) || w.Disclose || !w.Depth || !w.Marks ||
		!w.Resumes || w.ResumePercent != 50 || w.RTT != 10e6 || w.Rate != 10e9 || w.Interval != 100e3 || w.Ladder[2].Percent != 45 {
		t.Errorf("the WAN port's policy is %+v", w)
	}
	for _, c := range []struct {
		host   string
		known  bool
		format packet.Notification
		reason congestion.Reason
	}{
		{"fd00:1::1", true, packet.LongHaulCNPICMPv6, congestion.OK},
		{"fd00:1::1", false, packet.FastCNP, congestion.OK},
		{"fd00:1:1::1", true, 0, congestion.NothingAccepted},
		{"fd00:2::1", true, 0, congestion.NoEndpoint},
		{"10.1.0.1", true, 0, congestion.NoEndpoint},
	} {
		format, reason := choose(p.Who, c.host, c.known, false, congestion.RateReduce)
		if format != c.format || reason != c.reason {
			t.Errorf("%s is notified by %v (%v), want %v (%v)", c.host, format, reason, c.format, c.reason)
		}
	}
}

// TestModeAndFormats: the settings for observe mode, P_Keys, PPFC and standard CNPs reach the workers.
func TestModeAndFormats(t *testing.T) {
	const more = "notifications:\n  mode: observe\n  p_key: flow\n  ppfc: {enabled: true}\n  standard_cnp: {enabled: true}"
	text := strings.NewReplacer("notifications:", more, "[long-haul-cnp-icmpv6, fast-cnp]", "[ppfc, standard-cnp]").Replace(full)
	p := policy(t, parse(t, text))
	if !p.Observe || !p.Build.FlowPKey {
		t.Errorf("observes %v, P_Key of the flow %v", p.Observe, p.Build.FlowPKey)
	}
	if q := policy(t, parse(t, full)); q.Observe || q.Build.FlowPKey || q.Who.Enabled[packet.PPFC] || q.Who.Enabled[packet.StandardCNP] {
		t.Errorf("without these keys: %+v", q)
	}
	for action, want := range map[congestion.Action]packet.Notification{
		congestion.Notify: packet.StandardCNP, congestion.RateReduce: packet.PPFC, congestion.Pause: packet.PPFC, congestion.Resume: packet.PPFC,
	} {
		format, reason := choose(p.Who, "fd00:1::1", true, false, action)
		if format != want || reason != congestion.OK {
			t.Errorf("%v is asked for by %v (%v), want %v", action, format, reason, want)
		}
	}
}

// TestObservedKindsAndExtensions: the settings for single kinds and for the content of notifications reach the workers.
func TestObservedKindsAndExtensions(t *testing.T) {
	p := policy(t, parse(t, strings.Replace(full, "notifications:", "notifications:\n  ppfc: {enabled: observe}\n  standard_cnp: {enabled: true}", 1)))
	if want := (dataplane.Policy{ObserveKind: [packet.SentNotifications]bool{packet.PPFC: true}}); p.ObserveKind != want.ObserveKind || p.Observe {
		t.Errorf("observes %v", p.ObserveKind)
	}
	if p.Timestamp || p.Extension != nil {
		t.Errorf("by default, notifications have %+v", p.Extension)
	}
	const extensions = "long_haul_cnp: {extensions: {timestamp: true, device: gw, path: blue}, "
	if p = policy(t, parse(t, strings.Replace(full, "long_haul_cnp: {", extensions, 1))); !p.Timestamp || string(p.Extension.Device) != "gw" || string(p.Extension.Path) != "blue" {
		t.Errorf("timestamp %v, extension %+v", p.Timestamp, p.Extension)
	}
}

// TestNothingIsOnByDefault (draft fast-cnp-05 5, draft-tian 10.5).
func TestNothingIsOnByDefault(t *testing.T) {
	p := policy(t, parse(t, strings.NewReplacer("enabled: true", "enabled: false").Replace(full)))
	if p.Who.Enabled != ([packet.SentNotifications]bool{}) {
		t.Errorf("enabled: %+v", p.Who.Enabled)
	}
	if _, reason := choose(p.Who, "fd00:1::1", true, false, congestion.Notify); reason != congestion.NotEnabled {
		t.Errorf("reason %v, want not-enabled", reason)
	}
}

// TestProxies: senders behind proxies, their limit and mode reach the workers if proxies are enabled, and nothing of them does otherwise.
func TestProxies(t *testing.T) {
	const lines = "proxy: {senders: [{prefix: 10.1.0.0/16, proxy: 10.1.0.9}], limits: {per_proxy: 9/s}, port: 1021}"
	sender := packet.AddrFrom(netip.MustParseAddr("10.1.0.1"))
	p := policy(t, parse(t, strings.Replace(full, "proxy: {port: 1021}", strings.Replace(lines, "{", "{enabled: observe, ", 1), 1)))
	if to, ok := p.Proxies.Lookup(sender); !ok || to != packet.AddrFrom(netip.MustParseAddr("10.1.0.9")) || p.Proxies.Len() != 1 {
		t.Errorf("the proxy of %v is %v, %v", sender.Netip(), to.Netip(), ok)
	}
	if !p.Who.Enabled[packet.ProxyNotification] || !p.ObserveKind[packet.ProxyNotification] || p.PerProxy != ratelimit.PerSecond(9) || p.Build.Code.ProxyPort != 1021 {
		t.Errorf("enabled %v, observed %v, limit %v, port %d", p.Who.Enabled, p.ObserveKind, p.PerProxy, p.Build.Code.ProxyPort)
	}
	for _, text := range []string{full, strings.Replace(full, "proxy: {port: 1021}", lines, 1)} {
		if p := policy(t, parse(t, text)); p.Proxies != nil || p.Who.Enabled[packet.ProxyNotification] {
			t.Errorf("not enabled, and the workers have %d proxies, enabled %v", p.Proxies.Len(), p.Who.Enabled)
		}
	}
	if p := policy(t, parse(t, strings.Replace(full, "proxy: {port: 1021}", "proxy: {enabled: true}", 1))); p.Proxies == nil || p.Proxies.Len() != 0 {
		t.Error("enabled without senders: expected an empty map, which learned senders are added to")
	}
}

// TestPorts: rates, capacities and the class of each DSCP.
func TestPorts(t *testing.T) {
	s, err := Settings(parse(t, full), 1, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := s.Ports
	if p[0].Role != dataplane.Fabric || p[0].Peer != 1 || p[0].Rate != 100e9 || p[0].Classes != 1 || p[0].ClassOf != ([64]uint8{}) {
		t.Errorf("the fabric port is %+v", p[0])
	}
	if p[1].Role != dataplane.WAN || p[1].Peer != 0 || p[1].Capacity != 64<<20 || p[1].Frames != 64<<10 || p[1].Classes != 3 {
		t.Errorf("the WAN port is %+v", p[1])
	}
	for dscp, class := range p[1].ClassOf {
		want := uint8(2)
		switch dscp {
		case 46, 48:
			want = 0
		case 26:
			want = 1
		}
		if class != want {
			t.Errorf("DSCP %d is of class %d, want %d", dscp, class, want)
		}
	}
}

// TestSizes: the largest frame has two tags, and the number of frames covers all that can be held at once.
func TestSizes(t *testing.T) {
	c := parse(t, full)
	if got, want := LargestFrame(c), 9000+14+8; got != want {
		t.Errorf("the largest frame has %d bytes, want %d", got, want)
	}
	queues := 1024 + 3*65536 // 1 MiB, and three classes of 64 MiB
	if got, want := Frames(c, 2), queues+2*dataplane.WorkerFrames(2, 32); got != want {
		t.Errorf("%d frames, want %d", got, want)
	}
}

// TestFramesAreEnough: with every queue full and a burst on top no frame lacks a buffer, and every one comes back.
func TestFramesAreEnough(t *testing.T) {
	c := parse(t, `gateway: {name: gw, ipv4: 192.0.2.1}
ports:
  - {name: dc, device: d0, role: fabric, peer: wan, rate: 100kbps, queue_capacity: 128KiB, traffic_classes: [{name: a, dscp: [1]}, {name: b}]}
  - {name: wan, device: d1, role: wan, peer: dc, rate: 100kbps, queue_capacity: 128KiB, traffic_classes: [{name: a, dscp: [1]}, {name: b}]}
flows: {capacity: 1Ki}
`)
	var memory Memory
	defer func() {
		if err := memory.Release(); err != nil {
			t.Error(err)
		}
	}()
	buffers, err := memory.Allocate(64 * Frames(c, 1))
	if err != nil {
		t.Fatal(err)
	}
	b, err := inmem.New(inmem.Config{Ports: 2, Burst: c.DPDK.Burst, BufferSize: 64, Memory: buffers})
	if err != nil {
		t.Fatal(err)
	}
	plane, err := Dataplane(c, Options{Backends: []burst.Backend{b}, Memory: &memory})
	if err != nil {
		t.Fatal(err)
	}
	frame := make([]byte, 60)
	copy(frame[12:], "\x08\x00\x45\x04\x00\x2e") // IPv4, DSCP 1, 46 octets
	for range 20 {
		for _, tos := range []byte{1 << 2, 0} {
			frame[15] = tos
			for port := range 2 {
				for range c.DPDK.Burst {
					if !b.Inject(port, frame, 60) {
						t.Fatalf("no buffer with %d in use", b.InUse())
					}
				}
			}
			plane.Worker(0).Step()
		}
	}
	if dropped := plane.Port(0).Count[counters.DroppedQueueFrames] + plane.Port(1).Count[counters.DroppedQueueFrames]; dropped == 0 {
		t.Error("the queues are not full")
	}
	plane.Worker(0).Close()
	if n := b.InUse(); n != 0 {
		t.Errorf("%d buffers were not given back", n)
	}
}

// TestQPMap: both directions of an entry are known to the flow table.
func TestQPMap(t *testing.T) {
	m := policy(t, parse(t, full)).QPMap
	a, z := packet.AddrFrom(netip.MustParseAddr("10.1.0.1")), packet.AddrFrom(netip.MustParseAddr("10.9.0.9"))
	if qp, ok := m.Lookup(a, z, 100); !ok || qp != 50 {
		t.Errorf("forward: %d, %v", qp, ok)
	}
	if qp, ok := m.Lookup(z, a, 50); !ok || qp != 100 {
		t.Errorf("reverse: %d, %v", qp, ok)
	}
}

// TestMemory that can't be had is an error that says what to lower.
func TestMemory(t *testing.T) {
	var m Memory
	if _, err := m.Allocate(1 << 62); err == nil || !strings.Contains(err.Error(), "lower flows.capacity") {
		t.Errorf("error %v", err)
	}
	b, err := m.Allocate(4096)
	if err != nil || len(b) != 4096 || b[0] != 0 {
		t.Fatalf("%d octets, %v", len(b), err)
	}
	if err := m.Release(); err != nil {
		t.Error(err)
	}
	if err := m.Release(); err != nil {
		t.Errorf("released twice: %v", err)
	}
}

// TestProxyNode: the gateway is a proxy only with proxy.enabled and proxy.sources, with its addresses and limits.
func TestProxyNode(t *testing.T) {
	const lines = "proxy: {enabled: true, sources: [203.0.113.0/24], limits: {per_source: 9/s, received: 0}}"
	c := parse(t, strings.Replace(full, "proxy: {port: 1021}", lines, 1))
	want := host.NewProxy(netip.Addr{}, netip.MustParseAddr("fd00:ffff::1"), netip.Addr{}, []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}, 9, 0)
	if p := policy(t, c); !reflect.DeepEqual(p.Proxy, want) {
		t.Errorf("the proxy is %+v, expected %+v", p.Proxy, want)
	}
	listening := parse(t, strings.Replace(full, "proxy: {port: 1021}", strings.Replace(lines, "{", "{listen: 192.0.2.77, ", 1), 1))
	want = host.NewProxy(netip.Addr{}, netip.MustParseAddr("fd00:ffff::1"), netip.MustParseAddr("192.0.2.77"), []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}, 9, 0)
	if p := policy(t, listening); !reflect.DeepEqual(p.Proxy, want) {
		t.Errorf("the proxy is %+v, expected %+v", p.Proxy, want)
	}
	for _, other := range []string{"proxy: {port: 1021}", "proxy: {enabled: true}", strings.Replace(lines, "true", "false", 1)} {
		if p := policy(t, parse(t, strings.Replace(full, "proxy: {port: 1021}", other, 1))); p.Proxy != nil {
			t.Errorf("%s: the gateway is a proxy", other)
		}
	}
	addresses := [][6]byte{{2, 1}, {2, 2}}
	s, err := Settings(c, 1, 1, addresses)
	if err != nil {
		t.Fatal(err)
	}
	for i, mac := range addresses {
		if s.Ports[i].Address != mac {
			t.Errorf("port %d has the address %v", i, s.Ports[i].Address)
		}
	}
}

// TestTrust: whatever the sources, one receiver's passive samples are no RTT_est; and without the operator's lower bound one below half of the
// configured RTT is refused.
func TestTrust(t *testing.T) {
	for bounds, want := range map[string]congestion.Trust{
		"": {Least: 5e6, Receivers: 3}, ", rtt_bounds: {max: 20ms}": {Least: 5e6, Receivers: 3}, ", rtt_bounds: {min: 2ms}": {Receivers: 3},
	} {
		p := policy(t, parse(t, strings.Replace(full, "rtt: 10ms", "rtt: 10ms, rtt_sources: [passive, configured]"+bounds, 1)))
		if got := p.Ports[1].Trust; got != want {
			t.Errorf("%q: %+v, expected %+v", bounds, got, want)
		}
	}
}

// choose is the format for a request to a host.
func choose(p *congestion.Policy, host string, known, refused bool, a congestion.Action) (packet.Notification, congestion.Reason) {
	src := packet.AddrFrom(netip.MustParseAddr(host))
	return p.Choose(&congestion.Recent{}, &src, known, refused, a)
}
