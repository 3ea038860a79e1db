package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/control/api"
)

// printLine prints one or several lines unless there was an error.
func printLine(c *cobra.Command, err error, text string) error {
	if err == nil {
		err = printLines(c.OutOrStdout(), text)
	}
	return err
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
		err = printLine(c, nil, "the drain has ended; ports in mode send notify senders again")
	case d.Safe:
		err = printLine(c, nil, "drained; it is safe to stop the gateway")
	}
	if err == nil && !f.off && !d.Safe {
		err = &exitError{fmt.Errorf("it is not safe yet to stop the gateway: %s; wait longer, or end the drain: cnpgate drain --off", strings.Join(d.Waits, "; ")), notSafe}
	}
	return err
}
