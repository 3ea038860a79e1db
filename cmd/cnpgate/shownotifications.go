package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/columns"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/internal/units"
)

func showNotificationsCommand(f *showFlags) *cobra.Command {
	var (
		filter notificationFilter
		limit  uint16
		follow bool
	)
	c := f.command(&cobra.Command{
		Use:   "notifications [FILTERS] [--follow] [-o text|json] [--watch TIME] [--socket PATH | --config FILE]",
		Short: "Print the latest notifications of the running gateway, and why it sent them",
		Long: `One line per notification, the latest last, with these columns:` + columns.Help(report.Notifications.Text()) + `

--outcome suppressed prints notifications that were not sent, and why:
one for each reason in 10 ms. Each worker keeps its latest 1,024 notifications, and 256 suppressed ones.
--follow prints those from now on, as they are sent, until Ctrl-C; with -o json one object per line.`,
	}, showable{})
	c.RunE = func(c *cobra.Command, _ []string) error {
		if limit == 0 || limit > api.MaxNotifications {
			return fmt.Errorf("--limit is %d, expected 1 to %d", limit, api.MaxNotifications)
		}
		values := filter.values()
		if follow && f.watch != 0 {
			return seeHelp(c, errors.New("--follow and --watch exclude each other; expected one of them"))
		}
		if follow {
			return f.follow(c, values)
		}
		values.Set("limit", strconv.FormatUint(uint64(limit), 10))
		s := printed(api.Path(api.NotificationsPath, values), printNotifications)
		latest := s.print
		s.print = func(ctx context.Context, client *api.Client, to io.Writer) error {
			if err := printMostNotified(ctx, client, to); err != nil {
				return err
			}
			return latest(ctx, client, to)
		}
		return f.show(c, s)
	}
	filter.add(c)
	c.Flags().Uint16VarP(&limit, "limit", "n", 20, "print at most this many, the latest ones")
	c.Flags().BoolVarP(&follow, "follow", "f", false, "print the notifications from now on, until Ctrl-C")
	c.MarkFlagsMutuallyExclusive("follow", "limit")
	return c
}

// mostNotified is how many senders the list of notifications begins with.
const mostNotified = 5

// printMostNotified prints how often the senders that are notified most were, of the flows that are known.
func printMostNotified(ctx context.Context, client *api.Client, to io.Writer) error {
	m, err := api.Get[api.Modes](ctx, client, api.ModePath)
	if err != nil {
		return err
	}
	verb := "was"
	if len(observing(m)) > 0 {
		verb = "would be"
	}
	all, err := api.Get[api.SendersBody](ctx, client, fmt.Sprintf("%s?sort=notifications&limit=%d", api.SendersPath, mostNotified))
	for i := 0; err == nil && i < len(all.Senders) && all.Senders[i].Notifications > 0; i++ {
		s := &all.Senders[i]
		_, err = fmt.Fprintf(to, "%v %s notified %s about %s.\n", s.SourceIP, verb, plural(int(s.Notifications), "time"), plural(int(s.Flows), "flow"))
	}
	return err
}

func printNotifications(to io.Writer, all *api.Notifications) error {
	if len(all.Notifications) == 0 {
		_, err := fmt.Fprintln(to, "no such notification since the gateway started; cnpgate explain SENDER RECEIVER says why a sender is not notified")
		return err
	}
	return printTable(to, report.Notifications, all.Notifications)
}

// follow prints notifications as they are sent.
func (f *showFlags) follow(c *cobra.Command, values url.Values) error {
	to, shown := paperOf(c.OutOrStdout(), f.wide), report.Notifications.Text()
	shown = followedColumns(to, shown)
	begun, each := func() error { return printFollowed(to, shown, headers(shown)) }, func(s *api.Streamed) error {
		if s.Notification == nil {
			_, err := fmt.Fprintf(to, "%d notifications were overwritten before they could be read\n", s.Lost)
			return err
		}
		return printFollowed(to, shown, columns.Cells(shown, s.Notification))
	}
	if f.output == "json" {
		lines := json.NewEncoder(to)
		begun, each = func() error { return nil }, func(s *api.Streamed) error { return lines.Encode(s) }
	}
	return f.ask(c, func(ctx context.Context, client *api.Client) error {
		return api.Stream(ctx, client, api.Path(api.StreamPath, values), begun, each)
	})
}

