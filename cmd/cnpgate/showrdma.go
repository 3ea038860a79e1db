package main

import (
	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/control/api"
)

// addRDMA adds --rdma to show health.
func addRDMA(f *showFlags, c *cobra.Command) {
	rdma, usual := false, c.RunE
	c.Use = "health [--rdma] [-o text|json] [--watch TIME] [--socket PATH | --config FILE]"
	c.Flags().BoolVar(&rdma, "rdma", false, "print what is wrong with the RDMA connections that pass, and what to change; the exit status is 0 also if something is")
	c.RunE = func(c *cobra.Command, args []string) error {
		if rdma {
			return f.show(c, printed(api.RDMAPath, printRDMA))
		}
		return usual(c, args)
	}
}
