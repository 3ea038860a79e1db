package main

import (
	"context"
	"fmt"
	"os/signal"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/config"
)

func logLevelCommand() *cobra.Command {
	var f showFlags
	c := &cobra.Command{
		Use:   "log-level [debug|info|warn|error] [--socket PATH | --config FILE]",
		Short: "Print or change the lowest level that the running gateway logs",
		Long: `Without a level it prints the one in force. A level is in force until the next reload, which restores
management.log_level of the configuration.

` + showSocket,
		ValidArgs: config.LogLevels,
		Args:      oneLevel,
		RunE:      f.logLevel,
	}
	f.addSocket(c)
	return c
}

func oneLevel(c *cobra.Command, args []string) error {
	switch {
	case len(args) > 1:
		return seeHelp(c, fmt.Errorf("%d levels are given; expected one at most", len(args)))
	case len(args) == 1:
		if err := config.CheckWord(args[0], config.LogLevels); err != nil {
			return fmt.Errorf("level %w", err)
		}
	}
	return nil
}

func (f *showFlags) logLevel(c *cobra.Command, args []string) error {
	socket, err := f.where(c)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	client := api.NewClient(socket)
	var l *api.LogLevel
	if len(args) == 0 {
		l, err = client.LogLevel(ctx)
	} else {
		l, err = client.SetLogLevel(ctx, args[0])
	}
	if err != nil {
		return err
	}
	if l.LogLevel == l.Configured {
		_, err = fmt.Fprintln(c.OutOrStdout(), l.LogLevel)
		return err
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "%s (%s after a reload)\n", l.LogLevel, l.Configured)
	return err
}
