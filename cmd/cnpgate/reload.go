package main

import (
	"context"
	"fmt"
	"os/signal"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/control/api"
)

func reloadCommand() *cobra.Command {
	var f showFlags
	c := &cobra.Command{
		Use:   "reload [--socket PATH | --config FILE]",
		Short: "Make the running gateway read its configuration again",
		Long: `Makes the running gateway read its configuration file again, and prints which keys have changed. If the file has a mistake, or a change that
needs a restart, nothing changes: each mistake is printed with its place, and the exit status is 1. The gateway loses no packet, flow or pair of QPs. ` + showSocket,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return f.reload(c) },
	}
	f.addSocket(c)
	return c
}

func (f *showFlags) reload(c *cobra.Command) error {
	socket, err := f.where(c)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	r, err := api.NewClient(socket).Reload(ctx)
	if err != nil {
		return err
	}
	if len(r.Changes) == 0 {
		_, err = fmt.Fprintln(c.OutOrStdout(), "reloaded; nothing has changed")
		return err
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "reloaded; changed: %s\n", strings.Join(r.Changes, ", "))
	return err
}
