package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/control/api"
)

func showVersionCommand() *cobra.Command {
	var f showFlags
	return f.command(&cobra.Command{
		Use:   "version [-o text|json] [--socket PATH | --config FILE]",
		Short: "Print the version of the running gateway, when it started, and the hash of its configuration",
		Long: `Prints the gateway's name, its version, this command's version if it differs, the start time, and the SHA-256 of the configuration in force.
cnpgate version prints only the command's version.

` + showSocket,
	}, showable{api.VersionPath, showVersion})
}

func showVersion(ctx context.Context, client *api.Client, to io.Writer) error {
	v, err := client.Version(ctx)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "gateway\t%s\nversion\t%s (%s, %s)\n", v.Gateway, v.Version, v.GoVersion, v.Platform)
	if own := describe(); v.Version != own {
		fmt.Fprintf(w, "this command\t%s\n", own)
	}
	if v.StartTime != nil {
		fmt.Fprintf(w, "start time\t%s\n", v.StartTime.Format(time.RFC3339))
	}
	fmt.Fprintf(w, "config hash\t%s\n", v.ConfigHash)
	return w.Flush()
}
