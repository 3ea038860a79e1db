package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/cnpdec"
	"github.com/cnpgate/cnpgate/control/decode"
	"github.com/cnpgate/cnpgate/control/replay"
	"github.com/cnpgate/cnpgate/internal/packet"
)

type decodeFlags struct{ config, output, accepts string }

func decodeCommand() *cobra.Command {
	var f decodeFlags
	c := &cobra.Command{
		Use:   "decode [--output text|json] [--accepts long-haul-cnp|ppfc] [--config FILE] IN.pcap",
		Short: "Print the congestion notifications of a capture, field by field",
		Long: `Standard CNP, Fast CNP, Long-haul CNP (RoCEv2 and ICMPv6), PPFC, notification to a proxy, PAUSE and PFC, each with whether a receiver
would accept it, and if not why. Other frames are counted at the end. The E bit of Long-haul CNP and the P bit of PPFC are the same, so
--accepts says what it means. A refused notification is no error: the exit status is 0 when the capture could be read.`,
		Args: oneCapture,
		RunE: func(c *cobra.Command, args []string) error { return f.decode(c, args[0]) },
	}
	c.Flags().StringVarP(&f.output, "output", "o", "text", `"text", or "json": an object a line`)
	c.Flags().StringVar(&f.accepts, "accepts", "long-haul-cnp", `what a CNP with the E or P bit is: "long-haul-cnp" or "ppfc"`)
	c.Flags().StringVarP(&f.config, "config", "c", "", "configuration file (YAML) whose code points are in use; the defaults without one")
	return c
}

func (f *decodeFlags) decode(c *cobra.Command, in string) (err error) {
	format, ok := map[string]decode.Format{"text": decode.Text, "json": decode.JSON}[f.output]
	if !ok {
		return fmt.Errorf(`--output is %q, expected "text" or "json"`, f.output)
	}
	r := cnpdec.Receiver{Code: packet.DefaultCodePoints, ICRC: cnpdec.ICRCEither}
	switch f.accepts {
	case "long-haul-cnp":
		r.Extension = cnpdec.LongHaulExtension
	case "ppfc":
		r.Extension = cnpdec.PPFCExtension
	default:
		return fmt.Errorf(`--accepts is %q, expected "long-haul-cnp" or "ppfc"`, f.accepts)
	}
	if f.config != "" {
		cfg, err := load(c, f.config)
		if err != nil {
			return err
		}
		r.Code.FastCNPOption = cfg.Notifications.FastCNP.OptionType
		r.Code.LongHaulICMPv6Type = cfg.Notifications.LongHaul.ICMPv6Type
	}
	capture, err := replay.Open(in)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, capture.Close()) }()
	for _, w := range capture.Warnings {
		fmt.Fprintln(c.ErrOrStderr(), "cnpgate: warning:", w)
	}
	if _, err := decode.Run(capture, &r, format, c.OutOrStdout()); err != nil {
		return fmt.Errorf("decode of %s: %w", in, err)
	}
	return nil
}
