package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/control/report"
)

// checked has the values calculated from a valid configuration.
type checked struct {
	File     string          `json:"file"`
	Warnings []string        `json:"warnings"`
	Ports    []checkedPort   `json:"ports"`
	Memory   *frameMemory    `json:"memory,omitempty"` // memory of the frames; absent in a binary without DPDK
	Devices  []checkedDevice `json:"devices,omitempty"`
}

// checkedPort has the parameters of a port's egress queues. K_min, K_max and the capacities apply to each queue.
type checkedPort struct {
	Name                string   `json:"name"`
	Role                string   `json:"role"`
	Peer                string   `json:"peer"`
	RateBPS             uint64   `json:"rate_bps"`
	RTTNS               int64    `json:"rtt_ns"` // 0: not known
	Classes             []string `json:"classes"`
	KMinBytes           uint64   `json:"k_min_bytes"`
	KMaxBytes           uint64   `json:"k_max_bytes"`
	QueueCapacityBytes  uint64   `json:"queue_capacity_bytes"`
	QueueCapacityFrames int      `json:"queue_capacity_frames"`
	QueueingDelayNS     int64    `json:"queueing_delay_ns"` // of a full queue
	PerFlowNS           int64    `json:"per_flow_ns"`       // least time between two notifications of one flow; 0: no limit
}

// frameMemory is the memory that the frames of a configuration need.
type frameMemory struct {
	Bytes     int `json:"bytes"`
	Hugepages int `json:"hugepages_2mib"` // 0: not in hugepages
}

// checkedDevice has the capabilities of a port's device.
type checkedDevice struct {
	Port     string       `json:"port"`
	Profile  fmt.Stringer `json:"profile"`
	warnings []string     // that are in the profile, too
}

func newChecked(path string, cfg *config.Config) *checked {
	r := &checked{File: path, Warnings: []string{}, Memory: memoryOf(cfg)}
	for _, w := range cfg.Warnings {
		r.Warnings = append(r.Warnings, w.String())
	}
	for i := range cfg.Ports {
		p := &cfg.Ports[i]
		c := checkedPort{
			Name: p.Name, Role: p.Role.String(), Peer: cfg.Ports[p.Peer].Name, RateBPS: p.Rate, RTTNS: p.Policy.RTT,
			KMinBytes: p.Policy.KMin, KMaxBytes: p.Policy.KMax, QueueCapacityBytes: p.Capacity, QueueCapacityFrames: p.Frames,
			QueueingDelayNS: drainTime(p.Capacity, p.Rate).Nanoseconds(), PerFlowNS: int64(p.Policy.PerFlow), Classes: p.ClassNames,
		}
		r.Ports = append(r.Ports, c)
		if w := warnOfDelay(i, p); w != "" {
			r.Warnings = append(r.Warnings, w)
		}
	}
	return r
}

// drainTime is how long a number of bytes takes to leave at a rate (bit/s).
func drainTime(bytes, rate uint64) time.Duration {
	return time.Duration(float64(bytes) * 8 / float64(rate) * 1e9)
}

// longestDelay is the queueing delay above which check warns. An RC sender waits 4.096 us x 2^timeout for an acknowledgement (IBTA 9.7.6.1.3) and breaks
// the connection when retry_cnt retries were not acknowledged either. With the usual values, 14 and 7, that is 8 x 67 ms. If a full queue delays packets
// by more than that, senders break their connections instead of slowing down.
const longestDelay = 8 * (4096 << 14) * time.Nanosecond

// warnOfDelay is a warning that the queue of port i is too long, or "".
func warnOfDelay(i int, p *config.Port) string {
	delay := drainTime(p.Capacity, p.Rate)
	if delay <= longestDelay {
		return ""
	}
	advice := fmt.Sprintf("lower ports[%d].queue_capacity, or check ports[%d].rate", i, i)
	if k := drainTime(p.Policy.KMax, p.Rate); k > longestDelay && !p.Policy.Law.On() {
		advice = fmt.Sprintf("K_max alone takes %v: lower the profile's k_base or alpha, or check ports[%d].rate and rtt", rounded(k), i)
	}
	return fmt.Sprintf("port %s: a full queue takes %v to drain (%s at %s), but RC senders with timeout 14 and 7 retries break a connection that gets no acknowledgement within %v; %s",
		p.Name, rounded(delay), report.Size(p.Capacity), config.FormatRate(p.Rate), rounded(longestDelay), advice)
}

// rounded is a duration with three digits.
func rounded(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit)
}

// print prints the table.
func (r *checked) print(to io.Writer) error {
	if _, err := fmt.Fprintf(to, "%s is valid\n\n", r.File); err != nil {
		return err
	}
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	if _, err := fmt.Fprintln(w, "PORT\tROLE\tPEER\tRATE\tRTT\tQUEUES\tK_MIN\tK_MAX\tCAPACITY\tFRAMES\tDELAY\tPER_FLOW"); err != nil {
		return err
	}
	for i := range r.Ports {
		p := &r.Ports[i]
		_, err := fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\t%d\t%v\t%s\n", p.Name, p.Role, p.Peer, config.FormatRate(p.RateBPS),
			orNone(p.RTTNS), len(p.Classes), report.Size(p.KMinBytes), report.Size(p.KMaxBytes), report.Size(p.QueueCapacityBytes),
			p.QueueCapacityFrames, rounded(time.Duration(p.QueueingDelayNS)), orNone(p.PerFlowNS))
		if err != nil {
			return err
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return r.printBelow(to)
}

// printBelow prints the line below the table.
func (r *checked) printBelow(to io.Writer) (err error) {
	switch m := r.Memory; {
	case m == nil:
	case m.Hugepages > 0:
		_, err = fmt.Fprintf(to, "\nframes take %d hugepages of 2 MiB\n", m.Hugepages)
	default:
		_, err = fmt.Fprintf(to, "\nframes take %d MiB of memory\n", m.Bytes>>20)
	}
	return err
}

// printDevices prints the devices, and the warnings about them to another file.
func (r *checked) printDevices(to, warnings io.Writer) error {
	for _, d := range r.Devices {
		if _, err := fmt.Fprintf(to, "port %s: %s\n", d.Port, d.Profile); err != nil {
			return err
		}
		for _, warning := range d.warnings {
			fmt.Fprintf(warnings, "cnpgate: warning: port %s: %s\n", d.Port, warning)
		}
	}
	return nil
}

// orNone is a duration in ns as text, "-" for none.
func orNone(ns int64) string {
	if ns == 0 {
		return "-"
	}
	return time.Duration(ns).String()
}
