package main

import (
	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/control/config"
)

func schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of configuration files, for editors",
		Long: `Prints a JSON Schema (draft-07) of configuration files, with which editors complete keys and mark mistakes. It describes the keys and the
form of their values. cnpgate check finds every mistake.`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := c.OutOrStdout().Write(config.JSONSchema())
			return err
		},
	}
}
