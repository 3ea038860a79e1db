package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/report"
)

func showNotificationsCommand() *cobra.Command {
	var (
		f      showFlags
		filter notificationFilter
		limit  uint16
		follow bool
	)
	c := f.command(&cobra.Command{
		Use:   "notifications [FILTERS] [--follow] [-o text|json] [--watch TIME] [--socket PATH | --config FILE]",
		Short: "Print the latest notifications of the running gateway, and why it sent them",
		Long: `One line per notification, the latest last: the time, the congested port and class, the kind and what it asks for, the flow whose sender was
notified (addresses and QPs) with the evidence for its source QP, and the reason. --outcome suppressed prints notifications that were not sent, and why:
one for each reason in 10 ms. Each worker keeps its latest 1,024 notifications, and 256 suppressed ones.
--follow prints those from now on, as they are sent, until Ctrl-C; with -o json one object per line.`,
	}, showable{})
	c.RunE = func(c *cobra.Command, _ []string) error {
		if limit == 0 || limit > api.MaxNotifications {
			return fmt.Errorf("--limit is %d, expected 1 to %d", limit, api.MaxNotifications)
		}
		values := filter.values()
		if follow {
			return f.follow(c, values)
		}
		values.Set("limit", strconv.FormatUint(uint64(limit), 10))
		return f.show(c, printed(api.Path(api.NotificationsPath, values), printNotifications))
	}
	filter.add(c)
	c.Flags().Uint16VarP(&limit, "limit", "n", 20, "print at most this many, the latest ones")
	c.Flags().BoolVarP(&follow, "follow", "f", false, "print the notifications from now on, until Ctrl-C")
	c.MarkFlagsMutuallyExclusive("follow", "watch")
	c.MarkFlagsMutuallyExclusive("follow", "limit")
	return c
}

// notificationColumns are the columns, as wide as they usually are.
var notificationColumns = []struct {
	name  string
	width int
}{{"TIME", 15}, {"PORT", 6}, {"CLASS", 7}, {"KIND", 13}, {"ACTION", 16}, {"LEVEL", 5}, {"SOURCE", 15}, {"QP", 8}, {"EVIDENCE", 8}, {"DESTINATION", 15}, {"QP", 8}, {"WHY", 0}}

func notificationCells(n *report.Notification) []string {
	kind, action := n.Kind, n.Asks()
	if kind == "" {
		kind, action = n.Outcome, "-"
	}
	return []string{n.Time.Local().Format("15:04:05.000000"), n.Port, n.Class, kind, action, strconv.Itoa(int(n.Level)), n.SourceIP.String(), orDash(n.SourceQP),
		orDash(n.QPEvidence), n.DestinationIP.String(), strconv.FormatUint(uint64(n.DestinationQP), 10), n.Why}
}

func notificationHeader() (names []string) {
	for _, column := range notificationColumns {
		names = append(names, column.name)
	}
	return names
}

func printNotifications(to io.Writer, all *api.Notifications) error {
	if len(all.Notifications) == 0 {
		_, err := fmt.Fprintln(to, "no such notification since the gateway started; cnpgate explain SENDER RECEIVER says why a sender is not notified")
		return err
	}
	w := newTable(to, strings.Join(notificationHeader(), "\t"))
	for i := range all.Notifications {
		w.line(notificationCells(&all.Notifications[i]))
	}
	return w.Flush()
}

// follow prints notifications as they are sent.
func (f *showFlags) follow(c *cobra.Command, values url.Values) error {
	to := c.OutOrStdout()
	begun, each := func() error { return printFollowed(to, notificationHeader()) }, func(s *api.Streamed) error {
		if s.Notification == nil {
			_, err := fmt.Fprintf(to, "%d notifications were overwritten before they could be read\n", s.Lost)
			return err
		}
		return printFollowed(to, notificationCells(s.Notification))
	}
	if f.output == "json" {
		lines := json.NewEncoder(to)
		begun, each = func() error { return nil }, func(s *api.Streamed) error { return lines.Encode(s) }
	}
	return f.ask(c, func(ctx context.Context, client *api.Client) error {
		return api.Stream(ctx, client, api.Path(api.StreamPath, values), begun, each)
	})
}

// printFollowed prints a line without knowing those that follow.
func printFollowed(to io.Writer, cells []string) error {
	var line strings.Builder
	for i, column := range notificationColumns {
		fmt.Fprintf(&line, "%-*s  ", column.width, cells[i])
	}
	_, err := fmt.Fprintln(to, strings.TrimRight(line.String(), " "))
	return err
}
