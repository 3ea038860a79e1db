package main

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/control/replay"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/control/webserver"
	"github.com/cnpgate/cnpgate/internal/yamldoc"
)

type replayFlags struct {
	config, report, forwarded, emitted string
	fabric                             []netip.Prefix
	health                             bool
	connections, flows                 int
	rocePort                           uint16
	output                             string
	wide                               bool
	web                                bool
	listen                             string
}

func replayCommand() *cobra.Command {
	var f replayFlags
	c := &cobra.Command{
		Use: "replay --health [-o text|json] [--roce-port PORT] IN.pcap|- ...\n" +
			"  cnpgate replay --health --web [--listen ADDRESS:PORT] [IN.pcap|- ...]\n" +
			"  cnpgate replay --config FILE --fabric PREFIX [--fabric PREFIX ...] [--report R.json] [--flows N] [--forwarded F.pcap] [--emitted E.pcap] [--web [--listen ADDRESS:PORT]] IN.pcap|- ...",
		Short: "Run a capture through the gateway's dataplane in virtual time, or say what is wrong with its RDMA connections",

		SuggestFor: []string{"diagnose", "analyze"},

		Long: `With --health, says what is wrong with the RDMA connections of a capture, from the headers alone: what was sent again and why, where packets were
lost, and what to change. It needs no configuration, and takes captures of a host's interface, a mirror port or a gateway, also of Linux's interface "any"
and with a short snapshot length (tcpdump -s 192 udp port 4791). It looks behind ERSPAN, Everflow, VXLAN, Geneve and other headers of mirrors and overlays, and says which frames it
could not examine, and why. Exit status: 0 also if something is wrong. --web serves a page with the same, and plots of what passed over time; without IN.pcap, one that
reads the capture that is dropped on it, in the browser.

Without it, runs the frames of a capture through the gateway's own dataplane, without devices, and reports what the gateway would have done. Frames with a
source inside a --fabric prefix arrive at the fabric port, the rest at the WAN port; the source of ARP is the sender's address. If no frame comes from a --fabric prefix, the command fails and lists the sources. The ports are the first fabric port of the
configuration and its peer. The capture's timestamps are the clock, and the ports drain at their configured rate. The same input gives the
same output. The report goes to standard output unless --report names a file. A file's name ends in ".partial" until the file is complete.

--web serves a page that plays what happened over time: queues, rates, congestion episodes, notifications and their reasons. It prints the page's address in
place of the report, and serves until Ctrl-C.

IN.pcap is a pcap or pcapng file, also compressed by gzip, bzip2 or zstd; "-" is standard input. A stream is read to its end first, into a
temporary file. Several files, or all in a directory, are read as one capture, in the order of time: those of a ring buffer, or of one interface or
mirror port each. Damaged records, an incomplete last frame and files of a directory that can't be read are left out, with a warning.`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 || f.health && f.web {
				return nil
			}
			return oneCapture(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.check(c); err != nil {
				return err
			}
			switch {
			case len(args) == 0:
				return f.serve(c, webserver.Playground{Entry: "diagnose.html"})
			case f.health:
				return f.judge(c, args)
			}
			return f.replay(c, args)
		},
	}
	c.Flags().StringVarP(&f.config, "config", "c", "", "configuration file (YAML)")
	c.Flags().Var(listFlag(&f.fabric, yamldoc.ParsePrefix), "fabric", "prefix of the data centre's hosts; may be given several times")
	c.Flags().StringVar(&f.report, "report", "", "write the report (JSON) to this file")
	flowsFlag(c, &f.flows)
	c.Flags().StringVar(&f.forwarded, "forwarded", "", "write the forwarded frames to this pcap")
	c.Flags().StringVar(&f.emitted, "emitted", "", "write the notifications to this pcap")
	c.Flags().BoolVar(&f.web, "web", false, "serve a page that plays the replay, or with --health shows what is wrong")
	listenFlag(c, &f.listen)
	c.Flags().BoolVar(&f.health, "health", false, "say what is wrong with the capture's RDMA connections")
	c.Flags().Uint16Var(&f.rocePort, "roce-port", 0, "with --health: UDP destination port that counts as RoCEv2's besides 4791")
	c.Flags().IntVar(&f.connections, "connections", replay.DefaultConnections, "with --health: connections that are followed at a time, of 20 kB each; a capture with more is read several times")
	outputFlag(c, &f.output)
	wideFlag(c, &f.wide)
	for _, other := range []string{"config", "fabric", "report", "flows", "forwarded", "emitted"} {
		c.MarkFlagsMutuallyExclusive("health", other)
	}
	return c
}

func oneCapture(c *cobra.Command, args []string) error {
	if len(args) > 1 {
		return seeHelp(c, fmt.Errorf("%d captures are given, expected one; cat FILE ... | cnpgate %s ... - reads several as one", len(args), c.Name()))
	}
	if len(args) == 0 {
		return seeHelp(c, errors.New("0 captures are given, expected one: IN.pcap at the end of the command line"))
	}
	return nil
}

