package telemetry_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/telemetry"
)

// TestBuckets: a bound belongs to its bucket, and what is above it to the next one.
func TestBuckets(t *testing.T) {
	for _, c := range []struct {
		metric *telemetry.Metric
		value  uint64
		bucket int
	}{
		{telemetry.LoopGap, 0, 0},
		{telemetry.LoopGap, 128, 0},
		{telemetry.LoopGap, 129, 1},
		{telemetry.LoopGap, 256, 1},
		{telemetry.LoopGap, 257, 2},
		{telemetry.LoopGap, 1 << 30, 23},
		{telemetry.LoopGap, 1<<30 + 1, 24},
		{telemetry.LoopGap, math.MaxUint64, 24},
		{telemetry.QueueOccupancy, 1024, 0},
		{telemetry.QueueOccupancy, 1025, 1},
		{telemetry.QueueOccupancy, 1 << 33, 23},
		{telemetry.QueueOccupancy, 1<<33 + 1, 24},
	} {
		if got := telemetry.Bucket(c.metric.Exponent(), c.value); got != c.bucket {
			t.Errorf("%s: %d is in bucket %d, want %d", c.metric.Name, c.value, got, c.bucket)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.SampledFrom([]*telemetry.Metric{telemetry.LoopGap, telemetry.QueueOccupancy}).Draw(t, "metric")
		v := rapid.Uint64().Draw(t, "value") >> rapid.IntRange(0, 63).Draw(t, "shift")
		i := telemetry.Bucket(m.Exponent(), v)
		if i < telemetry.Buckets && v > m.Bound(i) || i > 0 && v <= m.Bound(i-1) {
			t.Fatalf("%s: %d is in bucket %d", m.Name, v, i)
		}
	})
}
