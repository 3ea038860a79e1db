package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/telemetry"
)

func showPortsCommand() *cobra.Command {
	var f showFlags
	var interval time.Duration
	c := f.command(&cobra.Command{
		Use:   "ports [-o text|json] [--interval TIME] [--watch TIME] [--socket PATH | --config FILE]",
		Short: "Print the ports of the running gateway: rates, packets received, sent and dropped, and whether they forward",
		Long: `One line per port, with these columns:

  RATE              of the port in the configuration
  RX, RX_PPS        rate of the frames that arrive, without FCS, in bit/s and packets/s, during --interval
  TX, TX_PPS        rate of the received frames that the gateway forwards by the port
  RX_PACKETS        frames received since the gateway started
  TX_PACKETS        received frames forwarded by the port
  DROPPED           frames dropped on egress here, or refused on ingress here
  MARKED            packets that got CE in this port's queue
  NOTIFICATIONS     sent by this port
  PROBLEM           why the port is not forwarding

-o json prints the API's answer to GET /v1/counters.

` + showSocket,
	}, showable{})
	intervalFlag(c, &interval)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if f.output == "text" {
			if err := f.checkInterval(&interval); err != nil {
				return err
			}
		}
		return f.show(c, showable{api.CountersPath, func(ctx context.Context, client *api.Client, to io.Writer) error {
			return showPorts(ctx, client, interval, to)
		}})
	}
	return c
}

// intervalFlag adds the time for which a command measures rates.
func intervalFlag(c *cobra.Command, interval *time.Duration) {
	c.Flags().DurationVar(interval, "interval", time.Second, "time for which rates are measured, at most that of --watch; 0: don't measure")
}

// checkInterval bounds the time for which rates are measured, also by --watch.
func (f *showFlags) checkInterval(interval *time.Duration) error {
	if *interval != 0 && (*interval < api.MinInterval || *interval > api.MaxInterval) {
		return fmt.Errorf("--interval is %v, expected %v to %v, or 0 for no rates", *interval, api.MinInterval, api.MaxInterval)
	}
	if f.watch != 0 {
		*interval = min(*interval, f.watch)
	}
	return nil
}

func showPorts(ctx context.Context, client *api.Client, interval time.Duration, to io.Writer) error {
	c, rates, err := portRates(ctx, client, interval)
	if err != nil {
		return err
	}
	health, err := client.Health(ctx)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PORT\tROLE\tPEER\tRATE\tRX\tRX_PPS\tTX\tTX_PPS\tRX_PACKETS\tTX_PACKETS\tDROPPED\tMARKED\tNOTIFICATIONS\tPROBLEM")
	for i := range c.Ports {
		p := &c.Ports[i]
		rx, tx := rates.of(i)
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%s\n", p.Name, p.Role, p.Peer, report.Rate(p.RateBps), rx.bits(), rx.packets(), tx.bits(), tx.packets(),
			p.Counters.Sum(telemetry.ReceivedPackets), p.Counters.Sum(telemetry.ForwardedPackets), p.Counters.Sum(telemetry.DroppedPackets),
			p.Counters.Sum(telemetry.ECNMarkedPackets), p.Counters.Sum(telemetry.NotificationsSent), cmp.Or(health.Problems[p.Name], "-"))
	}
	return w.Flush()
}

func showQueuesCommand() *cobra.Command {
	var f showFlags
	return f.command(&cobra.Command{
		Use:   "queues [-o text|json] [--watch TIME] [--socket PATH | --config FILE]",
		Short: "Print the queues of the running gateway, and the thresholds in force",
		Long: `One line per traffic class of a port's queue: the depth, the greatest depth so far, the thresholds above which packets are marked
(K_min) and senders notified (K_max), and the capacity. -o json prints the API's answer to GET /v1/counters.

` + showSocket,
	}, showable{api.CountersPath, showQueues})
}

func showQueues(ctx context.Context, client *api.Client, to io.Writer) error {
	c, err := client.Counters(ctx, api.CountersPath)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PORT\tCLASS\tDEPTH\tPEAK\tK_MIN\tK_MAX\tCAPACITY")
	for i := range c.Ports {
		p := &c.Ports[i]
		for _, q := range p.Queues {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", p.Name, q.Class, report.Size(q.DepthBytes), report.Size(q.WatermarkBytes), report.Size(p.KMinBytes),
				report.Size(p.KMaxBytes), report.Size(p.CapacityBytes))
		}
	}
	return w.Flush()
}

func showHealthCommand() *cobra.Command {
	var f showFlags
	return f.command(&cobra.Command{
		Use:   "health [-o text|json] [--watch TIME] [--socket PATH | --config FILE]",
		Short: "Print whether all ports of the running gateway forward; the exit status is 1 if not",

		SuggestFor: []string{"status", "state"},
		Long: `Prints "healthy", or each port that doesn't forward every frame, with the cause.

` + showSocket,
	}, showable{api.HealthPath, showHealth})
}

// errUnhealthy sets the exit status: the problems have been printed.
var errUnhealthy = fmt.Errorf("not all ports forward")

func showHealth(ctx context.Context, client *api.Client, to io.Writer) error {
	h, err := client.Health(ctx)
	if err != nil {
		return err
	}
	if h.Healthy {
		_, err = fmt.Fprintln(to, strings.Join(append([]string{"healthy"}, h.Notices...), "\n"))
		return err
	}
	for _, port := range slices.Sorted(maps.Keys(h.Problems)) {
		if _, err := fmt.Fprintf(to, "%s: %s\n", port, h.Problems[port]); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprint(to, strings.Join(append(h.Notices, ""), "\n")); err != nil {
		return err
	}
	return errUnhealthy
}

// copyHealth copies the API's answer, and returns errUnhealthy if it says so.
func copyHealth(to io.Writer, answer io.Reader) error {
	var text bytes.Buffer
	if _, err := io.Copy(to, io.TeeReader(answer, &text)); err != nil {
		return err
	}
	var h api.Health
	if err := json.Unmarshal(text.Bytes(), &h); err != nil {
		return fmt.Errorf("the answer of the gateway: %w; expected that of a gateway of this version", err)
	}
	if !h.Healthy {
		return errUnhealthy
	}
	return nil
}
