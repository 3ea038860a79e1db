package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/control/api"
)

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

Exit status: 0 if it is safe to stop the gateway, or with --off; 1 after an error; 3 if it is not safe within --wait.

` + showSocket,
		Example: `  cnpgate drain --wait 10s && systemctl stop cnpgate
  cnpgate drain --off`,
		Args: noArguments,

		SuggestFor: []string{"stop", "shutdown"},

		RunE: func(c *cobra.Command, _ []string) error { return f.drain(c) },
	}
	c.Flags().DurationVar(&f.wait, "wait", 10*time.Second, "how long to wait until it is safe")
	c.Flags().BoolVar(&f.off, "off", false, "end the drain")
	c.MarkFlagsMutuallyExclusive("wait", "off")
	outputFlag(c, &f.output)
	f.addSocket(c)
	return c
}

func (f *drainFlags) drain(c *cobra.Command) error {
	if f.wait < 0 {
		return fmt.Errorf("--wait is %v, expected 0 or more", f.wait)
	}
	socket, err := f.where(c)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	client := api.NewClient(socket)
	d, err := client.Drain(ctx, !f.off)
	for end := time.Now().Add(f.wait); err == nil && !f.off && !d.Safe && time.Now().Before(end) && ctx.Err() == nil; d, err = client.Drained(ctx) {
		select {
		case <-ctx.Done():
		case <-time.After(drainLook):
		}
	}
	if err != nil {
		return err
	}
	if err := f.say(c.OutOrStdout(), d); err != nil {
		return err
	}
	if !f.off && !d.Safe {
		return &exitError{fmt.Errorf("it is not safe yet to stop the gateway: %s; wait longer, or end the drain: cnpgate drain --off", strings.Join(d.Waits, "; ")), notSafe}
	}
	return nil
}

func (f *drainFlags) say(to io.Writer, d *api.Drain) (err error) {
	switch {
	case f.output == "json":
		return json.NewEncoder(to).Encode(d)
	case f.off:
		_, err = fmt.Fprintln(to, "the drain has ended; the gateway notifies senders again")
	case d.Safe:
		_, err = fmt.Fprintln(to, "drained; it is safe to stop the gateway")
	}
	return err
}
