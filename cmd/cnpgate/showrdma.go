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

// rdmaShowable is the health of RDMA connections.
func rdmaShowable() showable { return printed(api.RDMAPath, printRDMA) }
