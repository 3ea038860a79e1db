package main

import (
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/report"
)

func showEpisodesCommand() *cobra.Command {
	var f showFlags
	return f.command(&cobra.Command{
		Use:   "episodes [-o text|json] [--watch TIME] [--socket PATH | --config FILE]",
		Short: "Print the congestion episodes of the running gateway: when, how bad, which flows, and which senders slowed down",
		Long: `A line for each time that a queue was above K_min, the latest last: the queue, start and duration, its peak, packets marked and notifications sent.
Below it, a line for each of the flows that sent most and for each flow whose sender was notified: the bytes that arrived in the episode, the most bytes
queued, notifications, and the rates before and after the first notification. An episode ends when the queue has stayed below K_min for 1 s. The gateway
keeps the latest 256 episodes.`,
	}, printed(api.EpisodesPath, printEpisodes))
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
		more += "; suppressed: " + listCounts(e.Suppressed)
	}
	if e.Lost > 0 {
		more += fmt.Sprintf("; %d notifications of the gateway were overwritten before they were counted", e.Lost)
	}
	fmt.Fprintf(to, "%d: queue %s/%s from %s, %s; peak %d bytes; %d packets marked; notifications: %s%s\n", e.ID, e.Port, e.Class,
		e.Start.Local().Format("2006-01-02 15:04:05.000"), duration, e.PeakBytes, e.ECNMarked, listCounts(e.Notifications), more)
	w := newTable(to, "  SOURCE\tQP\tDESTINATION\tQP\tBYTES\tMOST QUEUED\tNOTIFIED\tMBIT/S BEFORE\tMBIT/S AFTER\tSLOWED")
	for _, f := range listed(e) {
		slowed := "-"
		if f.Slowed != nil {
			slowed = map[bool]string{true: "yes", false: "no"}[*f.Slowed]
		}
		w.row("  "+f.SourceIP.String(), orDash(f.SourceQP), f.DestinationIP, f.DestinationQP, f.Bytes, f.Queued,
			f.Notifications, megabits(f.Before), megabits(f.After), slowed)
	}
	return w.Flush()
}

// listed are the flows that sent most, then those of other notified senders.
func listed(e *report.Episode) []report.EpisodeFlow {
	return append(e.Flows[:len(e.Flows):len(e.Flows)], notListed(e.Flows, e.Senders)...)
}

// notListed are the senders whose flows are not in a list.
func notListed(list, senders []report.EpisodeFlow) (out []report.EpisodeFlow) {
	type name struct {
		from, to netip.Addr
		qp       uint32
	}
	has := map[name]bool{}
	for i := range list {
		has[name{list[i].SourceIP, list[i].DestinationIP, list[i].DestinationQP}] = true
	}
	for i := range senders {
		if f := &senders[i]; !has[name{f.SourceIP, f.DestinationIP, f.DestinationQP}] {
			out = append(out, *f)
		}
	}
	return out
}

func megabits(bps *uint64) string {
	const mega = 1e6
	if bps == nil {
		return "-"
	}
	return fmt.Sprintf("%.3f", float64(*bps)/mega)
}
