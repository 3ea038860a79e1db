package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// manualCommand is for scripts/release.
func manualCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "manual DIR",
		Short:  "Write the manual pages to a directory",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			// The date is that of SOURCE_DATE_EPOCH, if it is set.
			return doc.GenManTree(c.Root(), &doc.GenManHeader{Section: "1", Source: "cnpgate " + version, Manual: "cnpgate"}, args[0])
		},
	}
}
