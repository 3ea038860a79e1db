package main

import (
	"context"
	"time"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/telemetry"
)

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
	return report.Rate(8 * t.bytesPS)
}

func (t traffic) packets() string {
	if !t.known {
		return "-"
	}
	return report.Packets(t.packetsPS)
}

// portRates reads the counters twice, an interval apart, or once if that is 0. c are the later ones.
func portRates(ctx context.Context, client *api.Client, interval time.Duration) (c *report.Counters, r rates, err error) {
	before, err := client.Counters(ctx, api.CountersPath)
	if err != nil || interval == 0 {
		return before, rates{}, err
	}
	began := time.Now()
	select {
	case <-ctx.Done():
		return nil, rates{}, ctx.Err()
	case <-time.After(interval):
	}
	c, err = client.Counters(ctx, api.CountersPath)
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
