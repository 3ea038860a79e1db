package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/endpoint/runner"
	"github.com/cnpgate/cnpgate/internal/burst"
)

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

func (f *endpointFlags) port() portSettings {
	p := portSettings{device: f.device, mtu: f.mtu + packetHeaders, hugepages: f.hugepages, core: f.core}
	if f.iface != "" {
		p.device = "net_af_packet0,iface=" + f.iface
	}
	return p
}

func (f *endpointFlags) run(c *cobra.Command, _ []string) error {
	if err := f.readGiven(c.Flags().Changed); err != nil {
		return err
	}
	config, err := f.config()
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
	report, err := f.runOn(ctx, devices, config, c.ErrOrStderr())
	if report != nil {
		err = errors.Join(err, writeEndpointReport(c.OutOrStdout(), report, f.output))
	}
	return errors.Join(err, devices.close())
}

// runOn runs the endpoint on an opened port until its load or the context ends, and then until its RDMA-CM connections are disconnected.
func (f *endpointFlags) runOn(ctx context.Context, d *devices, config runner.Config, stderr io.Writer) (*runner.Report, error) {
	leave, err := d.Enter(f.core)
	if err != nil {
		return nil, err
	}
	defer leave()
	if config.MAC == [6]byte{} {
		config.MAC = d.addresses()[0]
	}
	backend := d.Backend(0)
	config.UnixTime = unixTime()
	r, err := runner.New(config, backend)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if f.shows() {
		fmt.Fprintf(stderr, "running: %v, MAC %v\n", config.Addr, macText(config.MAC))
	}
	lines := progressLines{to: stderr, every: f.shows(), r: r}
	idle := idleFor(backend)
	for !r.Finished() {
		if ctx.Err() != nil {
			r.Stop()
		}
		if r.Step() == 0 {
			idle(r)
		}
		lines.look()
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
func (f *endpointFlags) shows() bool {
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

// progressLines prints a line each second.
type progressLines struct {
	to    io.Writer
	every bool
	r     *runner.Runner
	next  int64
	last  *runner.Report
}

func (p *progressLines) look() {
	if !p.every || p.r.Now() < p.next {
		return
	}
	now := p.r.Report()
	if p.last != nil {
		writeProgress(p.to, p.last, now)
	}
	p.last, p.next = now, p.r.Now()+int64(time.Second)
}
