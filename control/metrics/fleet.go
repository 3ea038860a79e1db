package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/cnpgate/cnpgate/control/fleetlink"
	"github.com/cnpgate/cnpgate/fleet/wire"
)

// The metrics of the fleet. There are none without the section fleet.
var (
	fleetMembers   = describe("fleet_members", "Gateways of the fleet, by state.", "state")
	fleetRound     = describe("fleet_round_trip_seconds", "Time of a message to the gateway of the fleet and back.", "member")
	fleetConnected = describe("fleet_connected", "Whether the connection to the nats-server is up: 1, or 0.", "server")
	fleetSent      = describe("fleet_sent_messages_total", "Messages sent to the fleet, by kind.", "kind")
	fleetReceived  = describe("fleet_received_messages_total", "Messages received from the fleet, by kind.", "kind")
	fleetBytes     = describe("fleet_bytes_total", "Bytes of messages of the fleet, by direction.", "direction")
	fleetRefused   = describe("fleet_refused_messages_total", "Messages of the fleet without effect, by reason.", "reason")
	fleetDropped   = describe("fleet_dropped_messages_total", "Messages of the fleet dropped because a queue was full, by direction.", "direction")
	fleetFlows     = describe("fleet_remote_flows", "Flows that other gateways see, as this one knows them.")
	fleetPairs     = describe("fleet_pairs", "Confirmed pairs of other gateways that this one keeps for successors.")
	fleetWants     = describe("fleet_wants", "Pairs of hosts whose flows are wanted, by who wants them.", "by")
	fleetAdopted   = describe("fleet_adopted_flows_total", "Flows that got the source QP that they had elsewhere or before a restart.")
)

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
