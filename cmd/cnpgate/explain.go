package main

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/columns"
	"github.com/cnpgate/cnpgate/control/report"
)

type explainFlags struct {
	showFlags
	qp string
}

func explainCommand() *cobra.Command {
	var f explainFlags
	c := &cobra.Command{
		Use:   "explain SOURCE DESTINATION [--qp QP] [-o text|json] [--socket PATH | --config FILE]",
		Short: "Explain why the running gateway does, or doesn't, notify a sender",
		Long: `SOURCE is the address of the sender, DESTINATION that of the receiver. For each flow between them, in each VLAN or tunnel, it prints the steps of the
decision to notify the sender, one per line, the first that stops it at the top, with the key to change:

  flow       packets arrive
  path       they leave by a WAN port
  recipient  the sender, or its proxy
  grant      endpoints lists what the sender accepts
  format     an accepted kind of notification is enabled and possible
  source-qp  the sender's QP is confirmed, if the kind needs it
  mode       notifications are sent, not only counted
  queue      the queue of the WAN port is congested
  share      the flow is above its fair rate, or has most in the queue
  limits     of notifications for the flow, the sender and the port
  reaction   the sender isn't slowing down already
  last       the last notification, and the flow's rate before it and now

A gate passes, stops, waits (the sender was notified in the last 10 s, and is not due again), or is unknown (-) behind one that stops. The exit status is 0 if
the sender of a flow was notified in the last 10 s and no gate stops the next notification, 3 if not, and 1 after an error.`,
		Args: twoHosts,
		RunE: f.explain,

		SuggestFor: []string{"why"},

		ValidArgsFunction: cobra.NoFileCompletions,
	}
	outputFlag(c, &f.output)
	c.Flags().Var(checkedFlag(&f.qp, checkQP), "qp", "only flows with this QP at either end")
	return f.ofGateway(c)
}

// twoHosts checks the arguments SOURCE and DESTINATION.
func twoHosts(c *cobra.Command, args []string) error {
	if len(args) != 2 {
		return seeHelp(c, fmt.Errorf("addresses given: %d; expected two: those of the sender and the receiver", len(args)))
	}
	return checkHosts(args[0], args[1])
}

// notNotified is the exit status of explain if the sender is not notified.
const notNotified = 3

func (f *explainFlags) explain(c *cobra.Command, args []string) error {
	query := url.Values{"source_ip": {args[0]}, "destination_ip": {args[1]}}
	if f.qp != "" {
		query.Set("qp", f.qp)
	}
	return f.show(c, judged(api.Path(api.ExplainPath, query), func(to io.Writer, e *api.Explanation) error { return printExplanation(to, args[0], args[1], e) },
		func(e *api.Explanation) error {
			if e.Notified {
				return nil
			}
			return &exitError{errors.New(""), notNotified}
		}))
}

func printExplanation(to io.Writer, source, destination string, e *api.Explanation) error {
	if len(e.Flows) == 0 {
		fmt.Fprintf(to, "%s to %s: not notified\n", source, destination)
		return printGates(to, e.Gates)
	}
	for i := range e.Flows {
		f := &e.Flows[i]
		verdict := "notified"
		if g := f.Stop(); g != nil {
			verdict = "not notified, because of: " + g.Name
		}
		line := fmt.Sprintf("%v QP %s to %v QP %d, port %s, VLAN %s, worker %d: %s", f.SourceIP, orDash(f.SourceQP), f.DestinationIP, f.DestinationQP, f.Port,
			columns.PlaceText(f.Tunnel, f.TunnelID, f.VLAN), f.Worker, verdict)
		if err := printHung(to, "", line); err != nil {
			return err
		}
		if err := printGates(to, f.Gates); err != nil {
			return err
		}
	}
	if e.More {
		_, err := fmt.Fprintf(to, "and other flows; --qp selects one\n")
		return err
	}
	return nil
}

// printGates prints gates, first the first one that stops.
func printGates(to io.Writer, gates []report.Gate) error {
	if first := report.FirstStop(gates); first > 0 {
		gates = slices.Concat(gates[first:first+1], gates[:first], gates[first+1:])
	}
	for i := range gates {
		if err := printGate(to, &gates[i]); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(to)
	return err
}

func printGate(to io.Writer, g *report.Gate) error {
	state := string(g.State)
	if g.State == report.Unknown {
		state = "-"
	}
	text := g.Text
	if g.Reason != "" {
		text += " (" + g.Reason + ")"
	}
	if g.Key != "" {
		text += "; change " + g.Key
	}
	return printHung(to, fmt.Sprintf("  %-4s  %-9s  ", state, g.Name), text)
}

func orDash[T any](v *T) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprint(*v)
}
