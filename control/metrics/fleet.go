package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/cnpgate/cnpgate/control/fleetlink"
	"github.com/cnpgate/cnpgate/fleet/wire"
)

// The metrics of the fleet. There are none without the section fleet.
var (
	fleetMembers   = prometheus.NewDesc(prefix+"fleet_members", "Gateways of the fleet, by state.", []string{"state"}, nil)
	fleetRound     = prometheus.NewDesc(prefix+"fleet_round_trip_seconds", "Time of a message to the gateway of the fleet and back.", []string{"member"}, nil)
	fleetConnected = prometheus.NewDesc(prefix+"fleet_connected", "Whether the connection to the nats-server is up: 1, or 0.", []string{"server"}, nil)
	fleetSent      = prometheus.NewDesc(prefix+"fleet_sent_messages_total", "Messages sent to the fleet, by kind.", []string{"kind"}, nil)
	fleetReceived  = prometheus.NewDesc(prefix+"fleet_received_messages_total", "Messages received from the fleet, by kind.", []string{"kind"}, nil)
	fleetBytes     = prometheus.NewDesc(prefix+"fleet_bytes_total", "Bytes of messages of the fleet, by direction.", []string{"direction"}, nil)
	fleetRefused   = prometheus.NewDesc(prefix+"fleet_refused_messages_total", "Messages of the fleet without effect, by reason.", []string{"reason"}, nil)
	fleetDropped   = prometheus.NewDesc(prefix+"fleet_dropped_messages_total", "Messages of the fleet dropped because a queue was full, by direction.", []string{"direction"}, nil)
	fleetFlows     = prometheus.NewDesc(prefix+"fleet_remote_flows", "Flows that other gateways see, as this one knows them.", nil, nil)
	fleetPairs     = prometheus.NewDesc(prefix+"fleet_pairs", "Confirmed pairs of other gateways that this one keeps for successors.", nil, nil)
	fleetWants     = prometheus.NewDesc(prefix+"fleet_wants", "Pairs of hosts whose flows are wanted, by who wants them.", []string{"by"}, nil)
	fleetAdopted   = prometheus.NewDesc(prefix+"fleet_adopted_flows_total", "Flows that got the source QP that they had elsewhere or before a restart.", nil, nil)
)

func describeFleet(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{fleetMembers, fleetRound, fleetConnected, fleetSent, fleetReceived, fleetBytes, fleetRefused, fleetDropped,
		fleetFlows, fleetPairs, fleetWants, fleetAdopted} {
		to <- d
	}
}

func collectFleet(to chan<- prometheus.Metric, s fleetlink.FleetStatus) {
	if !s.Enabled {
		return
	}
	put := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, kind, v, labels...)
	}
	states := map[string]float64{"active": 0, "silent": 0, "unheard": 0}
	for i := range s.Members {
		m := &s.Members[i]
		states[m.State]++
		if m.RoundUS > 0 {
			put(fleetRound, prometheus.GaugeValue, float64(m.RoundUS)/1e6, m.Name)
		}
	}
	for state, n := range states {
		put(fleetMembers, prometheus.GaugeValue, n, state)
	}
	servers := map[string]float64{}
	for _, c := range s.Connections {
		if servers[c.URL] = 0; c.Connected {
			servers[c.URL] = 1
		}
	}
	for url, up := range servers {
		put(fleetConnected, prometheus.GaugeValue, up, url)
	}
	for k := wire.Status; int(k) < wire.Kinds; k++ {
		put(fleetSent, prometheus.CounterValue, float64(s.Counters["sent_"+k.String()]), k.String())
		put(fleetReceived, prometheus.CounterValue, float64(s.Counters["received_"+k.String()]), k.String())
	}
	for direction, name := range map[string]string{"sent": "out", "received": "in"} {
		put(fleetBytes, prometheus.CounterValue, float64(s.Counters[direction+"_bytes"]), direction)
		put(fleetDropped, prometheus.CounterValue, float64(s.Counters["dropped_"+name]), direction)
	}
	for reason, n := range s.Refused {
		put(fleetRefused, prometheus.CounterValue, float64(n), reason)
	}
	put(fleetFlows, prometheus.GaugeValue, float64(s.Shares.RemoteFlows))
	put(fleetPairs, prometheus.GaugeValue, float64(s.Shares.Pairs))
	put(fleetWants, prometheus.GaugeValue, float64(s.Shares.Wants), "self")
	put(fleetWants, prometheus.GaugeValue, float64(s.Shares.Wanted), "others")
	put(fleetAdopted, prometheus.CounterValue, float64(s.Counters["adopted"]))
}
