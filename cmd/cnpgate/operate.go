package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/internal/yamldoc"
)

func logLevelCommand() *cobra.Command {
	var f showFlags
	c := &cobra.Command{
		Use:   "log-level [debug|info|warn|error] [--socket PATH | --config FILE]",
		Short: "Print or change the lowest level that the running gateway logs",
		Long: `Without a level it prints the one in force. A level is in force until the next reload, which restores
management.log_level of the configuration.`,
		ValidArgs: config.LogLevels,
		Args:      oneLevel,
		RunE:      f.logLevel,
	}
	return f.ofGateway(c)
}

func oneLevel(c *cobra.Command, args []string) error {
	switch {
	case len(args) > 1:
		return seeHelp(c, fmt.Errorf("%d levels are given; expected one at most", len(args)))
	case len(args) == 1:
		if err := yamldoc.CheckWord(args[0], config.LogLevels); err != nil {
			return fmt.Errorf("level %w", err)
		}
	}
	return nil
}

func (f *showFlags) logLevel(c *cobra.Command, args []string) error {
	return f.ask(c, func(ctx context.Context, client *api.Client) error {
		method, body := http.MethodGet, any(nil)
		if len(args) > 0 {
			method, body = http.MethodPut, api.LogLevelRequest{LogLevel: args[0]}
		}
		l, err := api.Do[api.LogLevel](ctx, client, method, api.LogLevelPath, body)
		text := l.LogLevel
		if l.LogLevel != l.Configured {
			text += fmt.Sprintf(" (%s after a reload)", l.Configured)
		}
		return printLine(c, err, text)
	})
}

// printLine prints a line unless there was an error.
func printLine(c *cobra.Command, err error, text string) error {
	if err == nil {
		_, err = fmt.Fprintln(c.OutOrStdout(), text)
	}
	return err
}

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
health says that they differ.`,
		Example: `  cnpgate mode observe --port wan
  cnpgate mode send`,
		ValidArgs: append(slices.Clone(config.Modes), notifyMode),
		Args:      oneMode,
		RunE:      func(c *cobra.Command, args []string) error { return f.mode(c, port, args) },
	}
	c.Flags().StringVar(&port, "port", "", "only of this port (default all)")
	outputFlag(c, &f.output)
	return f.ofGateway(c)
}

func oneMode(c *cobra.Command, args []string) error {
	switch {
	case len(args) > 1:
		return seeHelp(c, fmt.Errorf("%d modes are given; expected one at most", len(args)))
	case len(args) == 1 && args[0] != notifyMode:
		if err := yamldoc.CheckWord(args[0], config.Modes); err != nil {
			return fmt.Errorf("mode %w", err)
		}
	}
	return nil
}

func (f *showFlags) mode(c *cobra.Command, port string, args []string) error {
	if len(args) == 0 && port != "" {
		return seeHelp(c, fmt.Errorf("--port is given without a mode; expected one: %s", yamldoc.Either(config.Modes)))
	}
	return f.ask(c, func(ctx context.Context, client *api.Client) error {
		method, body := http.MethodGet, any(nil)
		if len(args) > 0 {
			mode := args[0]
			if mode == notifyMode {
				mode = config.ModeSend
			}
			method, body = http.MethodPut, api.ModeRequest{Mode: mode, Port: port}
		}
		m, err := api.Do[api.Modes](ctx, client, method, api.ModePath, body)
		switch {
		case err != nil:
			return err
		case f.output == "json":
			return json.NewEncoder(c.OutOrStdout()).Encode(m)
		}
		w := newTable(c.OutOrStdout(), "PORT\tMODE\tAFTER A RELOAD")
		for _, p := range m.Ports {
			w.row(p.Port, p.Mode, p.Configured)
		}
		if err := w.Flush(); err != nil {
			return err
		}
		return printNotices(ctx, client, c.OutOrStdout(), "")
	})
}

type drainFlags struct {
	showFlags
	off  bool
	wait time.Duration
}

// drainLook is the time between two questions whether a drain is over.
const drainLook = 50 * time.Millisecond

func drainCommand() *cobra.Command {
	var f drainFlags
	c := &cobra.Command{
		Use:   "drain [--wait TIME | --off] [-o text|json] [--socket PATH | --config FILE]",
		Short: "Prepare the running gateway for its end, and say when it is safe to stop it",
		Long: `From now on the gateway asks no sender to slow down. It resumes the senders that it has asked, releases the frames that pacing holds, and withdraws what it announces
as a proxy. It goes on forwarding and marking ECN. It is safe to stop once no sender waits for a Resume from it: then stop it, and a gateway that stands by
takes over. --off ends the drain; a reload doesn't.

Exit status: 0 if it is safe to stop the gateway, or with --off; 1 after an error; 3 if it is not safe within --wait.`,
		Example: `  cnpgate drain --wait 10s && systemctl stop cnpgate
  cnpgate drain --off`,

		SuggestFor: []string{"stop", "shutdown"},

		RunE: func(c *cobra.Command, _ []string) error { return f.drain(c) },
	}
	c.Flags().DurationVar(&f.wait, "wait", 10*time.Second, "how long to wait until it is safe")
	c.Flags().BoolVar(&f.off, "off", false, "end the drain")
	c.MarkFlagsMutuallyExclusive("wait", "off")
	outputFlag(c, &f.output)
	return f.ofGateway(c)
}

func (f *drainFlags) drain(c *cobra.Command) error {
	if f.wait < 0 {
		return fmt.Errorf("--wait is %v, expected 0 or more", f.wait)
	}
	return f.ask(c, func(ctx context.Context, client *api.Client) error { return f.drainBy(ctx, c, client) })
}

func (f *drainFlags) drainBy(ctx context.Context, c *cobra.Command, client *api.Client) error {
	method := http.MethodPut
	if f.off {
		method = http.MethodDelete
	}
	d, err := api.Do[api.Drain](ctx, client, method, api.DrainPath, nil)
	for end := time.Now().Add(f.wait); err == nil && !f.off && !d.Safe && time.Now().Before(end) && ctx.Err() == nil; {
		select {
		case <-ctx.Done():
		case <-time.After(drainLook):
		}
		d, err = api.Get[api.Drain](ctx, client, api.DrainPath)
	}
	switch {
	case err != nil:
	case f.output == "json":
		err = json.NewEncoder(c.OutOrStdout()).Encode(d)
	case f.off:
		err = printLine(c, nil, "the drain has ended; the gateway notifies senders again")
	case d.Safe:
		err = printLine(c, nil, "drained; it is safe to stop the gateway")
	}
	if err == nil && !f.off && !d.Safe {
		err = &exitError{fmt.Errorf("it is not safe yet to stop the gateway: %s; wait longer, or end the drain: cnpgate drain --off", strings.Join(d.Waits, "; ")), notSafe}
	}
	return err
}
