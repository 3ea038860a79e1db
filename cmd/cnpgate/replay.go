package main

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/control/replay"
)

type replayFlags struct {
	config, report, forwarded, emitted string
	fabric                             []string
}

func replayCommand() *cobra.Command {
	var f replayFlags
	c := &cobra.Command{
		Use:   "replay --config FILE --fabric PREFIX [--fabric PREFIX ...] [--report R.json] [--forwarded F.pcap] [--emitted E.pcap] IN.pcap",
		Short: "Take a capture through the gateway's own pipeline in virtual time",
		Long: `Frames whose source is inside a --fabric prefix come in by the fabric port, the rest by the WAN port; ARP goes by its sender's
address. The ports are the first fabric port of the configuration and its peer. The capture's timestamps are the clock, and the
ports drain at their configured rate. The same input gives the same output. The report goes to standard output unless --report
names a file. A file has ".partial" at the end of its name until it is whole.`,
		Args: oneCapture,
		RunE: func(c *cobra.Command, args []string) error { return f.replay(c, args[0]) },
	}
	configFlag(c, &f.config)
	c.Flags().StringArrayVar(&f.fabric, "fabric", nil, "prefix of the data centre's hosts; may be given several times")
	c.Flags().StringVar(&f.report, "report", "", "write the report (JSON) to this file")
	c.Flags().StringVar(&f.forwarded, "forwarded", "", "write the frames that left to this pcap")
	c.Flags().StringVar(&f.emitted, "emitted", "", "write the notifications to this pcap")
	if err := c.MarkFlagRequired("fabric"); err != nil {
		panic(err) // the flag was added above
	}
	return c
}

func oneCapture(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%d captures are named, expected one: the IN.pcap at the end of the command line", len(args))
	}
	return nil
}

// openCapture opens a capture, and warns of what in it is not as it should be.
func openCapture(c *cobra.Command, path string) (*replay.Capture, error) {
	capture, err := replay.Open(path)
	if err != nil {
		return nil, err
	}
	for _, w := range capture.Warnings {
		fmt.Fprintln(c.ErrOrStderr(), "cnpgate: warning:", w)
	}
	return capture, nil
}

func (f *replayFlags) replay(c *cobra.Command, in string) (err error) {
	fabric, err := prefixes(f.fabric)
	if err != nil {
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
	forwarded, emitted := &output{flag: "--forwarded", path: f.forwarded}, &output{flag: "--emitted", path: f.emitted}
	report := &output{flag: "--report", path: f.report}
	all := outputs{forwarded, emitted, report}
	if err := distinct([]input{{"IN.pcap", in}, {"--config", f.config}}, all); err != nil {
		return err
	}
	if err := all.open(); err != nil {
		return err
	}
	options := replay.Options{Fabric: fabric, Forwarded: forwarded.writer(), Emitted: emitted.writer()}
	if err := f.write(c, cfg, capture, options, all, report); err != nil {
		all.discard()
		return fmt.Errorf("replay of %s: %w", in, err)
	}
	return all.rename()
}

// write replays, and writes the report; to standard output only when the files are whole.
func (f *replayFlags) write(c *cobra.Command, cfg *config.Config, capture *replay.Capture, o replay.Options, all outputs, report *output) error {
	var done func()
	o.Progress, done = progress(c.ErrOrStderr(), capture.Frames)
	r, err := replay.Run(cfg, capture, o)
	done()
	if err != nil {
		return err
	}
	if w := report.writer(); w != nil {
		return errors.Join(r.Write(w), all.finish())
	}
	if err := all.finish(); err != nil {
		return err
	}
	if err := r.Write(c.OutOrStdout()); err != nil {
		return fmt.Errorf("the report: %w", err)
	}
	return nil
}

func prefixes(texts []string) ([]netip.Prefix, error) {
	const expected = "expected one such as 10.0.0.0/8 or fd00::/8"
	out := make([]netip.Prefix, len(texts))
	for i, t := range texts {
		p, err := netip.ParsePrefix(t)
		switch {
		case err != nil:
			return nil, fmt.Errorf("--fabric %q is not a prefix; %s", t, expected)
		case p.Addr().Is4In6():
			return nil, fmt.Errorf("--fabric %q is IPv4 written as IPv6, which no packet's address is inside; %s", t, expected)
		}
		out[i] = p.Masked()
	}
	return out, nil
}

// progress prints where a long replay is, to a terminal only; done ends the line.
func progress(w io.Writer, frames int) (show func(int), done func()) {
	file, ok := w.(*os.File)
	if !ok {
		return nil, func() {}
	}
	if _, err := unix.IoctlGetTermios(int(file.Fd()), unix.TCGETS); err != nil {
		return nil, func() {}
	}
	shown := false
	show = func(done int) {
		shown = true
		fmt.Fprintf(w, "\r%d of %d frames", done, frames)
	}
	return show, func() {
		if shown {
			fmt.Fprintln(w)
		}
	}
}
