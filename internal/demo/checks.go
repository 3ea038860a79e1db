package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/cnpgate/cnpgate/cnpdec"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// verdict is one check's outcome.
type verdict struct {
	ok        bool
	what, got string
}

// judge holds what the captures show against what the gateway reported and what the demo is to prove.
func judge(o *observed, r *gatewayReport, hosts []host, rate, tolerance float64) []verdict {
	var v []verdict
	check := func(ok bool, what, format string, args ...any) {
		v = append(v, verdict{ok, what, fmt.Sprintf(format, args...)})
	}
	wan, in := r.wan, r.fabric
	check(wan.WatermarkBytes > wan.KMaxBytes && wan.WatermarkBytes <= wan.CapacityBytes && r.dropped() > 0,
		"the queue passed K_min and K_max and filled up, never beyond its capacity", "peak %s of %s", kilo(wan.WatermarkBytes), kilo(wan.CapacityBytes))
	received := number(in.Counters, "received_packets_total", "")
	check(received == o.sent, "every frame sent was received", "%d of %d", received, o.sent)
	all := r.Counters
	sum := number(all, "forwarded_packets_total", "") + total(all, "dropped_packets_total") + total(all, "consumed_packets_total") +
		number(all, "queued_packets", "")
	check(sum == number(all, "received_packets_total", ""), "received = forwarded + dropped + consumed + still queued", "%d = %d + %d + %d + %d",
		number(all, "received_packets_total", ""), number(all, "forwarded_packets_total", ""), total(all, "dropped_packets_total"),
		total(all, "consumed_packets_total"), number(all, "queued_packets", ""))
	forwarded := number(wan.Counters, "forwarded_packets_total", "")
	check(forwarded == len(o.forwarded), "what it says it forwarded arrived on the WAN side", "%d of %d", len(o.forwarded), forwarded)
	check(o.strangers == 0 && o.badSums == 0, "forwarded as sent, in order, but for CE; every checksum and ICRC right",
		"%d differ, %d wrong", o.strangers, o.badSums)
	marked := number(wan.Counters, "queue_ecn_marked_packets_total", "")
	check(o.ceMarked == marked && o.ceMarked > 0 && o.ceOnNotECT == 0, "CE on ECN-capable packets only, as many as it says",
		"%d marked, %d of them not ECN-capable", o.ceMarked, o.ceOnNotECT)
	v = append(v, judgeNotifications(o, r, hosts)...)
	off := math.Abs(o.rate()/rate-1) * 100
	check(off <= tolerance, fmt.Sprintf("the WAN port kept to its rate within %g%%", tolerance), "%.3f Mbit/s of %g", o.rate()*1e-6, rate*1e-6)
	return v
}

func judgeNotifications(o *observed, r *gatewayReport, hosts []host) []verdict {
	var v []verdict
	arrived := map[string]int{}
	astray, refused := 0, 0
	for i := range o.notifications {
		n := &o.notifications[i]
		switch {
		case n.reason != cnpdec.Accepted:
			refused++
		case !n.addressed() || n.flow.accepts != n.kind():
			astray++
		default:
			arrived[n.kind()]++
		}
	}
	for _, h := range hosts {
		if h.accepts == "" {
			continue
		}
		said := number(r.fabric.Counters, "notifications_sent_total", h.accepts)
		v = append(v, verdict{arrived[h.accepts] > 0 && arrived[h.accepts] == said, h.accepts + " arrived at its sender, as many as it says",
			fmt.Sprintf("%d of %d", arrived[h.accepts], said)})
	}
	return append(v,
		verdict{refused == 0, "the hosts accept every one: its checksum or ICRC, each field, and the QP, which is a true one of theirs",
			fmt.Sprintf("%d refused", refused)},
		verdict{astray == 0 && o.leaked == 0, "none went to anyone else", fmt.Sprintf("%d astray, %d on the WAN side", astray, o.leaked)})
}

// rate is what arrived on the WAN side in bits a second on the line while the queue held frames: from the first CE to the last, as
// CE shows that it does and the load between them is above the port's rate.
func (o *observed) rate() float64 {
	first, last, octets, upTo := -1, 0, 0, 0
	for i, f := range o.forwarded {
		octets += len(f.data) + lineOverhead
		var p packet.Parsed
		packet.Parse(f.data, uint32(len(f.data)), &p)
		if p.ECN != packet.CE {
			continue
		}
		if first < 0 {
			first, octets = i, 0
		}
		last, upTo = i, octets
	}
	if last <= first {
		return 0
	}
	return float64(8*upTo) / (float64(o.forwarded[last].at-o.forwarded[first].at) * 1e-9)
}

// number reads a counter; label picks one of several.
func number(v report.Values, name, label string) int {
	x := v[name]
	if by, ok := x.(map[string]any); ok {
		x = by[label]
	}
	n, _ := x.(float64)
	return int(n)
}

// total adds a counter up over its labels.
func total(v report.Values, name string) int {
	by, _ := v[name].(map[string]any)
	sum := 0
	for _, x := range by {
		n, _ := x.(float64)
		sum += int(n)
	}
	return sum
}

func kilo[T int | uint64](octets T) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(octets)/1000), ".0") + " KB"
}
