package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/cnpdec"
	"github.com/cnpgate/cnpgate/control/assemble"
	"github.com/cnpgate/cnpgate/control/decode"
	"github.com/cnpgate/cnpgate/internal/packet"
)

type decodeFlags struct {
	config, output, accepts string
	code                    []codePoint
}

// codePoint is a flag that sets a number, not assigned yet, of the notifications to be found.
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
		{flag: "trace-option-type", usage: "IPv6 option type of Fast CNP option 2, where it is another", low: 0x80, high: 0x9f,
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
	f := decodeFlags{code: codePoints()}
	c := &cobra.Command{
		Use:   "decode [--output text|json] [--accepts long-haul-cnp|ppfc] [--config FILE] [CODE POINTS] IN.pcap",
		Short: "Print the congestion notifications of a capture, field by field",
		Long: `Standard CNP, Fast CNP, Long-haul CNP (RoCEv2 and ICMPv6), PPFC, notification to a proxy, PAUSE and PFC, each with whether a receiver
would accept it, and if not why. Other frames are counted at the end. The E bit of Long-haul CNP and the P bit of PPFC are the same, so
--accepts says what it means. Code points that no registry has assigned come from --config or their own flags, which win. A refused notification is no error: the exit status is 0 when the capture could be read.`,
		Args: oneCapture,
		RunE: func(c *cobra.Command, args []string) error { return f.decode(c, args[0]) },
	}
	c.Flags().StringVarP(&f.output, "output", "o", "text", `"text", or "json": an object a line`)
	c.Flags().StringVar(&f.accepts, "accepts", "long-haul-cnp", `what a CNP with the E or P bit is: "long-haul-cnp" or "ppfc"`)
	c.Flags().StringVarP(&f.config, "config", "c", "", "configuration file (YAML) whose code points are in use; the defaults without one")
	for i := range f.code {
		p := &f.code[i]
		c.Flags().Uint16Var(&p.value, p.flag, 0, fmt.Sprintf("%s, %d to %d; as in --config, or the default, unless given", p.usage, p.low, p.high))
	}
	return c
}

// codePoints are those of the configuration, where there is one, with what flags change.
func (f *decodeFlags) codePoints(c *cobra.Command) (packet.CodePoints, error) {
	code := packet.DefaultCodePoints
	if f.config != "" {
		cfg, err := load(c, f.config)
		if err != nil {
			return code, err
		}
		code = assemble.CodePoints(cfg)
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
	format, ok := map[string]decode.Format{"text": decode.Text, "json": decode.JSON}[f.output]
	if !ok {
		return fmt.Errorf(`--output is %q, expected "text" or "json"`, f.output)
	}
	r := cnpdec.Receiver{ICRC: cnpdec.ICRCEither}
	switch f.accepts {
	case "long-haul-cnp":
		r.Extension = cnpdec.LongHaulExtension
	case "ppfc":
		r.Extension = cnpdec.PPFCExtension
	default:
		return fmt.Errorf(`--accepts is %q, expected "long-haul-cnp" or "ppfc"`, f.accepts)
	}
	if r.Code, err = f.codePoints(c); err != nil {
		return err
	}
	capture, err := openCapture(c, in)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, capture.Close()) }()
	if _, err := decode.Run(capture, &r, format, c.OutOrStdout()); err != nil {
		return fmt.Errorf("decode of %s: %w", in, err)
	}
	return nil
}
