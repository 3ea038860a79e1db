package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/columns"
)

// showConfigCommand prints the configuration in force.
func showConfigCommand(f *showFlags) *cobra.Command {
	var diff, asRead, history bool
	c := &cobra.Command{
		Use:   "config [--diff | --as-read | --history] [-o text|json] [--watch TIME] [--socket PATH | --config FILE]",
		Short: "Print the configuration of the running gateway, with defaults, how its file differs, or its reloads",
		Long: `The keys of the file with their values, and as comments the defaults of the others and what is calculated for each port, such as the depth above which senders
are notified; cnpgate check reads it. Comments at the top have the file's name, the SHA-256 of its text, and what is in force besides the file. --diff prints instead
what the present file would change, as cnpgate reload --dry-run does; --as-read prints the text of the file as the gateway read it. --history prints a line for
each of the latest 64 reloads, the latest last:` + columns.Help(api.ReloadRecords.Text()) + `

-o json prints the API's answer to GET /v1/config, with --diff to POST /v1/reload?dry_run=true, with --history to
GET /v1/reloads.`,
	}
	f.command(c, showable{})
	c.Flags().BoolVar(&diff, "diff", false, "what the present file would change")
	c.Flags().BoolVar(&asRead, "as-read", false, "the text of the file as the gateway read it")
	c.Flags().BoolVar(&history, "history", false, "the latest reloads: what changed, or why it was refused")
	c.MarkFlagsMutuallyExclusive("diff", "as-read", "history")
	c.RunE = func(c *cobra.Command, _ []string) error {
		switch {
		case diff && f.watch != 0:
			return seeHelp(c, errors.New("--diff reads the file once, and has no --watch; leave it out"))
		case diff:
			return (&reloadFlags{showFlags: *f, dryRun: true}).reload(c)
		case history:
			return f.show(c, printed(api.ReloadsPath, printReloads))
		case asRead:
			return f.show(c, printed(api.ConfigPath, func(to io.Writer, c *api.Config) error {
				return printConfig(paper{to, 0}, c, "", c.Text) // as it is, however long its lines are
			}))
		}
		s := printed(api.ConfigPath, func(io.Writer, *api.Config) error { return nil })
		s.print = func(ctx context.Context, client *api.Client, to io.Writer) error {
			c, err := api.Get[api.Config](ctx, client, api.ConfigPath)
			if err != nil {
				return err
			}
			var notices strings.Builder
			if err := printNotices(ctx, client, &notices, "# "); err != nil {
				return err
			}
			return printConfig(to, c, notices.String(), c.Effective)
		}
		return f.show(c, s)
	}
	return c
}

func printConfig(to io.Writer, c *api.Config, notices, text string) error {
	text = fmt.Sprintf("# %s, SHA-256 %s\n%s%s", c.File, c.ConfigHash, notices, text)
	if p, ok := to.(paper); ok && p.columns > 0 {
		text = longComment.ReplaceAllStringFunc(text, func(line string) string {
			comment := strings.TrimLeft(line, "# ")
			if utf8.RuneCountInString(line) <= p.columns {
				return line
			}
			before := line[:len(line)-len(comment)]
			return strings.TrimSuffix(broken(before, before, comment, p.columns-len(before)), "\n")
		})
	}
	_, err := io.WriteString(to, text)
	return err
}

// longComment is a line that is only a comment; each line of a long one is a comment, too.
var longComment = regexp.MustCompile(`(?m)^# .*$`)

// printNotices prints what is in force besides the configuration file, such as another mode, and that the file differs.
func printNotices(ctx context.Context, client *api.Client, to io.Writer, prefix string) error {
	h, err := api.Get[api.Health](ctx, client, api.HealthPath)
	if err != nil {
		return err
	}
	for _, n := range h.Notices {
		if err := printBroken(to, prefix, prefix, n); err != nil {
			return err
		}
	}
	return nil
}
