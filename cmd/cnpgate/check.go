package main

import (
	"cmp"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/control/columns"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/internal/units"
)

type checkFlags struct {
	config, output         string
	devices, offline, wide bool
}

func checkCommand() *cobra.Command {
	var f checkFlags
	c := &cobra.Command{
		Use:   "check [--config] FILE|- [-o text|json] [--wide] [--offline | --devices]",
		Short: "Check a configuration, and print its mistakes or the values calculated from it",
		Long: `Reads a configuration and prints every mistake in it. It also checks whether the gateway can start with it on this host, without starting anything or opening
a device: whether the devices are there and ready, the cores, the EAL's arguments, and the memory. What takes rights to see, and what a running gateway uses, is
left out, with a warning. With --offline only the file is checked, as in a binary without DPDK. "-" is standard input.

If there are no mistakes, it prints one line per port: the thresholds and the capacity of its queues, and how long a full queue takes to drain at the port's
rate (DELAY). With --devices it also opens the devices, as run does, prints what each can do and what that means for the gateway, and closes them again; nothing
is forwarded. Warnings go to standard error.`,
		RunE: func(c *cobra.Command, _ []string) error { return f.check(c) },
	}
	configArgument(c, &f.config)
	outputFlag(c, &f.output)
	wideFlag(c, &f.wide)
	c.Flags().BoolVar(&f.devices, "devices", false, "open the devices too, and print what they can do")
	c.Flags().BoolVar(&f.offline, "offline", false, "check only the file, not this host")
	c.MarkFlagsMutuallyExclusive("devices", "offline")
	return c
}

func (f *checkFlags) check(c *cobra.Command) error {
	cfg, err := load(c, f.config)
	if err != nil {
		return err
	}
	out := c.OutOrStdout()
	r := newChecked(cfg.File.Name, cfg)
	if !f.offline {
		if err := f.checkHost(cfg, r); err != nil {
			return err
		}
	}
	for _, w := range r.Warnings[len(cfg.Warnings):] { // load has printed the first ones
		warn(c, w)
	}
	if f.output == "text" {
		err = r.print(paperOf(out, f.wide))
	}
	if err == nil && f.devices {
		r.Devices, err = inspectDevices(cfg)
	}
	switch {
	case err != nil:
		return err
	case f.output == "text":
		return r.printDevices(out, c.ErrOrStderr())
	}
	return writeIndented(out, r)
}

// checkHost checks whether the gateway can start on this host, and adds warnings about what it couldn't see.
func (f *checkFlags) checkHost(cfg *config.Config, r *checked) error {
	faults, unseen := hostFaults(cfg)
	if err := cfg.Refused(faults); err != nil {
		return fmt.Errorf("%w\nthis is about the present host; --offline checks only the file", err)
	}
	for _, err := range unseen {
		r.Warnings = append(r.Warnings, "not checked: "+err.Error())
	}
	r.Warnings = append(r.Warnings, hostConcerns(cfg)...)
	return nil
}

// warn prints a warning.
func warn(c *cobra.Command, warning any) { fmt.Fprintln(c.ErrOrStderr(), "cnpgate: warning:", warning) }

// load reads a configuration, "-" from standard input, and prints its warnings, for commands that have no log.
func load(c *cobra.Command, path string) (cfg *config.Config, err error) {
	if path == "-" {
		cfg, err = config.Read("standard input", c.InOrStdin())
	} else {
		cfg, err = config.Load(path)
	}
	if err != nil {
		return nil, err
	}
	for _, w := range cfg.Warnings {
		warn(c, w)
	}
	return cfg, nil
}

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
	QRefBytes           uint64   `json:"q_ref_bytes,omitempty"` // where the control law applies, in place of K_min and K_max
	NotifyAboveBytes    uint64   `json:"notify_above_bytes,omitempty"`
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
		if law := &p.Policy.Law; law.On() {
			c.QRefBytes, c.NotifyAboveBytes = uint64(law.Reference), uint64(law.NotifiesAbove())
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
		advice = fmt.Sprintf("K_max alone takes %v: lower the profile's k_base or alpha, or check ports[%d].rate and rtt", columns.Ago(k.Nanoseconds()), i)
	}
	return fmt.Sprintf("port %s: a full queue takes %v to drain (%s at %s), but RC senders with timeout 14 and 7 retries break a connection that gets no acknowledgement within %v; %s",
		p.Name, columns.Ago(delay.Nanoseconds()), units.Size(p.Capacity), units.Exact(p.Rate, units.Rates), columns.Ago(longestDelay.Nanoseconds()), advice)
}

// print prints the table.
func (r *checked) print(to io.Writer) error {
	if _, err := fmt.Fprintf(to, "%s is valid\n\n", r.File); err != nil {
		return err
	}
	w := newTable(to, "PORT\tROLE\tPEER\tRATE\tRTT\tQUEUES\tQ_REF/K_MIN\tNOTIFIES_ABOVE\tCAPACITY\tFRAMES\tDELAY\tPER_FLOW", "PER_FLOW", "FRAMES", "QUEUES", "ROLE", "PEER")
	for i := range r.Ports {
		p := &r.Ports[i]
		w.row(p.Name, p.Role, p.Peer, units.Exact(p.RateBPS, units.Rates), orNone(p.RTTNS), len(p.Classes), units.Size(cmp.Or(p.QRefBytes, p.KMinBytes)), units.Size(cmp.Or(p.NotifyAboveBytes, p.KMaxBytes)),
			units.Size(p.QueueCapacityBytes), p.QueueCapacityFrames, columns.Ago(p.QueueingDelayNS), orNone(p.PerFlowNS))
	}
	err := w.Flush()
	switch m := r.Memory; {
	case m == nil || err != nil:
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
