package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/columns"
	"github.com/cnpgate/cnpgate/control/fleetlink"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/telemetry"
)

func statusCommand() *cobra.Command {
	var f showFlags
	return f.ofGateway(&cobra.Command{
		Use:   "status [--socket PATH | --config FILE]",
		Short: "Print in a few lines whether the running gateway is well; the exit status is 1 if not all ports forward",
		Long: `Prints whether all ports forward, the mode, what was dropped and notified since the start, what doesn't work or needs attention, and the state of the fleet. The
commands show health, show counters, set and show fleet have the details.`,
		SuggestFor: []string{"state", "info"},
		RunE: func(c *cobra.Command, _ []string) error {
			return f.ask(c, func(ctx context.Context, client *api.Client) error {
				return printStatus(ctx, client, paperOf(c.OutOrStdout(), false), time.Now())
			})
		},
	})
}

// printStatus prints the status of a gateway at a time.
func printStatus(ctx context.Context, client *api.Client, to io.Writer, now time.Time) error {
	var (
		h     *api.Health
		c     *report.Counters
		m     *api.Modes
		fleet *fleetlink.FleetStatus
	)
	if err := (reads{as(&h, api.HealthPath), as(&c, api.CountersPath), as(&m, api.ModePath), as(&fleet, api.FleetPath)}).from(ctx, client); err != nil {
		return err
	}
	lines := []string{c.Gateway + " " + upTime(c.StartTime, now) + ", " + modeText(m)}
	for _, count := range []struct {
		name   string
		metric *telemetry.Metric
	}{
		{"received packets", telemetry.ReceivedPackets}, {"dropped packets", telemetry.DroppedPackets},
		{"notifications", telemetry.NotificationsSent}, {"notifications that would have been sent", telemetry.NotificationsObserved},
	} {
		lines = append(lines, countText(c.Counters, count.name, count.metric))
	}
	var missed []string
	for i := range c.Ports {
		if n := c.Ports[i].Device.Sum(telemetry.DeviceMissed); n > 0 {
			missed = append(missed, fmt.Sprintf("%d at %s", n, c.Ports[i].Name))
		}
	}
	if len(missed) > 0 {
		lines = append(lines, "packets lost before the gateway read them: "+strings.Join(missed, ", ")+" (device_missed_packets_total)")
	}
	if fleet.Enabled {
		active := 0
		for i := range fleet.Members {
			if fleet.Members[i].Self || fleet.Members[i].State == "active" {
				active++
			}
		}
		lines = append(lines, fmt.Sprintf("fleet %s: %d of %d gateways are active", fleet.Site, active, len(fleet.Members)))
	}
	for _, line := range lines {
		if err := printHung(to, "", line); err != nil {
			return err
		}
	}
	if err := printHealth(to, h); err != nil {
		return err
	}
	return isHealthy(h)
}

// upTime says since when a gateway runs.
func upTime(start *time.Time, now time.Time) string {
	if start == nil {
		return "runs"
	}
	return "runs for " + now.Sub(*start).Round(time.Second).String()
}

// modeText is the mode of the ports: of all, or of those that only observe.
func modeText(m *api.Modes) string {
	switch ports := observing(m); len(ports) {
	case 0:
		return "mode send"
	case len(m.Ports):
		return "mode observe: nobody is notified"
	default:
		return "mode send, and observe of " + ofPorts(ports)
	}
}

// countText is a counter, with its parts if it has some.
func countText(v telemetry.Values, name string, m *telemetry.Metric) string {
	text := fmt.Sprintf("%s: %d", name, v.Sum(m))
	if parts := v[m.Name].By; v.Sum(m) > 0 && len(parts) > 0 {
		text += " (" + columns.CountsText(parts) + ")"
	}
	return text
}
