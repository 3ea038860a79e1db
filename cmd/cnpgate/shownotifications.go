package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/report"
)

func showNotificationsCommand() *cobra.Command {
	var (
		f      showFlags
		filter notificationFilter
		limit  uint16
	)
	c := f.command(&cobra.Command{
		Use:   "notifications [FILTERS] [-o text|json] [--watch TIME] [--socket PATH | --config FILE]",
		Short: "Print the latest notifications of the running gateway, and why it sent them",
		Long: `One line per notification, the latest last: the time, the congested port and class, the kind and what it asks for, the flow whose sender was
notified (addresses and QPs) with the evidence for its source QP, and the reason. --outcome suppressed prints notifications that were not sent, and why:
one for each reason in 10 ms. Each worker keeps its latest 1,024 notifications, and 256 suppressed ones. ` + showSocket,
	}, showable{})
	c.RunE = func(c *cobra.Command, _ []string) error {
		if limit == 0 || limit > api.MaxNotifications {
			return fmt.Errorf("--limit is %d, expected 1 to %d", limit, api.MaxNotifications)
		}
		values := filter.values()
		values.Set("limit", strconv.FormatUint(uint64(limit), 10))
		return f.show(c, showable{api.NotificationsPath + "?" + values.Encode(), func(ctx context.Context, client *api.Client, to io.Writer) error {
			all, err := client.Notifications(ctx, values)
			if err != nil {
				return err
			}
			return printNotifications(to, all)
		}})
	}
	filter.add(c)
	c.Flags().Uint16VarP(&limit, "limit", "n", 20, "print at most this many, the latest ones")
	return c
}

func printNotifications(to io.Writer, all []report.Notification) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TIME\tPORT\tCLASS\tKIND\tACTION\tLEVEL\tSOURCE\tQP\tEVIDENCE\tDESTINATION\tQP\tWHY")
	for i := range all {
		n := &all[i]
		kind, action := n.Kind, asked(n)
		if kind == "" {
			kind, action = n.Outcome, "-"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\t%d\t%s\n", n.Time.Local().Format("15:04:05.000000"), n.Port, n.Class, kind, action, n.Level,
			n.SourceIP, orDash(n.SourceQP), orDash(n.QPEvidence), n.DestinationIP, n.DestinationQP, n.Why)
	}
	return w.Flush()
}

// asked is the action that a notification asks the sender for.
func asked(n *report.Notification) string {
	switch {
	case n.Action == "rate-reduce":
		return fmt.Sprintf("%s %d %%", n.Action, n.Parameter)
	case n.Action == "pause" && n.Parameter > 0:
		return fmt.Sprintf("%s %d us", n.Action, n.Parameter)
	}
	return n.Action
}
