package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/control/api"
)

func showConfigCommand() *cobra.Command {
	var f showFlags
	return f.command(&cobra.Command{
		Use:   "config [-o text|json] [--socket PATH | --config FILE]",
		Short: "Print the configuration of the running gateway",
		Long: `The YAML as the gateway read it, after a comment with the file's name and the SHA-256 of its text: sha256sum of the file shows whether it has
changed since.

` + showSocket,
	}, showable{api.ConfigPath, showConfig})
}

func showConfig(ctx context.Context, client *api.Client, to io.Writer) error {
	c, err := client.Running(ctx)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(to, "# %s, SHA-256 %s\n%s", c.File, c.ConfigHash, c.Text)
	return err
}
