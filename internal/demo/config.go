package main

import (
	"fmt"
	"strings"
)

// The demo's queue, in octets. At 20 Mbit/s and 10 ms the bandwidth-delay product is 25 KB, so K_base decides K_max.
const (
	kBase    = "128KB"
	capacity = "256KB"
)

// configuration is the gateway's for the demo: two af_packet ports without hugepages, a WAN port of the given rate in Mbit/s, and
// each host's grant and true QP pairs. One direction alone can't show the gateway which QP is the sender's; an operator who
// knows it writes qp_map.
func configuration(hosts []host, rate float64, core int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `gateway: {name: demo, ipv4: %s, ipv6: "%s"}
dpdk: {hugepages: false, workers: [%d], idle: backoff}
ports:
  - {name: fabric, device: "net_af_packet0,iface=fabric", role: fabric, peer: wan, rate: 10Gbps, mtu: 1500}
  - {name: wan, device: "net_af_packet1,iface=wan", role: wan, peer: fabric, rate: %gMbps,
     rtt: 10ms, mtu: 1500, queue_capacity: %s, profile: demo}
profiles:
  demo: {k_base: %s, k_min_percent: 50}
flows: {capacity: 1Ki}
notifications:
  fast_cnp: {enabled: true}
  long_haul_cnp: {enabled: true, reduce_percent: 30}
endpoints:
`, gateway4, gateway6, core, rate, capacity, kBase)
	for _, h := range hosts {
		if h.accepts != "" {
			fmt.Fprintf(&b, "  - {prefix: \"%s/%d\", accepts: [%s]}\n", h.addr, h.addr.BitLen(), h.accepts)
		}
	}
	b.WriteString("qp_map:\n")
	for _, h := range hosts {
		for _, p := range h.pairs {
			fmt.Fprintf(&b, "  - {source: \"%s\", destination: \"%s\", source_qp: %d, destination_qp: %d}\n", h.addr, p.receiver, p.qp, p.peerQP)
		}
	}
	return b.String()
}
