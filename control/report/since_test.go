package report

import (
	"reflect"
	"testing"
	"time"

	"github.com/cnpgate/cnpgate/telemetry"
)

// TestSince: counters and histograms lose what was counted before, label by label; gauges don't.
func TestSince(t *testing.T) {
	reading := func(received, shutdown, queued, fast, slow uint64) *Counters {
		v := telemetry.Values{}
		v.Add(telemetry.ReceivedPackets, "", received)
		v.Add(telemetry.DroppedPackets, "shutdown", shutdown)
		v.Add(telemetry.QueuedPackets, "", queued)
		return &Counters{Counters: v, Ports: []Port{{Counters: v, Device: telemetry.Values{}}},
			Histograms: []Histogram{{Count: fast + slow, Sum: fast + 2*slow, Buckets: []Bucket{{128, fast}, {0, slow}}}}}
	}
	c, at := reading(10, 3, 7, 5, 6), time.Unix(9, 0)
	c.Ports[0].Counters = reading(10, 3, 7, 5, 6).Counters
	c.Since(reading(4, 3, 9, 5, 2), at)
	want := telemetry.Values{}
	want.Add(telemetry.ReceivedPackets, "", 6)
	want.Add(telemetry.DroppedPackets, "shutdown", 0)
	want.Add(telemetry.QueuedPackets, "", 7)
	if !reflect.DeepEqual(c.Counters, want) || !reflect.DeepEqual(c.Ports[0].Counters, want) || !c.Mark.Equal(at) {
		t.Errorf("%v, %v", c.Counters, c.Ports[0].Counters)
	}
	if h := c.Histograms[0]; h.Count != 4 || h.Sum != 8 || !reflect.DeepEqual(h.Buckets, []Bucket{{0, 4}}) {
		t.Errorf("%+v", h)
	}
}
