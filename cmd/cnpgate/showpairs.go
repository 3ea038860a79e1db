package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/control/api"
)

func showPairsCommand() *cobra.Command {
	var f showFlags
	return f.command(&cobra.Command{
		Use:   "pairs [-o text|json] [--watch TIME] [--socket PATH | --config FILE]",
		Short: "Print which QPs of the running gateway's flows are connected, and the evidence",
		Long: `One line for each flow whose source QP is confirmed or a candidate: its ingress port, its VLANs and tunnel, the sender and its QP, the receiver and its QP,
the state and the evidence, how long the pair has had them, and how often packets contradicted it. A candidate's QP has a question mark, as no
notification names it. The age is "-" if no packet has arrived since the state changed. A connection has a line for each direction. -o json prints the
API's answer to GET /v1/pairs.

` + showSocket,
	}, showable{api.PairsPath, showPairs})
}

func showPairs(ctx context.Context, client *api.Client, to io.Writer) error {
	pairs, err := client.Pairs(ctx)
	if err != nil {
		return err
	}
	slices.SortStableFunc(pairs, func(a, b api.Pair) int {
		return cmp.Or(a.SourceIP.Compare(b.SourceIP), a.DestinationIP.Compare(b.DestinationIP), cmp.Compare(a.DestinationQP, b.DestinationQP), cmp.Compare(a.Port, b.Port))
	})
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PORT\tVLAN\tSOURCE\tSOURCE QP\tDESTINATION\tDESTINATION QP\tSTATE\tEVIDENCE\tAGE\tCONTRADICTIONS")
	for i := range pairs {
		p := &pairs[i]
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\t%d\n", p.Port, vlans(p.Tunnel, p.TunnelID, p.VLAN), p.SourceIP, pairQP(p), p.DestinationIP, p.DestinationQP,
			pairState(p), orDash(p.QPEvidence), age(p.QPAge), p.QPConflicts)
	}
	return w.Flush()
}

// pairQP is the sender's QP; a candidate has a question mark.
func pairQP(p *api.Pair) string {
	if p.CandidateQP != nil {
		return fmt.Sprint(*p.CandidateQP, "?")
	}
	return orDash(p.SourceQP)
}

func pairState(p *api.Pair) string {
	if p.Ended != "" {
		return p.QPState + " (" + p.Ended + ")"
	}
	return p.QPState
}

// age is a time in nanoseconds, to a tenth of a second.
func age(ns *int64) string {
	if ns == nil {
		return "-"
	}
	return time.Duration(*ns).Truncate(time.Second / 10).String()
}
