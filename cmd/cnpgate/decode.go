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
	code                    []codePoint
}

// codePoint is a flag for a code point of notifications that is not assigned yet.
type codePoint struct {
	flag, usage string
	low, high   uint16
	set         func(c *packet.CodePoints, value uint16)
	value       uint16
}

func codePoints() []codePoint {
	return []codePoint{
		{flag: "option-type", usage: "IPv6 option type of Fast CNP, both options", low: 0x80, high: 0x9f,
			set: func(c *packet.CodePoints, v uint16) { c.FastCNPOption, c.FastCNPTraceOption = uint8(v), uint8(v) }},
		{flag: "trace-option-type", usage: "IPv6 option type of Fast CNP option 2, if it differs", low: 0x80, high: 0x9f,
			set: func(c *packet.CodePoints, v uint16) { c.FastCNPTraceOption = uint8(v) }},
		{flag: "icmpv6-type", usage: "ICMPv6 type of Long-haul CNP", low: 128, high: 255,
			set: func(c *packet.CodePoints, v uint16) { c.LongHaulICMPv6Type = uint8(v) }},
		{flag: "extension-class", usage: "Class-Num of Long-haul CNP's extension objects", low: 1, high: 255,
			set: func(c *packet.CodePoints, v uint16) { c.ExtensionClass = uint8(v) }},
		{flag: "proxy-port", usage: "UDP port of notifications to a proxy", low: 1, high: 65535,
			set: func(c *packet.CodePoints, v uint16) { c.ProxyPort = v }},
	}
}

func decodeCommand() *cobra.Command {
	f := decodeFlags{accepts: "long-haul-cnp", code: codePoints()}
	c := &cobra.Command{
		Use:   "decode [--output text|json] [--accepts long-haul-cnp|ppfc] [--config FILE] [CODE POINTS] IN.pcap|-",
		Short: "Print the congestion notifications of a capture, field by field",
		Long: `Prints every Standard CNP, Fast CNP, Long-haul CNP (RoCEv2 and ICMPv6), PPFC, notification to a proxy, PAUSE and PFC, and whether a receiver
would accept it; if not, why. Of IS-IS and OSPF it prints the prefixes, and the proxies of those with the P-flag. The summary counts the other
frames. The E bit of Long-haul CNP and the P bit of PPFC are the same bit: --accepts selects its meaning. Code points that no registry has
assigned come from --config, or from their own flags, which take precedence.

IN.pcap is a pcap or pcapng file of Ethernet frames, also compressed by gzip or bzip2; "-" is standard input. From a pipe, each notification is printed as
it arrives: tcpdump -i eth0 -U -w - | cnpgate decode -

Exit status: 0 if the capture was read to its end, also if notifications were refused; 1 after an error; 3 if the capture ends within a frame (the
notifications before it are printed); 130 after Ctrl-C, which prints the summary.`,
		Args: oneCapture,
		RunE: func(c *cobra.Command, args []string) error { return f.decode(c, args[0]) },
	}
	outputFlag(c, &f.output)
	wordFlag(c, &f.accepts, "accepts", "", "meaning of the E or P bit of a CNP", "long-haul-cnp", "ppfc")
	c.Flags().StringVarP(&f.config, "config", "c", "", "configuration file (YAML) with the code points in use; without one, the defaults")
	for i := range f.code {
		p := &f.code[i]
		c.Flags().Uint16Var(&p.value, p.flag, 0, fmt.Sprintf("%s, %d to %d; without this flag that of --config, or the default", p.usage, p.low, p.high))
	}
	return c
}

// codePoints are those of the configuration, if there is one, as changed by flags.
func (f *decodeFlags) codePoints(c *cobra.Command) (packet.CodePoints, error) {
	code := packet.DefaultCodePoints
	if f.config != "" {
		cfg, err := load(c, f.config)
		if err != nil {
			return code, err
		}
		code = cfg.Dataplane.Policy.Build.Code
	}
	for _, p := range f.code {
		if !c.Flags().Changed(p.flag) {
			continue
		}
		if p.value < p.low || p.value > p.high {
			return code, fmt.Errorf("--%s is %d, expected %d to %d (0x%X to 0x%X)", p.flag, p.value, p.low, p.high, p.low, p.high)
		}
		p.set(&code, p.value)
	}
	return code, nil
}

func (f *decodeFlags) decode(c *cobra.Command, in string) (err error) {
	format := map[string]decode.Format{"text": decode.Text, "json": decode.JSON}[f.output]
	r := cnpdec.Receiver{ICRC: cnpdec.ICRCEither, Extension: packet.LongHaulCNP}
	if f.accepts == "ppfc" {
		r.Extension = packet.PPFC
	}
	if r.Code, err = f.codePoints(c); err != nil {
		return err
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
