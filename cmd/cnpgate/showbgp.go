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

func showBGPCommand() *cobra.Command {
	var f showFlags
	return f.command(&cobra.Command{
		Use:   "bgp [-o text|json] [--watch TIME] [--socket PATH | --config FILE]",
		Short: "Print the BGP sessions of the running gateway, and what they announce and learn",
		Long: `A line on the speaker, and one for each peer: its state, for how long the session has been established, the routes announced to it and received
from it, the prefixes whose proxies were learned from it, and the number of its routes from which no proxy is learned, by reason. docs/proxy.md explains the
reasons; cnpgate show proxies prints the proxies learned. -o json prints the API's answer to GET /v1/bgp.

` + showSocket,
	}, showable{api.BGPPath, showBGP})
}

func showBGP(ctx context.Context, client *api.Client, to io.Writer) error {
	s, err := client.BGP(ctx)
	switch {
	case err != nil:
		return err
	case s.Error != "":
		_, err = fmt.Fprintf(to, "BGP doesn't run: %s\n", s.Error)
		return err
	case !s.Running:
		_, err = fmt.Fprintln(to, "The configuration has no proxy.bgp, or proxy.enabled is false.")
		return err
	}
	fmt.Fprintf(to, "AS %d, router ID %s; %d prefixes announced, %d learned\n", s.AS, s.RouterID, len(s.Announced), s.PrefixesLearned)
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PEER\tAS\tSTATE\tUPTIME\tANNOUNCED\tRECEIVED\tLEARNED\tIGNORED\tPROBLEM")
	for i := range s.Peers {
		p := &s.Peers[i]
		state, uptime, problem := p.State, "-", p.Problem
		if p.Stale {
			state += " (restarting)"
		}
		if p.Uptime > 0 {
			uptime = time.Duration(p.Uptime).Round(time.Second).String()
		}
		if problem == "" {
			problem = "-"
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%d\t%d\t%d\t%s\t%s\n", p.Address, p.AS, state, uptime, p.Announced, p.Received, p.Learned, listCounts(p.Ignored), problem)
	}
	return w.Flush()
}
