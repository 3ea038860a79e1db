package main

import (
	"testing"
	"time"

	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/telemetry"
)

// TestRates: rates follow from two readings, and not from those of two gateways.
func TestRates(t *testing.T) {
	reading := func(started int64, packets, bytes uint64) *report.Counters {
		v, start := telemetry.Values{}, time.Unix(started, 0)
		v.Add(telemetry.ReceivedPackets, "", packets)
		v.Add(telemetry.ReceivedBytes, "", bytes)
		v.Add(telemetry.ForwardedPackets, "", 2*packets)
		v.Add(telemetry.ForwardedBytes, "", 2*bytes)
		c := &report.Counters{Ports: []report.Port{{Counters: v}}}
		c.StartTime = &start
		return c
	}
	for _, c := range []struct {
		started int64
		elapsed time.Duration
		known   bool
		want    [4]uint64 // bytes and packets a second, received and forwarded
	}{
		{1, time.Second, true, [4]uint64{1e6, 1000, 2e6, 2000}},
		{1, 500 * time.Millisecond, true, [4]uint64{2e6, 2000, 4e6, 4000}},
		{1, 0, false, [4]uint64{}},
		{2, time.Second, false, [4]uint64{}},
	} {
		r := ratesBetween(reading(1, 500, 7), reading(c.started, 1500, 1_000_007), c.elapsed)
		of := func(m *telemetry.Metric) uint64 { return r.perSecond(0, m) }
		if got := [4]uint64{of(telemetry.ReceivedBytes), of(telemetry.ReceivedPackets), of(telemetry.ForwardedBytes), of(telemetry.ForwardedPackets)}; got != c.want || (r.since != nil) != c.known {
			t.Errorf("started at %d, in %v: %v, want %v", c.started, c.elapsed, got, c.want)
		}
	}
}
