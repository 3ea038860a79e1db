package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/config"
)

type reloadFlags struct {
	showFlags
	dryRun, confirmed, revert bool
	confirm                   time.Duration
}

func reloadCommand() *cobra.Command {
	var f reloadFlags
	c := &cobra.Command{
		Use:   "reload [--dry-run | --confirm TIME | --confirmed | --revert] [-o text|json] [--socket PATH | --config FILE]",
		Short: "Make the running gateway read its configuration again",
		Long: `Makes the running gateway read its configuration file again, and prints which keys have changed. If the file has a mistake, or a change that
needs a restart, nothing changes: each mistake is printed with its place, and the exit status is 1. The gateway loses no packet, flow or pair of QPs. A --config
that isn't the gateway's own file is refused.

With --dry-run nothing changes: it prints what a reload would change, and what needs a restart. With --confirm the gateway goes back to the former configuration after
that time, unless cnpgate reload --confirmed comes before, whatever becomes of this command or its terminal; --revert goes back at once. Until then
another reload is refused. Going back leaves the file as it is: correct it before the next start.

Exit status: 0 if the configuration was reloaded, or would be; 1 after an error or a mistake in the file; 3 if a --dry-run finds changes that need a restart.`,
		RunE: func(c *cobra.Command, _ []string) error { return f.reload(c) },
	}
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "print what would change, and what needs a restart, and change nothing")
	c.Flags().DurationVar(&f.confirm, "confirm", 0, "go back after this time, such as 60s, unless the reload is confirmed")
	c.Flags().BoolVar(&f.confirmed, "confirmed", false, "keep the configuration of a reload with --confirm")
	c.Flags().BoolVar(&f.revert, "revert", false, "go back to the configuration before a reload with --confirm")
	c.MarkFlagsMutuallyExclusive("dry-run", "confirm", "confirmed", "revert")
	outputFlag(c, &f.output)
	return f.ofGateway(c)
}

func (f *reloadFlags) reload(c *cobra.Command) error {
	if c.Flags().Changed("confirm") && (f.confirm < api.LeastConfirm || f.confirm > api.MostConfirm) {
		return fmt.Errorf("--confirm is %v, expected %v to %v", f.confirm, api.LeastConfirm, api.MostConfirm)
	}
	return f.ask(c, func(ctx context.Context, client *api.Client) error {
		if err := f.checkFile(ctx, client); err != nil {
			return err
		}
		r, err := f.request(ctx, client)
		if err == nil {
			err = f.say(c.OutOrStdout(), r)
		}
		if n := len(r.NeedsRestart); err == nil && n > 0 {
			err = &exitError{fmt.Errorf("a reload would be refused: %d changes need a restart", n), needsRestart}
		}
		return err
	})
}

func (f *reloadFlags) request(ctx context.Context, client *api.Client) (*api.Reloaded, error) {
	switch {
	case f.confirmed:
		return api.Do[api.Reloaded](ctx, client, http.MethodPost, api.ConfirmPath, nil)
	case f.revert:
		return api.Do[api.Reloaded](ctx, client, http.MethodPost, api.RevertPath, nil)
	}
	return client.Reload(ctx, api.ReloadRequest{DryRun: f.dryRun, Confirm: f.confirm})
}

func (f *reloadFlags) say(to io.Writer, r *api.Reloaded) error {
	if f.output == "json" {
		return json.NewEncoder(to).Encode(r)
	}
	done, changed := "reloaded", "changed"
	switch {
	case f.dryRun:
		done, changed = "dry run", "would change"
	case f.confirmed:
		done = "confirmed"
	case f.revert:
		done = "reverted"
	}
	text := done + "; nothing has changed\n"
	if f.dryRun {
		text = "dry run; nothing would change\n"
	}
	if len(r.Changes) > 0 {
		text = fmt.Sprintf("%s; %s: %s\n", done, changed, strings.Join(r.Changes, ", ")) + valuesText(r.Values)
	}
	for _, line := range slices.Concat(r.NeedsRestart, servicesDown(r.Services)) {
		text += line + "\n"
	}
	if r.ConfirmBy != nil {
		text += fmt.Sprintf("The gateway goes back to the former configuration at %s, unless:\n  cnpgate reload --confirmed\n", r.ConfirmBy.Local().Format(time.TimeOnly))
	}
	return printLines(to, text)
}

// valuesText has a line for each changed key.
func valuesText(all []config.Change) (text string) {
	for _, c := range all {
		text += fmt.Sprintf("  %s: %s -> %s\n", c.Key, c.Before, c.After)
	}
	return text
}

// checkFile refuses a --config that the gateway doesn't run: a reload reads the gateway's own file.
func (f *showFlags) checkFile(ctx context.Context, client *api.Client) error {
	if f.config == "" {
		return nil
	}
	running, err := api.Get[api.Config](ctx, client, api.ConfigPath)
	if err != nil || name("", f.config).same(name("", running.Path)) {
		return err
	}
	return fmt.Errorf("the gateway runs %s, and a reload reads that file again, not %s; change that file, or restart the gateway with the other one", running.Path, f.config)
}
