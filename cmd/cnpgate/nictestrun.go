package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/endpoint"
	"github.com/cnpgate/cnpgate/endpoint/runner"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/units"
	"github.com/cnpgate/cnpgate/nictest"
	"github.com/cnpgate/cnpgate/sim/scenario"
)

// simulated tests a simulated NIC.
func (f *nictestFlags) simulated(ctx context.Context, c *cobra.Command, n nictest.Config, nic nictest.Identity) error {
	const delay, usual = 1000, 10_000_000_000 // ns, one way; bit/s
	line := cmp.Or(n.LineRate, usual)
	reaction, err := scenario.Reaction(f.simulate, line, os.ReadFile)
	if err != nil {
		return fmt.Errorf("--simulate: %w", err)
	}
	n.Plan, n.LineRate = nictest.Plan(f.quick, true, false), 0
	progress := f.lines(c.ErrOrStderr())
	sender, peer := packet.Addr{Hi: 0xfd00 << 48, Lo: 2}, packet.Addr{Hi: 0xfd00 << 48, Lo: 1}
	result, err := nictest.Simulate(n, nictest.Simulation{
		Sender: endpoint.Config{Addr: sender, LineRate: line, MTU: 4096, Priority: n.Addresses.Priority, Reaction: reaction}, Peer: peer, Delay: delay,
		Progress: func(s *nictest.Session, _ int64) bool {
			progress(s)
			return ctx.Err() == nil
		},
	})
	if err != nil {
		return err
	}
	nic.Name = cmp.Or(nic.Name, f.simulate+", simulated")
	return f.report(c, nictest.NewReport(result, nic, sender.Netip().String(), tool()), nil)
}

func tool() string { return "cnpgate nictest " + version }

// lines returns what prints a line of progress each second.
func (f *nictestFlags) lines(to io.Writer) func(s *nictest.Session) {
	if !f.shows() {
		return func(*nictest.Session) {}
	}
	var last time.Time
	return func(s *nictest.Session) {
		if time.Since(last) < time.Second {
			return
		}
		last = time.Now()
		if s == nil {
			fmt.Fprintln(to, "waiting for a sender's data")
			return
		}
		done, all := s.Progress()
		fmt.Fprintf(to, "%d of %d: %s; highest rate %s\n", done, all, s.Current(), units.Rate(s.Rate()))
	}
}

// measured tests the NIC at the other end of a device.
func (f *nictestFlags) measured(ctx context.Context, c *cobra.Command, n nictest.Config, nic nictest.Identity) error {
	e, err := f.endpoint()
	if err != nil {
		return err
	}
	n.Plan = nictest.Plan(f.quick, e.Addr.Is6(), n.Addresses.Other != packet.Addr{})
	before, err := f.counts(ctx, f.before)
	if err != nil {
		return err
	}
	devices, err := openPort(f.port(), logger().Level(zerolog.WarnLevel))
	if err != nil {
		return err
	}
	peer, err := f.measureOn(ctx, c, devices, e, n)
	if e := devices.close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	if peer.Session() == nil {
		return cmp.Or(peer.Err(), error(errors.New("no sender's data came before the test was stopped")))
	}
	s := peer.Session()
	r := nictest.NewReport(s.Result(), nic, s.Sender().Addr.Netip().String(), tool())
	if err := peer.Err(); err != nil {
		r.Stopped = err.Error()
	}
	after, err := f.counts(context.WithoutCancel(ctx), f.after)
	if err != nil {
		warn(c, err.Error())
	} else if after != nil {
		r.Compare(before, after)
	}
	return f.report(c, r, peer.Err())
}

// measureOn runs the endpoint on an opened port until the test has ended.
func (f *nictestFlags) measureOn(ctx context.Context, c *cobra.Command, d *devices, e runner.Config, n nictest.Config) (*nictest.Peer, error) {
	if e.MAC == [6]byte{} {
		e.MAC = d.addresses()[0]
	}
	peer, err := nictest.NewPeer(n, packet.AddrFrom(e.Addr), e.MAC, int64(f.silence))
	if err != nil {
		return nil, err
	}
	e.Probe = peer
	progress := f.lines(c.ErrOrStderr())
	report, err := f.runOn(d, e, c.ErrOrStderr(), spin, func(r *runner.Runner) {
		if ctx.Err() != nil {
			peer.Stop()
		}
		peer.Look(r.Now())
		if peer.Done() {
			r.Stop()
		}
		progress(peer.Session())
	})
	if report == nil {
		return nil, err
	}
	return peer, nil
}

// spin is how long the loop waits without sleeping, ns: a sleep is not exact enough for notifications.
const spin = 100_000

// counts reads the sender's counters, from a file or by ssh; nil if neither is given.
func (f *nictestFlags) counts(ctx context.Context, file string) (nictest.Counts, error) {
	var text []byte
	var err error
	switch {
	case f.ssh != "":
		ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
		defer cancel()
		text, err = exec.CommandContext(ctx, "ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "--", f.ssh,
			"grep . /sys/class/infiniband/"+f.rdma+"/ports/*/hw_counters/*cnp*").Output()
		if err != nil {
			return nil, fmt.Errorf("--ssh %s: reading the counters of %s: %w; check that ssh works without a password, or give --counters-before", f.ssh, f.rdma, err)
		}
	case file != "":
		if text, err = os.ReadFile(file); err != nil {
			return nil, err
		}
	default:
		return nil, nil
	}
	counts, err := nictest.ParseCounts(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s%s: %w", f.ssh, file, err)
	}
	return counts, nil
}

// report writes the profile's file and the report; failed is why the test ended early.
func (f *nictestFlags) report(c *cobra.Command, r *nictest.Report, failed error) error {
	var err error
	if f.profile != "" {
		err = os.WriteFile(f.profile, []byte(r.File), 0o644)
	}
	if f.output == "json" {
		return errors.Join(failed, err, writeIndented(c.OutOrStdout(), r))
	}
	return errors.Join(failed, err, writeNICTest(c.OutOrStdout(), r))
}
