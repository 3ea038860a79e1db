package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/signal"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/config"
)

// notifyMode is another name of the mode send.
const notifyMode = "notify"

func modeCommand() *cobra.Command {
	var f showFlags
	var port string
	c := &cobra.Command{
		Use:   "mode [observe|send] [--port NAME] [-o text|json] [--socket PATH | --config FILE]",
		Short: "Print or change whether the running gateway notifies senders, or only observes",
		Long: `Without a mode it prints the one of each port. With observe, the gateway decides and counts what it would notify because of the port's queue, and sends, marks and holds
nothing; with send, or notify, it does. A mode is in force until the next reload, which restores notifications.mode of the configuration; until then cnpgate show
health says that they differ.

` + showSocket,
		Example: `  cnpgate mode observe --port wan
  cnpgate mode send`,
		ValidArgs: append(slices.Clone(config.Modes), notifyMode),
		Args:      oneMode,
		RunE:      func(c *cobra.Command, args []string) error { return f.mode(c, port, args) },
	}
	c.Flags().StringVar(&port, "port", "", "only of this port (default all)")
	outputFlag(c, &f.output)
	f.addSocket(c)
	return c
}

func oneMode(c *cobra.Command, args []string) error {
	switch {
	case len(args) > 1:
		return seeHelp(c, fmt.Errorf("%d modes are given; expected one at most", len(args)))
	case len(args) == 1 && args[0] != notifyMode:
		if err := config.CheckWord(args[0], config.Modes); err != nil {
			return fmt.Errorf("mode %w", err)
		}
	}
	return nil
}

func (f *showFlags) mode(c *cobra.Command, port string, args []string) error {
	if len(args) == 0 && port != "" {
		return seeHelp(c, fmt.Errorf("--port is given without a mode; expected one: %s", config.Either(config.Modes)))
	}
	socket, err := f.where(c)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	client := api.NewClient(socket)
	var m *api.Modes
	switch {
	case len(args) == 0:
		m, err = client.Modes(ctx)
	case args[0] == notifyMode:
		m, err = client.SetMode(ctx, port, config.ModeSend)
	default:
		m, err = client.SetMode(ctx, port, args[0])
	}
	if err != nil {
		return err
	}
	return f.printModes(c.OutOrStdout(), m)
}

func (f *showFlags) printModes(to io.Writer, m *api.Modes) error {
	if f.output == "json" {
		return json.NewEncoder(to).Encode(m)
	}
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PORT\tMODE\tAFTER A RELOAD")
	for _, p := range m.Ports {
		fmt.Fprintf(w, "%s\t%s\t%s\n", p.Port, p.Mode, p.Configured)
	}
	return w.Flush()
}
