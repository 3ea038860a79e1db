package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

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
		Long: `Frames whose source is inside a --fabric prefix come in by the fabric port, the rest by the WAN port. The capture's timestamps are
the clock, and the ports drain at their configured rate. The same input gives the same output. The report goes to standard output
unless --report names a file.`,
		Args: cobra.ExactArgs(1),
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

func (f *replayFlags) replay(c *cobra.Command, in string) (err error) {
	cfg, err := load(c, f.config)
	if err != nil {
		return err
	}
	options := replay.Options{}
	if options.Fabric, err = prefixes(f.fabric); err != nil {
		return err
	}
	capture, err := replay.Open(in)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, capture.Close()) }()
	for _, w := range capture.Warnings {
		fmt.Fprintln(c.ErrOrStderr(), "cnpgate: warning:", w)
	}
	if err := f.distinct(in); err != nil {
		return err
	}
	forwarded, emitted := &output{path: f.forwarded}, &output{path: f.emitted}
	defer func() { err = errors.Join(err, forwarded.close(), emitted.close()) }()
	if options.Forwarded, err = forwarded.open(); err != nil {
		return err
	}
	if options.Emitted, err = emitted.open(); err != nil {
		return err
	}
	options.Progress = progress(c.ErrOrStderr(), capture.Frames)
	result, err := replay.Run(cfg, capture, options)
	if err != nil {
		return fmt.Errorf("replay of %s: %w", in, err)
	}
	return writeReport(c.OutOrStdout(), f.report, result)
}

// distinct refuses to write over the capture or one output over another.
func (f *replayFlags) distinct(in string) error {
	seen := map[string]string{}
	for _, file := range [...]struct{ what, path string }{{"IN.pcap", in}, {"--report", f.report}, {"--forwarded", f.forwarded}, {"--emitted", f.emitted}} {
		if file.path == "" {
			continue
		}
		id := identity(file.path)
		if other, ok := seen[id]; ok && !isDevice(file.path) {
			return fmt.Errorf("%s and %s are the same file, %s; expected different ones", other, file.what, file.path)
		}
		seen[id] = file.what
	}
	return nil
}

// identity is the same for two names of one file.
func identity(path string) string {
	var s unix.Stat_t
	if unix.Stat(path, &s) == nil {
		return fmt.Sprint(s.Dev, " ", s.Ino)
	}
	return path
}

func isDevice(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&os.ModeDevice != 0
}

func prefixes(texts []string) ([]netip.Prefix, error) {
	out := make([]netip.Prefix, len(texts))
	for i, t := range texts {
		p, err := netip.ParsePrefix(t)
		if err != nil {
			return nil, fmt.Errorf("--fabric %s: not a prefix; expected one such as 10.0.0.0/8 or fd00::/8", t)
		}
		out[i] = p.Masked()
	}
	return out, nil
}

// progress prints where a long replay is, to a terminal only.
func progress(w io.Writer, frames int) func(int) {
	file, ok := w.(*os.File)
	if !ok {
		return nil
	}
	if _, err := unix.IoctlGetTermios(int(file.Fd()), unix.TCGETS); err != nil {
		return nil
	}
	return func(done int) { fmt.Fprintf(w, "\r%d of %d frames", done, frames) }
}

// output is a file to be written, or none.
type output struct {
	path   string
	file   *os.File
	buffer *bufio.Writer
}

// open returns nil for an output that nobody asked for.
func (o *output) open() (io.Writer, error) {
	if o.path == "" {
		return nil, nil
	}
	file, err := os.Create(o.path)
	if err != nil {
		return nil, err
	}
	o.file, o.buffer = file, bufio.NewWriterSize(file, 1<<20)
	return o.buffer, nil
}

func (o *output) close() error {
	if o.file == nil {
		return nil
	}
	return errors.Join(o.buffer.Flush(), o.file.Close())
}