// openCapture opens a capture, and warns of what is unusual in it.
func openCapture(c *cobra.Command, names []string) (*replay.Capture, error) {
	show, done := progress(c.ErrOrStderr(), "%d frames read")
	capture, err := replay.OpenAll(names, show)
	done()
	if err != nil {
		return nil, err
	}
	for _, w := range capture.Warnings {
		warn(c, w)
	}
	return capture, nil
}

// check refuses flags that don't go together.
func (f *replayFlags) check(c *cobra.Command) error {
	switch {
	case c.Flags().Changed("listen") && !f.web:
		return errors.New("--listen is where --web serves the page; give --web, too")
	case f.health && f.web && c.Flags().Changed("output"):
		return errors.New("--output and --web are given; expected one of them: the page shows what -o prints")
	case !f.health && c.Flags().Changed("roce-port"):
		return errors.New("--roce-port is for a diagnosis; give --health, too")
	case f.connections < 1:
		return fmt.Errorf("--connections %d: expected 1 or more that are followed at a time", f.connections)
	}
	return checkListed(f.flows)
}

// serve serves a page until Ctrl-C.
func (f *replayFlags) serve(c *cobra.Command, source webserver.Source) error {
	ctx, stop := untilStopped()
	defer stop()
	return serveWeb(ctx, c, f.listen, source)
}

func (f *replayFlags) replay(c *cobra.Command, in []string) (err error) {
	if f.config == "" && len(f.fabric) == 0 {
		return seeHelp(c, errors.New("missing: --health, for what is wrong with the capture's RDMA, or --config and --fabric, for what the gateway would do"))
	}
	if err := requireFlags(c, "config", "fabric"); err != nil {
		return err
	}
	cfg, err := load(c, f.config)
	if err != nil {
		return err
	}
	capture, err := openCapture(c, in)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, capture.Close()) }()
	if err := capture.CheckFabric(f.fabric); err != nil {
		return fmt.Errorf("--fabric %w", err)
	}
	forwarded, emitted := &output{flag: "--forwarded", path: f.forwarded}, &output{flag: "--emitted", path: f.emitted}
	reported := &output{flag: "--report", path: f.report}
	all := outputs{forwarded, emitted, reported}
	var inputs []input
	for _, name := range in {
		inputs = append(inputs, input{"IN.pcap", name})
	}
	inputs = append(inputs, input{"--config", f.config})
	if err := distinct(inputs, all); err != nil {
		return err
	}
	if err := all.open(c.Context()); err != nil {
		return err
	}
	options := replay.Options{Fabric: f.fabric, Forwarded: forwarded.writer(), Emitted: emitted.writer(), Flows: f.flows}
	if f.web {
		options.Recorder = &replay.Recorder{}
	}
	result, err := f.write(c, cfg, capture, options, all, reported)
	if err != nil {
		all.discard()
		return fmt.Errorf("replay of %s: %w", strings.Join(in, ", "), err)
	}
	if err := all.rename(); err != nil || !f.web {
		return err
	}
	recording := &webserver.Recording{Title: strings.Join(in, ", ")}
	recording.AddReplay(result, options.Recorder)
	return f.serve(c, recording)
}

// write replays, and writes the report; to standard output only once the files are complete, and if no page shows it.
func (f *replayFlags) write(c *cobra.Command, cfg *config.Config, capture *replay.Capture, o replay.Options, all outputs, to *output) (*report.Report, error) {
	var done func()
	o.Progress, done = progress(c.ErrOrStderr(), fmt.Sprintf("%%d of %d frames", capture.Frames))
	r, err := replay.Run(cfg, capture, o)
	done()
	if err != nil {
		return nil, err
	}
	r.Version = describe()
	if left := r.FlowsLeft; left != nil {
		warn(c, fmt.Sprintf("the report lists %d of %d flows; flows_left_out sums up the others (--flows)", len(r.Flows), uint64(len(r.Flows))+left.Flows))
	}
	if w := to.writer(); w != nil {
		return r, errors.Join(r.Write(w), all.finish())
	}
	if err := all.finish(); err != nil {
		return nil, err
	}
	if f.web {
		return r, nil
	}
	if err := r.Write(c.OutOrStdout()); err != nil {
		return nil, fmt.Errorf("the report: %w", err)
	}
	return r, nil
}

// judge prints or serves the health of the capture's RDMA connections.
func (f *replayFlags) judge(c *cobra.Command, in []string) (err error) {
	capture, err := openCapture(c, in)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, capture.Close()) }()
	show, done := progress(c.ErrOrStderr(), fmt.Sprintf("%%d of %d frames", capture.Frames))
	d, err := replay.Diagnose(capture, replay.HealthOptions{Progress: show, RoCEPort: f.rocePort, Connections: f.connections})
	done()
	if err != nil {
		return err
	}
	if f.web {
		return f.serve(c, &webserver.Diagnosis{Diagnosis: d})
	}
	r := d.Report
	if f.output == "json" {
		return writeIndented(c.OutOrStdout(), r)
	}
	return printRDMA(paperOf(c.OutOrStdout(), f.wide), r)
}
