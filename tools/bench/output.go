package main

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// line is the row in words.
func (r *row) line() string {
	if r.Error != "" {
		return fmt.Sprintf("%-22s %s", r.Name, r.Error)
	}
	text := fmt.Sprintf("%-22s %10s %-6s %-28s %10s  ratio %6s (%s)", r.Name, figure(*r.Value), r.Unit, r.Peer, figure(*r.PeerValue), figure(*r.Ratio),
		r.bounds())
	if r.Noisy {
		text += fmt.Sprintf("  noisy after %d slices", r.Runs)
	}
	if r.Wanted > 0 {
		text += fmt.Sprintf("  wanted %s: %s", figure(r.Wanted), r.verdict())
	}
	return text
}

// bounds are those of the ratio's interval.
func (r *row) bounds() string { return figure(*r.RatioLow) + "–" + figure(*r.RatioHigh) }

func figure(v float64) string { return fmt.Sprintf("%.4g", v) }

// text prints the result for a reader at a terminal.
func text(r *result) { fmt.Print(r.text()) }

func (r *result) text() string {
	lines := r.Machine.String() + "\n"
	for i := range r.Rows {
		lines += r.Rows[i].line() + "\n"
	}
	return lines
}

// markdown prints the figures of docs/performance.md, and what ports need.
func markdown(r *result) {
	fmt.Print(r.headline() + "\n" + r.tables() + "\nCores that ports need, at these rates:\n\n" + portTables(r.rates()))
}

// tables has a line for each row, but for those that lead the page, those of the picture, and those that say nearly the same as another one.
func (r *result) tables() string {
	var t strings.Builder
	fmt.Fprintf(&t, "Measured on: %s.\n\n", r.Machine.String())
	t.WriteString("| Row | What | cnpgate | Beside it | Ratio |\n|---|---|---|---|---|\n")
	for i := range r.Rows {
		x := &r.Rows[i]
		if strings.HasPrefix(x.Name, "nic") && strings.HasPrefix(x.Peer, "testpmd ") || strings.HasPrefix(x.Name, "cost_") ||
			strings.HasPrefix(x.Name, "flow_rss_") || strings.HasSuffix(x.Name, "_lf") {
			continue
		}
		if x.Error != "" {
			why := "failed"
			if strings.HasPrefix(x.Error, errLeftOut.Error()) {
				why = errLeftOut.Error()
			}
			fmt.Fprintf(&t, "| `%s` | %s | %s | %s | |\n", x.Name, x.What, why, x.Peer)
			continue
		}
		fmt.Fprintf(&t, "| `%s` | %s | %.3g %s | %s: %.3g | %s |\n", x.Name, x.What, *x.Value, x.Unit, x.Peer, *x.PeerValue, x.ratio())
	}
	return t.String()
}

// ratio is a row's ratio with its interval, and the goal if it is missed.
func (r *row) ratio() string {
	text := fmt.Sprintf("%.3g (%.3g–%.3g)", *r.Ratio, *r.RatioLow, *r.RatioHigh)
	if r.Noisy {
		text += " noisy"
	}
	if r.verdict() == "missed" {
		text += fmt.Sprintf(", below %.3g", r.Wanted)
	}
	return text
}

// rates are those of cnpgate in packets a second, by group of forwarding rows.
func (r *result) rates() map[string]float64 {
	rates := map[string]float64{}
	for i := range r.Rows {
		x := &r.Rows[i]
		if group, ok := strings.CutSuffix(x.Name, "_csum"); ok && x.Error == "" && x.Unit == "Mpps" {
			rates[group] = *x.Value * 1e6
		}
	}
	return rates
}

// Calculated requirements of ports: packets a second of each size, cores at the measured rates, memory for a queue of a bandwidth-delay
// product.

// lineOverhead is the overhead of a frame on the line in bytes: preamble, FCS and gap (IEEE 802.3).
const lineOverhead = 24

// sizes are the frame sizes for which cores are calculated: bytes without FCS, and the group with cnpgate's rate for such frames. It doesn't depend on
// the payload, which a NIC's core never reads.
var sizes = []struct {
	name, group string
	octets      int
}{
	{"64-byte class", "nic64_1k_cold", 60},
	{"IMIX", "nic_mixed_cold", (7*60 + 4*572 + 1514) / 12},
	{"1 KB payload", "nic_mixed_cold", len(traffic{payload: 1 << 10}.frame())},
	{"4 KB payload", "nic_mixed_cold", len(traffic{payload: 4 << 10}.frame())},
}

var (
	portRates  = []float64{100e9, 200e9, 400e9}
	roundTrips = []time.Duration{time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond}
)

// packetsPerSecond is the number of frames of a length in bytes that a line carries in one direction.
func packetsPerSecond(rate float64, octets int) float64 {
	return rate / 8 / float64(octets+lineOverhead)
}

// coresFor is the number of cores for both directions of a port pair at line rate, if a core forwards pps packets a second; 0 if that is
// not known.
func coresFor(rate float64, octets int, pps float64) float64 {
	if pps == 0 {
		return 0
	}
	return 2 * packetsPerSecond(rate, octets) / pps
}

// bdp is a bandwidth-delay product in bytes.
func bdp(rate float64, rtt time.Duration) float64 { return rate / 8 * rtt.Seconds() }

// bufferOctets is the memory of a frame buffer in bytes, with its data room: the mempool's object header and padding, struct rte_mbuf,
// headroom.
func bufferOctets(room int) float64 { return float64(64 + 128 + 4*64 + headroom + (room+63)&^63) }

// portTables prints both tables; rates are the measured ones, packets a second of a core, by group.
func portTables(rates map[string]float64) string {
	var t strings.Builder
	t.WriteString("| Port pair | Frames | Packets/s one way | Both ways | Cores for both ways at line rate |\n|---|---|---|---|---|\n")
	for _, rate := range portRates {
		for _, s := range sizes {
			pps := packetsPerSecond(rate, s.octets)
			cores := "not measured"
			if n := coresFor(rate, s.octets, rates[s.group]); n > 0 {
				cores = fmt.Sprintf("%.0f (%.2f)", math.Ceil(n), n)
			}
			fmt.Fprintf(&t, "| %.0fG | %s | %s M | %s M | %s |\n", rate/1e9, s.name, figure(*number3(pps / 1e6)), figure(*number3(2 * pps / 1e6)), cores)
		}
	}
	t.WriteString("\n| Round-trip time |")
	for _, rate := range portRates {
		fmt.Fprintf(&t, " %.0fG: bytes | buffers for 1 KB payloads | for 4 KB payloads |", rate/1e9)
	}
	t.WriteString("\n|---|" + strings.Repeat("---|", 3*len(portRates)) + "\n")
	for _, rtt := range roundTrips {
		fmt.Fprintf(&t, "| %v |", rtt)
		for _, rate := range portRates {
			octets := bdp(rate, rtt)
			fmt.Fprintf(&t, " %s |", gib(octets))
			for _, s := range sizes[2:] {
				fmt.Fprintf(&t, " %s |", gib(octets/float64(s.octets)*bufferOctets(roomOf(s.octets))))
			}
		}
		t.WriteString("\n")
	}
	return t.String()
}

func gib(octets float64) string {
	if octets < 1<<30 {
		return fmt.Sprintf("%.3g MiB", octets/(1<<20))
	}
	return fmt.Sprintf("%.3g GiB", octets/(1<<30))
}
