package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/control/api"
)

func showHintsCommand() *cobra.Command {
	var f showFlags
	return f.command(&cobra.Command{
		Use:   "hints [-o text|json] [--watch TIME] [--socket PATH | --config FILE]",
		Short: "Print which QPs are connected by the hints that host agents gave the running gateway",
		Long: `One line for each hint: the QPs that it states to be connected, and its VLAN tags and tunnel. A hint without both applies where only one VLAN or tunnel
has such flows. -o json prints the API's answer to GET /v1/hints.

` + showSocket,
	}, showable{api.HintsPath, showHints})
}

func showHints(ctx context.Context, client *api.Client, to io.Writer) error {
	hints, err := client.Hints(ctx)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SOURCE\tSOURCE_QP\tDESTINATION\tDESTINATION_QP\tTAGS\tTUNNEL")
	for i := range hints {
		h := &hints[i]
		fmt.Fprintf(w, "%s\t%d\t%s\t%d\t%s\t%s\n", h.Source, h.SourceQP, h.Destination, h.DestinationQP, cmp.Or(h.Tags, "-"), cmp.Or(h.Tunnel, "-"))
	}
	return w.Flush()
}
