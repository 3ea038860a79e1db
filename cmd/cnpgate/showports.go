package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/columns"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/internal/units"
	"github.com/cnpgate/cnpgate/telemetry"
)

func showPortsCommand(f *showFlags) *cobra.Command {
	var interval time.Duration
	c := f.command(&cobra.Command{
		Use:   "ports [-o text|json] [--interval TIME] [--watch TIME] [--socket PATH | --config FILE]",
		Short: "Print the ports of the running gateway: rates, packets received, sent and dropped, and whether they forward",
		Long: `One line per port, with these columns:` + columns.Help(portColumns.Text()) + `

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

// shownPort is a row of show ports.
type shownPort struct {
	Name          string  `json:"port" column:"PORT"`
	Role          string  `json:"role" column:"ROLE,,,3"`
	Peer          string  `json:"peer" column:"PEER,,,6"`
	Rate          uint64  `json:"rate_bps" column:"RATE,,rate,7" doc:"Rate of the port in the configuration."`
	RX            *uint64 `json:"rx_bps" column:"RX,,rate" doc:"Rate of the frames that arrive, without FCS, during --interval."`
	RXPPS         *uint64 `json:"rx_pps" column:"RX_PPS,,pps,1" doc:"The same, packets a second."`
	TX            *uint64 `json:"tx_bps" column:"TX,,rate" doc:"Rate of the received frames that the gateway forwards by the port."`
	TXPPS         *uint64 `json:"tx_pps" column:"TX_PPS,,pps,2" doc:"The same, packets a second."`
	RXPackets     uint64  `json:"rx_packets" column:"RX_PACKETS,,count,5" doc:"Frames received since the gateway started."`
	TXPackets     uint64  `json:"tx_packets" column:"TX_PACKETS,,count,4" doc:"Received frames forwarded by the port."`
	Dropped       uint64  `json:"dropped" column:"DROPPED,,count" doc:"Frames dropped on egress here, or refused on ingress here."`
	Marked        uint64  `json:"marked" column:"MARKED,,count" doc:"Packets that got CE in this port's queue."`
	Notifications uint64  `json:"notifications" column:"NOTIFICATIONS,,count" doc:"Sent by this port."`
	Device        string  `json:"device" column:"DEVICE,,long" doc:"Driver and kernel interface, MAC address, MTU, and the link's state and speed."`
	Problem       string  `json:"problem" column:"PROBLEM,,long" doc:"Why the port is not forwarding."`
}

var portColumns = columns.New[shownPort]()

func showPorts(ctx context.Context, client *api.Client, interval time.Duration, to io.Writer) error {
	c, rates, err := portRates(ctx, client, interval)
	if err != nil {
		return err
	}
	health, err := api.Get[api.Health](ctx, client, api.HealthPath)
	if err != nil {
		return err
	}
	var rows []shownPort
	for i := range c.Ports {
		p := &c.Ports[i]
		sum := p.Counters.Sum
		row := shownPort{
			Name: p.Name, Role: p.Role, Peer: p.Peer, Rate: p.RateBps, Device: deviceText(p.Facts), Problem: health.Problems[p.Name],
			RXPackets: sum(telemetry.ReceivedPackets), TXPackets: sum(telemetry.ForwardedPackets), Dropped: sum(telemetry.DroppedPackets),
			Marked:        sum(telemetry.ECNMarkedPackets) + sum(telemetry.ECNObservedPackets),
			Notifications: sum(telemetry.NotificationsSent) + sum(telemetry.NotificationsObserved),
		}
		if rates.since != nil {
			rx, tx := 8*rates.perSecond(i, telemetry.ReceivedBytes), 8*rates.perSecond(i, telemetry.ForwardedBytes)
			rxPackets, txPackets := rates.perSecond(i, telemetry.ReceivedPackets), rates.perSecond(i, telemetry.ForwardedPackets)
			row.RX, row.RXPPS, row.TX, row.TXPPS = &rx, &rxPackets, &tx, &txPackets
		}
		rows = append(rows, row)
	}
	return printTable(to, portColumns, rows)
}

// deviceText is such as "mlx5_pci, MAC 02:00:00:00:00:01, MTU 9000, link up at 100Gbps".
func deviceText(d *report.Device) string {
	if d == nil {
		return ""
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
	var rows []shownQueue
	for i := range c.Ports {
		p := &c.Ports[i]
		keeps, notifies := p.Levels()
		for _, q := range p.Queues {
			rows = append(rows, shownQueue{p.Name, q.Class, q.DepthBytes, q.WatermarkBytes, keeps, notifies, p.CapacityBytes})
		}
	}
	return printTable(to, queueColumns, rows)
}

// shownQueue is a row of show queues.
type shownQueue struct {
	Port     string `json:"port" column:"PORT"`
	Class    string `json:"class" column:"CLASS"`
	Depth    uint64 `json:"depth" column:"DEPTH,,bytes" doc:"Bytes that wait."`
	Peak     uint64 `json:"peak" column:"PEAK,,bytes" doc:"The most that waited so far."`
	Keeps    uint64 `json:"keeps" column:"Q_REF/K_MIN,,bytes" doc:"Depth that the control law keeps, or above which packets are marked."`
	Notifies uint64 `json:"notifies" column:"NOTIFIES_ABOVE,,bytes" doc:"Depth above which senders are notified."`
	Capacity uint64 `json:"queue_capacity_bytes" column:"CAPACITY,,bytes"`
}

var queueColumns = columns.New[shownQueue]()

// errUnhealthy sets the exit status: the problems have been printed.
var errUnhealthy = &exitError{errors.New("not all ports forward"), 1}

func printHealth(to io.Writer, h *api.Health) error {
	lines := []string{}
	for _, port := range slices.Sorted(maps.Keys(h.Problems)) {
		lines = append(lines, port+": "+h.Problems[port])
	}
	if h.Healthy {
		lines = append(lines, "healthy")
	}
	lines = append(lines, servicesDown(h.Services)...)
	for _, line := range append(lines, h.Notices...) {
		if err := printHung(to, "", line); err != nil {
			return err
		}
	}
	return nil
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

// perSecond is the rate of one counter of port i.
func (r rates) perSecond(i int, m *telemetry.Metric) uint64 {
	if r.since == nil {
		return 0
	}
	return uint64(float64(r.since.Ports[i].Counters.Sum(m)) / r.time.Seconds())
}
