package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
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
needs a restart, nothing changes: each mistake is printed with its place, and the exit status is 1. The gateway loses no packet, flow or pair of QPs. A --config
that isn't the gateway's own file is refused. ` + showSocket,
		Args: noArguments,
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
	client := api.NewClient(socket)
	if err := f.checkFile(ctx, client); err != nil {
		return err
	}
	r, err := client.Reload(ctx)
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

// checkFile refuses a --config that the gateway doesn't run: a reload reads the gateway's own file.
func (f *showFlags) checkFile(ctx context.Context, client *api.Client) error {
	if f.config == "" {
		return nil
	}
	running, err := client.Running(ctx)
	if err != nil || sameFile(f.config, running.Path) {
		return err
	}
	return fmt.Errorf("the gateway runs %s, and a reload reads that file again, not %s; change that file, or restart the gateway with the other one", running.Path, f.config)
}

// sameFile reports whether two paths are of one file. A gateway in a container may have a file that isn't at its path here.
func sameFile(a, b string) bool {
	a, err := filepath.Abs(a)
	if err == nil && a == b {
		return true
	}
	first, err := os.Stat(a)
	if err != nil {
		return false
	}
	second, err := os.Stat(b)
	return err == nil && os.SameFile(first, second)
}
