package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/endpoint/runner"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/units"
)

// deviceFlags are the flags of a software endpoint's device and of its address there, and those of the output.
type deviceFlags struct {
	runner.Config
	iface, device string
	hugepages     bool
	core          int
	output        string
	progress      bool
}

// add adds the flags, with the help of two of them.
func (f *deviceFlags) add(c *cobra.Command, iface, mtu string) {
	flags := c.Flags()
	flags.StringVarP(&f.iface, "interface", "i", "", iface)
	flags.StringVar(&f.device, "device", "", "DPDK device to use instead, as in ports[].device of a configuration")
	flags.BoolVar(&f.hugepages, "hugepages", false, "take memory from hugepages, which NICs need")
	flags.IntVar(&f.core, "core", -1, "core to run on; -1: any")
	flags.Var(addressFlag(&f.Addr), "address", "IP address of this end; the kernel's interface must not have it")
	flags.Var(macFlag(&f.MAC), "mac", "MAC address of this end (default the device's)")
	flags.IntVar(&f.MTU, "mtu", defaultMTU, mtu)
	outputFlag(c, &f.output)
	flags.BoolVar(&f.progress, "progress", false, "print a line each second, even if standard error is not a terminal")
}

// portSettings is one port for an endpoint.
type portSettings struct {
	device    string // as ports[].device of a configuration
	mtu       int    // bytes of the IP packet
	hugepages bool
	core      int // -1: any
}

const (
	// packetHeaders is the greatest overhead of a RoCEv2 packet above its payload, in bytes: IPv6 40, UDP 8, BTH 12, RETH 16, immediate data 4, ICRC 4,
	// padding 3.
	packetHeaders = 87

	// Bounds of a wait: that a frame can end, and that it can't.
	mostIdle, mostIdleUnwoken = time.Millisecond, 50 * time.Microsecond
)

func (f *deviceFlags) port() portSettings {
	p := portSettings{device: f.device, mtu: f.MTU + packetHeaders, hugepages: f.hugepages, core: f.core}
	if f.iface != "" {
		p.device = "net_af_packet0,iface=" + f.iface
	}
	return p
}

func (f *endpointFlags) run(c *cobra.Command, _ []string) error {
	config, err := f.config(c.Flags().Changed)
	if err != nil {
		return err
	}
	log := logger().Level(zerolog.WarnLevel)
	ctx, stop := untilStopped()
	defer stop()
	devices, err := openPort(f.port(), log)
	if err != nil {
		return err
	}
	if config.MAC == [6]byte{} {
		config.MAC = devices.addresses()[0]
	}
	config.UnixTime = unixTime()
	var to io.Writer // for a line each second; nil: none
	if f.shows() {
		to = c.ErrOrStderr()
	}
	var last *runner.Report
	next := int64(0)
	report, err := f.runOn(devices, config, to, 0, func(r *runner.Runner) {
		if ctx.Err() != nil {
			r.Stop()
		}
		if to == nil || r.Now() < next {
			return
		}
		now := r.Report()
		if last != nil {
			writeProgress(to, last, now)
		}
		last, next = now, r.Now()+int64(time.Second)
	})
	if report != nil {
		err = errors.Join(err, writeEndpointReport(c.OutOrStdout(), report, f.output))
	}
	return errors.Join(err, devices.close())
}

// runOn runs an endpoint on an opened port until its load has ended, or look has stopped it, and then until its RDMA-CM connections are disconnected. It calls look
// after each step. When no frame was moved, it sleeps, unless something is due within spin, ns. It prints to stderr that it runs, unless that is nil. There is no report
// if the endpoint can't begin.
func (f *deviceFlags) runOn(d *devices, config runner.Config, stderr io.Writer, spin int64, look func(r *runner.Runner)) (*runner.Report, error) {
	leave, err := d.Enter(f.core)
	if err != nil {
		return nil, err
	}
	defer leave()
	backend := d.Backend(0)
	r, err := runner.New(config, backend)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if stderr != nil {
		fmt.Fprintf(stderr, "running: %v, MAC %v\n", config.Addr, net.HardwareAddr(config.MAC[:]))
	}
	for idle := idleFor(backend); !r.Finished(); {
		moved := r.Step()
		look(r)
		if at, any := r.NextDue(); moved == 0 && (!any || at-r.Now() > spin) {
			idle(r)
		}
	}
	return r.Report(), r.Err()
}

// unixTime is how far Unix time is ahead of the backend's clock, CLOCK_MONOTONIC, ns.
func unixTime() int64 {
	var monotonic unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &monotonic); err != nil {
		return 0 // every Linux has it
	}
	return time.Now().UnixNano() - monotonic.Nano()
}

// shows reports whether progress is printed.
func (f *deviceFlags) shows() bool {
	return f.progress || isTerminal(os.Stderr)
}

// idleFor returns what to do when no frame was moved: wait until something is due or a frame arrives.
func idleFor(backend burst.Backend) func(r *runner.Runner) {
	wait, most := func(ns int64) { time.Sleep(time.Duration(ns)) }, mostIdleUnwoken
	if w, ok := backend.(burst.Waiter); ok && w.Wakes() {
		wait, most = w.Wait, mostIdle
	}
	return func(r *runner.Runner) {
		ns := int64(most)
		if at, any := r.NextDue(); any {
			ns = min(ns, at-r.Now())
		}
		if ns > 0 {
			wait(ns)
		}
	}
}

// writeEndpointReport writes an endpoint's report, as text or JSON.
func writeEndpointReport(w io.Writer, r *runner.Report, format string) error {
	if format == "json" {
		return writeIndented(w, r)
	}
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-14s %s\n", name, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(&b, "%s: %s with %s for %.1f s\n", r.Role, r.Address, cmp.Or(r.Peer, "nobody"), r.Seconds)
	if r.Role == "send" {
		line("messages", "%d acknowledged, %d failed: %s, goodput %s", r.Messages, r.MessagesFailed, units.Size(r.Bytes), units.Rate(r.GoodputBps))
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
		line(fmt.Sprintf("QP 0x%06x", q.QP), "with 0x%06x: %s acknowledged, rate %s%s", q.PeerQP, units.Size(q.Bytes), units.Rate(q.RateBps), state)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeProgress writes a line about the time between two reports.
func writeProgress(w io.Writer, before, now *runner.Report) {
	const bits = 8
	rate := func(bytes uint64) string { return units.Rate(float64(bytes*bits) / (now.Seconds - before.Seconds)) }
	allowed := 0.0
	for _, q := range now.QPs {
		allowed += q.RateBps
	}
	fmt.Fprintf(w, "%.0f s: sent %s, acknowledged %s, %d packets sent again, %d notifications accepted, rates of the QPs together %s\n", now.Seconds,
		rate(now.Sent.Bytes-before.Sent.Bytes), rate(now.Bytes-before.Bytes), now.Sent.Retransmitted-before.Sent.Retransmitted,
		sum(now.Notifications.Accepted)-sum(before.Notifications.Accepted), units.Rate(allowed))
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
