package metrics

import (
	"runtime"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cnpgate/cnpgate/control/advertise"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/telemetry"
)

const prefix = "cnpgate_"

// collector reads the gateway at each scrape.
type collector struct{ source Source }

// metric is a metric of the catalogue in Prometheus's form.
type metric struct {
	*telemetry.Metric
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	scale float64 // factor of values
}

// units are those that Prometheus converts to a base unit.
var units = map[telemetry.Unit]struct {
	name  string
	scale float64
}{
	telemetry.Nanoseconds: {"seconds", 1e-9},
	telemetry.Percent:     {"ratio", 1e-2},
}

// catalogue are the metrics of package telemetry.
var catalogue = func() (all []metric) {
	for _, m := range telemetry.All() {
		c := metric{Metric: m, kind: prometheus.CounterValue, scale: 1}
		if m.Kind == telemetry.Gauge {
			c.kind = prometheus.GaugeValue
		}
		name := m.Name
		if u, ok := units[m.Unit]; ok {
			name, c.scale = strings.Replace(name, string(m.Unit), u.name, 1), u.scale
		}
		c.desc = describe(name, help(m), m.Labels()...)
		all = append(all, c)
	}
	return all
}()

// help is the meaning of a metric, with its names in NICs and switches.
func help(m *telemetry.Metric) string {
	text := m.Help
	if m.MLX5 != "" {
		text += " mlx5: " + m.MLX5 + "."
	}
	if m.SONiC != "" {
		text += " SONiC: " + m.SONiC + "."
	}
	if m.OpenConfig != "" {
		text += " OpenConfig: " + m.OpenConfig + "."
	}
	return text
}

// described are the descriptions of all metrics.
var described []*prometheus.Desc

// describe makes the description of a metric.
func describe(name, help string, labels ...string) *prometheus.Desc {
	d := prometheus.NewDesc(prefix+name, help, labels, nil)
	described = append(described, d)
	return d
}

var (
	buildInfo = describe("build_info", "1, with the program's version and commit, those of Go and DPDK that it was built with, and the SHA-256 of the configuration in force.",
		"version", "commit", "go_version", "dpdk_version", "config_hash")
	portHealth = describe("port_healthy", "Whether the port forwards every frame: 1, or 0; GET /v1/health of the API says why.", "port")
)

// Describe sends all descriptions: the set of metrics doesn't depend on the traffic.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range described {
		to <- d
	}
}

// Collect sends all values.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	n, problems := c.source.Counters(), c.source.Problems()
	for i := range catalogue {
		m := &catalogue[i]
		switch m.Scope {
		case telemetry.Gateway:
			m.send(to, n.Counters)
		case telemetry.Port:
			for p := range n.Ports {
				m.send(to, n.Ports[p].Counters, n.Ports[p].Name)
				m.send(to, n.Ports[p].Gauges(), n.Ports[p].Name)
			}
		case telemetry.Device:
			for p := range n.Ports {
				m.send(to, n.Ports[p].Device, n.Ports[p].Name)
			}
		case telemetry.Queue:
			for p := range n.Ports {
				m.sendQueues(to, &n.Ports[p])
			}
		}
	}
	for i := range n.Histograms {
		sendHistogram(to, &n.Histograms[i])
	}
	b := &c.source.Build
	to <- prometheus.MustNewConstMetric(buildInfo, prometheus.GaugeValue, 1, b.Version, b.Commit, runtime.Version(), b.DPDK, c.source.Hash())
	for p := range n.Ports {
		healthy := 1.0
		if problems[n.Ports[p].Name] != "" {
			healthy = 0
		}
		to <- prometheus.MustNewConstMetric(portHealth, prometheus.GaugeValue, healthy, n.Ports[p].Name)
	}
	collectBGP(to, c.source.BGP())
	if c.source.Fleet != nil {
		collectFleet(to, c.source.Fleet())
	}
	collectRDMA(to, c.source.RDMA())
}

// send sends a metric's values; nothing if there are none, as for a replaced device.
func (m *metric) send(to chan<- prometheus.Metric, values telemetry.Values, labels ...string) {
	r, ok := values[m.Name]
	switch {
	case !ok:
	case m.Label == "":
		m.value(to, r.Value, labels...)
	default:
		for label, n := range r.By {
			m.value(to, n, append(labels[:len(labels):len(labels)], label)...)
		}
	}
}

func (m *metric) sendQueues(to chan<- prometheus.Metric, p *report.Port) {
	for i := range p.Queues {
		q := &p.Queues[i]
		switch m.Metric {
		case telemetry.QueueDepthBytes:
			m.value(to, q.DepthBytes, p.Name, q.Class)
		case telemetry.QueueWatermarkBytes:
			m.value(to, q.WatermarkBytes, p.Name, q.Class)
		}
	}
}

// sendHistogram sends all buckets, even empty ones. They are cumulative, as Prometheus requires.
func sendHistogram(to chan<- prometheus.Metric, h *report.Histogram) {
	i := slices.IndexFunc(catalogue, func(m metric) bool { return m.Name == h.Name })
	m, buckets, next, below := &catalogue[i], map[float64]uint64{}, h.Buckets, uint64(0)
	for b := range telemetry.Buckets {
		if len(next) > 0 && next[0].AtMost == m.Bound(b) {
			below, next = below+next[0].Count, next[1:]
		}
		buckets[float64(m.Bound(b))*m.scale] = below
	}
	of := map[telemetry.Scope][]string{telemetry.Port: {h.Port}, telemetry.Queue: {h.Port, h.Class}, telemetry.Gateway: {h.Worker}}[m.Scope]
	to <- prometheus.MustNewConstHistogram(m.desc, h.Count, float64(h.Sum)*m.scale, buckets, of...)
}

func (m *metric) value(to chan<- prometheus.Metric, n uint64, labels ...string) {
	to <- prometheus.MustNewConstMetric(m.desc, m.kind, float64(n)*m.scale, labels...)
}

// The metrics of BGP are gauges for each peer. There are none without proxy.bgp.
var (
	bgpEstablished = describe("bgp_session_established", "Whether the BGP session with the peer is established: 1, or 0.", "peer")
	bgpAnnounced   = describe("bgp_routes_announced", "Routes announced to the BGP peer.", "peer")
	bgpReceived    = describe("bgp_routes_received", "Routes received from the BGP peer.", "peer")
	bgpLearned     = describe("bgp_prefixes_learned", "Prefixes of senders whose proxies were learned from the BGP peer.", "peer")
	bgpIgnored     = describe("bgp_routes_ignored", "Best routes of the BGP peer that name no proxy that counts.", "peer", "reason")
)

func collectBGP(to chan<- prometheus.Metric, s advertise.Status) {
	gauge := func(d *prometheus.Desc, n int, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), labels...)
	}
	for i := range s.Peers {
		p := &s.Peers[i]
		established := 0
		if p.State == advertise.Established {
			established = 1
		}
		gauge(bgpEstablished, established, p.Address)
		gauge(bgpAnnounced, p.Announced, p.Address)
		gauge(bgpReceived, p.Received, p.Address)
		gauge(bgpLearned, p.Learned, p.Address)
		for reason := advertise.Learned + 1; reason < advertise.Reasons; reason++ {
			gauge(bgpIgnored, p.Ignored[reason.String()], p.Address, reason.String())
		}
	}
}
