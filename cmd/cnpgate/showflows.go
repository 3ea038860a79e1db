package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/report"
)

func showFlowsCommand() *cobra.Command {
	var f showFlags
	var interval time.Duration
	c := &cobra.Command{
		Use:   "flows [-o text|json] [--interval TIME] [--watch TIME] [--socket PATH | --config FILE]",
		Short: "Print the flows of the running gateway: their rates, and the state of each sender's QP",
		Long: `One line per flow, with these columns:

  PORT, VLAN             port at which the flow arrives, and the VID of each VLAN tag; of a flow in a tunnel the kind of tunnel,
                         its identifier and the VID of the frame inside, as in vxlan:5000.7
  SOURCE, SOURCE_QP      the sender, and its QP if that is confirmed
  CANDIDATE_QP           a QP that may be the sender's; no notification names it
  DESTINATION, DESTINATION_QP
  RATE                   of the flow's frames without FCS, during --interval; "-" for a flow that began within it
  AGE                    time since the flow's last packet; at flows.aging the flow is removed
  PACKETS, BYTES         since the flow began
  MARKED                 packets that the gateway marked CE
  NOTIFICATIONS          sent about the flow, by kind
  REACTS                 "no" of a sender that doesn't react to notifications
  QP_STATE               of the source QP: unknown, candidate or confirmed
  ENDED                  why the flow has ended: its connection was released (dreq), or its QP was reused (reuse)
  QP_EVIDENCE            how the source QP was found
  QP_PACKETS             packets of the flow until its source QP was confirmed
  QP_CONTRADICTIONS      how often packets contradicted the source QP

Flows are sorted. -o json prints the API's answer unchanged and unsorted. ` + showSocket,
	}
	f.command(c, showable{})
	c.Flags().DurationVar(&interval, "interval", time.Second, "time for which rates are measured, at most that of --watch; 0: don't measure")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if interval != 0 && (interval < api.MinInterval || interval > api.MaxInterval) {
			return fmt.Errorf("--interval is %v, expected %v to %v, or 0 for no rates", interval, api.MinInterval, api.MaxInterval)
		}
		if f.watch != 0 {
			interval = min(interval, f.watch)
		}
		return f.show(c, showable{api.FlowsIn(interval), func(ctx context.Context, client *api.Client, to io.Writer) error {
			return showFlows(ctx, client, interval, to)
		}})
	}
	return c
}

func showFlows(ctx context.Context, client *api.Client, interval time.Duration, to io.Writer) error {
	flows, err := client.Flows(ctx, interval)
	if err != nil {
		return err
	}
	slices.SortStableFunc(flows, func(a, b api.Flow) int { return report.CompareFlows(a.Flow, b.Flow) })
	return printFlows(to, flows)
}

const flowColumns = "PORT\tVLAN\tSOURCE\tSOURCE_QP\tCANDIDATE_QP\tDESTINATION\tDESTINATION_QP\tRATE\tAGE\tPACKETS\tBYTES\tMARKED\tNOTIFICATIONS\tREACTS\t" +
	"QP_STATE\tENDED\tQP_EVIDENCE\tQP_PACKETS\tQP_CONTRADICTIONS\n"

func printFlows(to io.Writer, flows []api.Flow) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	if _, err := io.WriteString(w, flowColumns); err != nil {
		return err
	}
	for i := range flows {
		f := &flows[i]
		_, err := fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\t%v\t%d\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%d\n", f.Port, vlans(f.Tunnel, f.TunnelID, f.VLAN), f.SourceIP, orDash(f.SourceQP),
			orDash(f.CandidateQP), f.DestinationIP, f.DestinationQP, rateOf(f.RateBPS), rounded(time.Duration(f.AgeNS)), f.Packets, f.Bytes, f.ECNMarked,
			listCounts(f.Notifications), reacts(f), f.QPState, cmp.Or(f.Ended, "-"), orDash(f.QPEvidence), took(f), f.QPConflicts)
		if err != nil {
			return err
		}
	}
	return w.Flush()
}

// reacts is "no" of a flow whose sender doesn't react to notifications.
func reacts(f *api.Flow) string {
	if f.Unresponsive {
		return "no"
	}
	return "-"
}

// rateOf is a rate, "-" for none.
func rateOf(bps *uint64) string {
	if bps == nil {
		return "-"
	}
	return report.Rate(*bps)
}

func orDash[T any](v *T) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprint(*v)
}

// vlans is a flow's tunnel, if it is in one, and its VLANs.
func vlans(tunnel string, tunnelID uint32, ids []uint16) string {
	var texts []string
	if tunnel != "" {
		texts = append(texts, fmt.Sprintf("%s:%d", tunnel, tunnelID))
	}
	for _, id := range ids {
		texts = append(texts, strconv.Itoa(int(id)))
	}
	return cmp.Or(strings.Join(texts, "."), "-")
}

func took(f *api.Flow) string {
	if f.SourceQP == nil {
		return "-"
	}
	return strconv.FormatUint(f.QPPackets, 10)
}

// listCounts lists counts by name.
func listCounts[N int | uint64](counts map[string]N) string {
	if len(counts) == 0 {
		return "-"
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, fmt.Sprintf("%s:%d", name, counts[name]))
	}
	return strings.Join(all, ",")
}
