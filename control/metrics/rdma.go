package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/cnpgate/cnpgate/health"
)

// The metrics of RDMA's health are gauges: sums over the connections that are followed now. Their labels are bounded: the known verdicts and causes, and
// the few pairs of prefixes with most retransmissions.
var (
	rdmaConnections = describe("rdma_connections", "RDMA connections whose health is followed.")
	rdmaVerdicts    = describe("rdma_verdict_connections", "Followed connections by what is wrong with them.", "verdict")
	rdmaBytes       = describe("rdma_goodput_bytes", "Payload of followed connections, each byte counted once, by pair of prefixes.", "prefixes")
	rdmaResent      = describe("rdma_retransmitted_packets", "Packets of followed connections that were sent again, by pair of prefixes and cause.", "prefixes", "cause")
	rdmaLost        = describe("rdma_lost_packets", "Packets of followed connections that were lost, by pair of prefixes, before the gateway (upstream) or behind it (downstream).", "prefixes", "where")
)

const rdmaPrefixes = 16 // pairs of prefixes in the metrics

func collectRDMA(to chan<- prometheus.Metric, r *health.Report) {
	gauge := func(d *prometheus.Desc, n uint64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), labels...)
	}
	gauge(rdmaConnections, uint64(r.Summary.Connections))
	verdicts := map[string]uint64{}
	for i := range r.Verdicts {
		verdicts[r.Verdicts[i].Name] += uint64(r.Verdicts[i].Connections)
	}
	for _, name := range health.Names {
		gauge(rdmaVerdicts, verdicts[name], name)
	}
	for i := range r.Prefixes[:min(len(r.Prefixes), rdmaPrefixes)] {
		p := &r.Prefixes[i]
		gauge(rdmaBytes, p.GoodputBytes, p.Name)
		for cause := range health.Cause(health.Causes) {
			gauge(rdmaResent, p.Causes[cause.String()].Packets, p.Name, cause.String())
		}
		gauge(rdmaLost, p.LostUpstream, p.Name, "upstream")
		gauge(rdmaLost, p.LostDownstream, p.Name, "downstream")
	}
}
