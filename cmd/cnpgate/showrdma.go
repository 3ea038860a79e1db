package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/health"
)

// showConnectionsCommand prints RDMA connections.
func showConnectionsCommand() *cobra.Command {
	var f showFlags
	var bad bool
	c := &cobra.Command{
		Use:   "connections [--bad] [-o text|json] [--watch TIME] [--socket PATH | --config FILE]",
		Short: "Print the RDMA connections that the running gateway follows, with what is wrong with each",
		Long: `One line for the requests of each end of a connection, those with verdicts first: goodput, what was sent again and why, packets lost before and behind
the gateway (LOST <|>), NAKs, RNR NAKs, the time from a request to its ACK, and the most packets without an ACK. docs/health.md explains them.`,
	}
	f.command(c, showable{})
	c.Flags().BoolVar(&bad, "bad", false, "only connections with a verdict")
	c.RunE = func(c *cobra.Command, _ []string) error {
		path := api.RDMAPath
		if bad {
			path += "?bad=true"
		}
		return f.show(c, printed(path, func(to io.Writer, r *health.Report) error {
			if len(r.Connections) == 0 {
				_, err := io.WriteString(to, "no such connection\n")
				return err
			}
			return printConnections(to, r.Connections)
		}))
	}
	return c
}

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
