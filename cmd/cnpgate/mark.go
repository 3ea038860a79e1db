package main

import (
	"context"
	"fmt"
	"os/signal"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/control/api"
)

func markCommand() *cobra.Command {
	var f showFlags
	c := &cobra.Command{
		Use:   "mark [--socket PATH | --config FILE]",
		Short: "Mark the counters of the running gateway, for show counters --since-mark",
		Long: `The gateway notes its counters: cnpgate show counters --since-mark then shows what has been counted since. A new mark replaces the one before, and the
end of the gateway removes it.

` + showSocket,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return f.mark(c) },
	}
	f.addSocket(c)
	return c
}

func (f *showFlags) mark(c *cobra.Command) error {
	socket, err := f.where(c)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	m, err := api.NewClient(socket).Mark(ctx)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "marked at %s\n", m.Time.Local().Format(time.TimeOnly))
	return err
}