// followedColumns are the columns of lines that are printed one by one: all, or on paper those that most likely fit. Reasons have lines of their own.
func followedColumns(to paper, all []columns.Column) []columns.Column {
	shown := slices.Clone(all)
	for {
		width, least := 0, -1
		for i := range shown {
			if c := &shown[i]; c.As != columns.Long {
				width += followedWidths[c.As] + cellGap
				if c.Least > 0 && (least < 0 || c.Least < shown[least].Least) {
					least = i
				}
			}
		}
		if to.columns == 0 || width-cellGap <= to.columns || least < 0 {
			return shown
		}
		shown = slices.Delete(shown, least, least+1)
	}
}

// followedWidths are the usual widths of columns, by form.
var followedWidths = map[columns.Form]int{columns.Clock: 15, columns.Host: 11, columns.Text: 12, columns.Asks: 8, columns.Count: 5, columns.SourceQP: 4, columns.ID: 4}

// printFollowed prints a line without knowing those that follow. On paper the reason has a line of its own.
func printFollowed(to paper, shown []columns.Column, cells []string) error {
	line, below := "", ""
	for i := range shown {
		switch c := &shown[i]; {
		case to.columns > 0 && c.As == columns.Long && cells[i] != c.Name:
			below = broken("    ", "    ", cells[i], to.columns-4)
		case to.columns == 0 || c.As != columns.Long:
			line += fmt.Sprintf("%-*s  ", followedWidths[c.As], cells[i])
		}
	}
	_, err := fmt.Fprintf(to, "%s\n%s", strings.TrimRight(line, " "), below)
	return err
}

func printEpisodes(to io.Writer, all *api.Episodes) error {
	if len(all.Episodes) == 0 {
		_, err := fmt.Fprintln(to, "no congestion since the gateway started")
		return err
	}
	for i := range all.Episodes {
		if err := printEpisode(to, &all.Episodes[i]); err != nil {
			return err
		}
	}
	return nil
}

func printEpisode(to io.Writer, e *report.Episode) error {
	duration := "ongoing"
	if e.End != nil {
		duration = e.End.Sub(e.Start).Round(time.Millisecond).String()
	}
	more := ""
	if e.Observed > 0 {
		more = fmt.Sprintf("; observed, not sent: %d", e.Observed)
	}
	if len(e.Suppressed) > 0 {
		more += "; suppressed: " + columns.CountsText(e.Suppressed)
	}
	if e.Lost > 0 {
		more += fmt.Sprintf("; %d notifications of the gateway were overwritten before they were counted", e.Lost)
	}
	text := fmt.Sprintf("%d: queue %s/%s from %s, %s; peak %s; %d packets marked; notifications: %s%s", e.ID, e.Port, e.Class,
		e.Start.Local().Format("2006-01-02 15:04:05.000"), duration, units.Size(e.PeakBytes), e.ECNMarked, columns.CountsText(e.Notifications), more)
	if err := printBroken(to, "", "  ", text); err != nil {
		return err
	}
	w := tableOf(to, report.Reactions.Text(), listed(e))
	w.before = "  "
	return w.Flush()
}

// listed are the flows that sent most, then those of other notified senders.
func listed(e *report.Episode) []report.EpisodeFlow {
	all := slices.Clone(e.Flows)
	for _, s := range e.Senders {
		if !slices.ContainsFunc(e.Flows, func(f report.EpisodeFlow) bool {
			return f.SourceIP == s.SourceIP && f.DestinationIP == s.DestinationIP && f.DestinationQP == s.DestinationQP
		}) {
			all = append(all, s)
		}
	}
	return all
}
