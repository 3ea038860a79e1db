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
		want    [4]string
	}{
		{1, time.Second, [4]string{"8Mbps", "1kpps", "16Mbps", "2kpps"}},
		{1, 500 * time.Millisecond, [4]string{"16Mbps", "2kpps", "32Mbps", "4kpps"}},
		{1, 0, [4]string{"-", "-", "-", "-"}},
		{2, time.Second, [4]string{"-", "-", "-", "-"}},
	} {
		rx, tx := ratesBetween(reading(1, 500, 7), reading(c.started, 1500, 1_000_007), c.elapsed).of(0)
		if got := [4]string{rx.bits(), rx.packets(), tx.bits(), tx.packets()}; got != c.want {
			t.Errorf("started at %d, in %v: %v, want %v", c.started, c.elapsed, got, c.want)
		}
	}
}
