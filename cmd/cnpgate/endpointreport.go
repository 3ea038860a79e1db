package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"

	"github.com/cnpgate/cnpgate/endpoint/runner"
)

func macText(mac [6]byte) string { return net.HardwareAddr(mac[:]).String() }

// writeEndpointReport writes an endpoint's report, as text or JSON.
func writeEndpointReport(w io.Writer, r *runner.Report, format string) error {
	if format == "json" {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	peer := r.Peer
	if peer == "" {
		peer = "nobody"
	}
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-14s %s\n", name, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(&b, "%s: %s with %s for %.1f s\n", r.Role, r.Address, peer, r.Seconds)
	if r.Role == "send" {
		line("messages", "%d acknowledged, %d failed: %s, goodput %s", r.Messages, r.MessagesFailed, bytesText(int64(r.Bytes)), mbps(r.GoodputBps))
	}
	line("sent", "%d packets: %d with data, %d of them sent again, %d ACKs, %d NAKs, %d CNPs; dropped by the device: %s", r.Sent.Packets, r.Sent.Data,
		r.Sent.Retransmitted, r.Sent.ACKs, r.Sent.NAKs, r.Sent.CNPs, countsText(r.Sent.Lost))
	line("received", "%d packets: %d in sequence, %d duplicates, %d out of sequence, %d ACKs, %d READ responses; ignored: %s", r.Received.Packets,
		r.Received.InSequence, r.Received.Duplicates, r.Received.OutOfSequence, r.Received.ACKs, r.Received.ReadResponses, countsText(r.Received.Ignored))
	line("losses", "%d times sent again, after %d NAKs and %d timeouts", r.WentBack, r.Received.NAKs, r.TimeOuts)
	if m := r.CM; m != nil {
		line("RDMA-CM", "%d connections established, ended: %s; %d messages sent, %d of them sent again, received: %s", m.Established, countsText(m.Ended), m.Sent,
			m.Repeated, countsText(m.Received))
	}
	if r.Pings+r.PingErrors > 0 {
		line("rping", "%d rounds, %d errors", r.Pings, r.PingErrors)
	}
	line("notifications", "accepted: %s; refused: %s", countsText(r.Notifications.Accepted), countsText(r.Notifications.Refused))
	for _, q := range r.QPs {
		if r.Sent.Data == 0 {
			break // it only answers
		}
		state := ""
		if q.Failed {
			state = ", failed"
		}
		line(fmt.Sprintf("QP 0x%06x", q.QP), "with 0x%06x: %s acknowledged, rate %s%s", q.PeerQP, bytesText(int64(q.Bytes)), mbps(q.RateBps), state)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeProgress writes a line about the time between two reports.
func writeProgress(w io.Writer, before, now *runner.Report) {
	const bits = 8
	rate := func(bytes uint64) string { return mbps(float64(bytes*bits) / (now.Seconds - before.Seconds)) }
	allowed := 0.0
	for _, q := range now.QPs {
		allowed += q.RateBps
	}
	fmt.Fprintf(w, "%.0f s: sent %s, acknowledged %s, %d packets sent again, %d notifications accepted, rates of the QPs together %s\n", now.Seconds,
		rate(now.Sent.Bytes-before.Sent.Bytes), rate(now.Bytes-before.Bytes), now.Sent.Retransmitted-before.Sent.Retransmitted,
		sum(now.Notifications.Accepted)-sum(before.Notifications.Accepted), mbps(allowed))
}

func sum(counts map[string]uint64) (total uint64) {
	for _, n := range counts {
		total += n
	}
	return total
}

// countsText lists counters by name, or says that there is none.
func countsText(counts map[string]uint64) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, fmt.Sprintf("%s %d", name, counts[name]))
	}
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, ", ")
}

func mbps(bps float64) string { return fmt.Sprintf("%.1f Mbit/s", bps/1e6) }
