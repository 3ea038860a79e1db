package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/cnpdec"
	"github.com/cnpgate/cnpgate/control/capturefile"
	"github.com/cnpgate/cnpgate/control/decode"
	"github.com/cnpgate/cnpgate/control/replay"
	"github.com/cnpgate/cnpgate/internal/packet"
)

type decodeFlags struct {
	config, output, accepts string
}

func decodeCommand() *cobra.Command {
	f := decodeFlags{accepts: "long-haul-cnp"}
	c := &cobra.Command{
		Use:   "decode [--output text|json] [--accepts long-haul-cnp|ppfc] [--config FILE] IN.pcap|-",
		Short: "Print the congestion notifications of a capture, field by field",
		Long: `Prints every Standard CNP, Fast CNP, Long-haul CNP (RoCEv2 and ICMPv6), PPFC, notification to a proxy, PAUSE and PFC, and whether a receiver
would accept it; if not, why. Of IS-IS and OSPF it prints the prefixes, and the proxies of those with the P-flag. The summary counts the other
frames. The E bit of Long-haul CNP and the P bit of PPFC are the same bit: --accepts selects its meaning. Code points that no registry has
assigned come from --config; deploy/replay.yaml is a file to begin with.

IN.pcap is a pcap or pcapng file, also compressed by gzip, bzip2 or zstd; "-" is standard input. From a pipe, each notification is printed as
it arrives: tcpdump -i eth0 -U -w - | cnpgate decode -

Exit status: 0 if the capture was read to its end, also if notifications were refused; 1 after an error; 3 if the capture ends within a frame (the
notifications before it are printed); 130 after Ctrl-C, which prints the summary.`,
		Args: oneCapture,
		RunE: func(c *cobra.Command, args []string) error { return f.decode(c, args[0]) },
	}
	outputFlag(c, &f.output)
	wordFlag(c, &f.accepts, "accepts", "", "meaning of the E or P bit of a CNP", "long-haul-cnp", "ppfc")
	c.Flags().StringVarP(&f.config, "config", "c", "", "configuration file (YAML) with the code points in use; without one, the defaults")
	return c
}

func (f *decodeFlags) decode(c *cobra.Command, in string) (err error) {
	format := map[string]decode.Format{"text": decode.Text, "json": decode.JSON}[f.output]
	r := cnpdec.Receiver{ICRC: cnpdec.ICRCEither, Extension: packet.LongHaulCNP, Code: packet.DefaultCodePoints}
	if f.accepts == "ppfc" {
		r.Extension = packet.PPFC
	}
	if f.config != "" {
		cfg, err := load(c, f.config)
		if err != nil {
			return err
		}
		r.Code = cfg.Dataplane.Policy.Build.Code
	}
	ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt)
	defer stop()
	show, done := progress(c.ErrOrStderr(), "%d frames read")
	defer done()
	out := bufio.NewWriter(behind{c.OutOrStdout(), done})
	flush := func() { _ = out.Flush() } // out fails from then on
	file := os.Stdin
	if in != replay.Stdin {
		if err := capturefile.CheckName(in); err != nil {
			return decodeEnded(c, nil, err)
		}
		if file, err = opened(ctx, in, os.O_RDONLY); err != nil {
			return decodeEnded(c, nil, fmt.Errorf("capture: %w", err))
		}
		defer file.Close()
	}
	capture, err := capturefile.NewReader(in, capturefile.Live(ctx, file, flush))
	if err != nil {
		return decodeEnded(c, capture, err)
	}
	capture.Progress = show
	if _, err = decode.Run(capture, &r, format, out); err != nil {
		err = fmt.Errorf("decode of %s: %w", in, err)
	}
	return decodeEnded(c, capture, err)
}

// decodeEnded says how the decoding of a capture ended.
func decodeEnded(c *cobra.Command, capture *capturefile.Reader, err error) error {
	switch {
	case errors.Is(err, context.Canceled):
		return &exitError{err, interrupted}
	case capturefile.Ends(err):
		err = &exitError{err, cutShort}
	case err != nil:
		return err
	}
	for _, w := range capture.Warnings() {
		warn(c, w)
	}
	return err
}
