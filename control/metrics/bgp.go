package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/cnpgate/cnpgate/control/advertise"
)

// The metrics of BGP are gauges for each peer. There are none without proxy.bgp.
var (
	bgpEstablished = prometheus.NewDesc(prefix+"bgp_session_established", "Whether the BGP session with the peer is established: 1, or 0.", []string{"peer"}, nil)
	bgpAnnounced   = prometheus.NewDesc(prefix+"bgp_routes_announced", "Routes announced to the BGP peer.", []string{"peer"}, nil)
	bgpReceived    = prometheus.NewDesc(prefix+"bgp_routes_received", "Routes received from the BGP peer.", []string{"peer"}, nil)
	bgpLearned     = prometheus.NewDesc(prefix+"bgp_prefixes_learned", "Prefixes of senders whose proxies were learned from the BGP peer.", []string{"peer"}, nil)
	bgpIgnored     = prometheus.NewDesc(prefix+"bgp_routes_ignored", "Best routes of the BGP peer that name no proxy that counts.", []string{"peer", "reason"}, nil)
)

func describeBGP(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{bgpEstablished, bgpAnnounced, bgpReceived, bgpLearned, bgpIgnored} {
		to <- d
	}
}

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
