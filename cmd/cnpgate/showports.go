package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/internal/units"
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
  DEVICE            its driver and kernel interface, MAC address, MTU, and the link's state and speed
  PROBLEM           why the port is not forwarding

-o json prints the API's answer to GET /v1/counters.`,
	}, showable{})
	intervalFlag(c, &interval)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if f.output == "text" {
			if err := f.checkInterval(&interval); err != nil {
				return err
			}
		}
		return f.show(c, showable{resource: api.CountersPath, print: func(ctx context.Context, client *api.Client, to io.Writer) error {
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

// deviceColumn is the first of the columns that are texts.
const deviceColumn = 13

func showPorts(ctx context.Context, client *api.Client, interval time.Duration, to io.Writer) error {
	c, rates, err := portRates(ctx, client, interval)
	if err != nil {
		return err
	}
	health, err := api.Get[api.Health](ctx, client, api.HealthPath)
	if err != nil {
		return err
	}
	w := newTable(to, "PORT\tROLE\tPEER\tRATE\tRX\tRX_PPS\tTX\tTX_PPS\tRX_PACKETS\tTX_PACKETS\tDROPPED\tMARKED\tNOTIFICATIONS\tDEVICE\tPROBLEM", "RX_PPS", "TX_PPS", "ROLE", "TX_PACKETS", "RX_PACKETS", "PEER", "RATE")
	w.below = deviceColumn
	for i := range c.Ports {
		p := &c.Ports[i]
		rx, tx := rates.of(i)
		w.row(p.Name, p.Role, p.Peer, units.Rate(p.RateBps), rx.bits(), rx.packets(), tx.bits(), tx.packets(),
			p.Counters.Sum(telemetry.ReceivedPackets), p.Counters.Sum(telemetry.ForwardedPackets), p.Counters.Sum(telemetry.DroppedPackets),
			p.Counters.Sum(telemetry.ECNMarkedPackets)+p.Counters.Sum(telemetry.ECNObservedPackets), p.Counters.Sum(telemetry.NotificationsSent)+p.Counters.Sum(telemetry.NotificationsObserved), deviceText(p.Facts), cmp.Or(health.Problems[p.Name], "-"))
	}
	return w.Flush()
}

// deviceText is such as "mlx5_pci, MAC 02:00:00:00:00:01, MTU 9000, link up at 100Gbps".
func deviceText(d *report.Device) string {
	if d == nil {
		return "-"
	}
	text, link := d.Driver, "link down"
	if d.Interface != "" {
		text += " on " + d.Interface
	}
	if d.MAC != "" {
		text += ", MAC " + d.MAC
	}
	if d.LinkUp {
		link = "link up"
		if d.SpeedBPS > 0 {
			link += " at " + units.Rate(d.SpeedBPS)
		}
	}
	return fmt.Sprintf("%s, MTU %d, %s", text, d.MTU, link)
}

func printQueues(to io.Writer, c *report.Counters) error {
	w := newTable(to, "PORT\tCLASS\tDEPTH\tPEAK\tQ_REF/K_MIN\tNOTIFIES_ABOVE\tCAPACITY")
	for i := range c.Ports {
		p := &c.Ports[i]
		keeps, notifies := p.Levels()
		for _, q := range p.Queues {
			w.row(p.Name, q.Class, units.Size(q.DepthBytes), units.Size(q.WatermarkBytes), units.Size(keeps), units.Size(notifies), units.Size(p.CapacityBytes))
		}
	}
	return w.Flush()
}

// errUnhealthy sets the exit status: the problems have been printed.
var errUnhealthy = fmt.Errorf("not all ports forward")

func printHealth(to io.Writer, h *api.Health) error {
	lines := []string{}
	for _, port := range slices.Sorted(maps.Keys(h.Problems)) {
		lines = append(lines, port+": "+h.Problems[port])
	}
	if h.Healthy {
		lines = append(lines, "healthy")
	}
	lines = append(lines, servicesDown(h.Services)...)
	_, err := fmt.Fprintln(to, strings.Join(append(lines, h.Notices...), "\n"))
	return err
}

// servicesDown has a line for each service that doesn't work.
func servicesDown(services map[string]string) (lines []string) {
	for _, name := range slices.Sorted(maps.Keys(services)) {
		lines = append(lines, name+" doesn't work, and is tried again: "+services[name])
	}
	return lines
}

func isHealthy(h *api.Health) error {
	if h.Healthy {
		return nil
	}
	return errUnhealthy
}

// rates are what was counted between two readings of the counters, and the time between them; the zero rates are not known.
type rates struct {
	since *report.Counters
	time  time.Duration
}

// traffic is a rate in packets and bytes per second, if it is known.
type traffic struct {
	packetsPS, bytesPS uint64
	known              bool
}

func (t traffic) bits() string {
	if !t.known {
		return "-"
	}
	return units.Rate(8 * t.bytesPS)
}

func (t traffic) packets() string {
	if !t.known {
		return "-"
	}
	return units.Packets(t.packetsPS)
}

// portRates reads the counters twice, an interval apart, or once if that is 0. c are the later ones.
func portRates(ctx context.Context, client *api.Client, interval time.Duration) (c *report.Counters, r rates, err error) {
	before, err := api.Get[report.Counters](ctx, client, api.CountersPath)
	if err != nil || interval == 0 {
		return before, rates{}, err
	}
	began := time.Now()
	select {
	case <-ctx.Done():
		return nil, rates{}, ctx.Err()
	case <-time.After(interval):
	}
	c, err = api.Get[report.Counters](ctx, client, api.CountersPath)
	if err != nil {
		return nil, rates{}, err
	}
	return c, ratesBetween(before, c, time.Since(began)), nil
}

// ratesBetween are the rates between two readings. Between those of two gateways there are none.
func ratesBetween(before, after *report.Counters, elapsed time.Duration) rates {
	restarted := before.StartTime != nil && after.StartTime != nil && !before.StartTime.Equal(*after.StartTime)
	if elapsed <= 0 || restarted || len(before.Ports) != len(after.Ports) {
		return rates{}
	}
	r := rates{since: &report.Counters{}, time: elapsed}
	for i := range after.Ports {
		port := report.Port{Counters: telemetry.Values{}}
		port.Counters.Merge(after.Ports[i].Counters)
		port.Counters.Subtract(before.Ports[i].Counters)
		r.since.Ports = append(r.since.Ports, port)
	}
	return r
}

// of are the rates of what port i received and forwarded.
func (r rates) of(i int) (rx, tx traffic) {
	return r.traffic(i, telemetry.ReceivedPackets, telemetry.ReceivedBytes), r.traffic(i, telemetry.ForwardedPackets, telemetry.ForwardedBytes)
}

func (r rates) traffic(i int, packets, bytes *telemetry.Metric) traffic {
	if r.since == nil {
		return traffic{}
	}
	return traffic{r.perSecond(i, packets), r.perSecond(i, bytes), true}
}

// perSecond is the rate of one counter of port i.
func (r rates) perSecond(i int, m *telemetry.Metric) uint64 {
	if r.since == nil {
		return 0
	}
	return uint64(float64(r.since.Ports[i].Counters.Sum(m)) / r.time.Seconds())
}
