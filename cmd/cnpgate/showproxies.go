package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/control/api"
)

func showProxiesCommand() *cobra.Command {
	var f showFlags
	return f.command(&cobra.Command{
		Use:   "proxies [-o text|json] [--watch TIME] [--socket PATH | --config FILE]",
		Short: "Print which proxies the running gateway notifies, and for which senders",
		Long: `One line for each prefix of senders behind a proxy: the prefix, the proxy's address, and the origin: static, which is proxy.senders of the
configuration, or the protocol that learned it. The longest prefix of a sender's address counts. It prints no line if proxy.enabled is false.
-o json prints the API's answer to GET /v1/proxies.

` + showSocket,
	}, showable{api.ProxiesPath, showProxies})
}

func showProxies(ctx context.Context, client *api.Client, to io.Writer) error {
	proxies, err := client.Proxies(ctx)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PREFIX\tPROXY\tORIGIN")
	for i := range proxies {
		p := &proxies[i]
		fmt.Fprintf(w, "%s\t%s\t%s\n", p.Prefix, p.Proxy, p.Origin)
	}
	return w.Flush()
}
