package report

import (
	"math"
	"strconv"
	"time"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/telemetry"
)

// Histogram is a histogram of a port, of a class of its queue, or of a worker. Its name and unit are those of the catalogue in package telemetry.
type Histogram struct {
	Name    string   `json:"name" doc:"Name of the port, or of the histogram."`
	Port    string   `json:"port,omitempty"`
	Class   string   `json:"class,omitempty"`
	Worker  string   `json:"worker,omitempty" doc:"Number of the worker, from 0."`
	Count   uint64   `json:"count" doc:"Number of values."`
	Sum     uint64   `json:"sum" doc:"Sum of the values."`
	Buckets []Bucket `json:"buckets" doc:"Values by size."` // those with values, the smallest first
}

// Bucket has the values up to its bound and above that of the bucket before, which is half of it.
type Bucket struct {
	AtMost uint64 `json:"at_most,omitempty" doc:"Upper bound of a bucket."` // 0: there is no bound
	Count  uint64 `json:"count" doc:"Number of values."`
}

// MakeHistograms reads what the workers of a dataplane have published. Any goroutine may call it.
func MakeHistograms(c *config.Config, d *dataplane.Dataplane) (all []Histogram) {
	h := d.Histograms()
	for i := range c.Ports {
		port := &c.Ports[i]
		all = append(all, makeHistogram(telemetry.ReactionTime, &h.Reaction[i], Histogram{Port: port.Name}))
		for class, name := range port.ClassNames {
			all = append(all, makeHistogram(telemetry.QueueOccupancy, &h.Occupancy[i][class], Histogram{Port: port.Name, Class: name}))
		}
	}
	for i := range h.LoopGap {
		all = append(all, makeHistogram(telemetry.LoopGap, &h.LoopGap[i], Histogram{Worker: strconv.Itoa(i)}))
	}
	return all
}

// makeHistogram adds a metric's values to a histogram that names their port, class or worker.
func makeHistogram(m *telemetry.Metric, values *telemetry.Histogram, of Histogram) Histogram {
	of.Name, of.Count, of.Sum, of.Buckets = m.Name, values.Total(), values.Sum, []Bucket{}
	for i, n := range values.Count {
		if n == 0 {
			continue
		}
		b := Bucket{Count: n}
		if i < telemetry.Buckets {
			b.AtMost = m.Bound(i)
		}
		of.Buckets = append(of.Buckets, b)
	}
	return of
}

// Quantile is a bound that this part of the values, from 0 to 1, doesn't exceed; false if there is none, or no value.
func (h *Histogram) Quantile(q float64) (bound uint64, ok bool) {
	want, n := uint64(math.Ceil(q*float64(h.Count))), uint64(0)
	for _, b := range h.Buckets {
		if n += b.Count; n >= want {
			return b.AtMost, b.AtMost != 0
		}
	}
	return 0, false
}

// Since makes the counters and histograms those since an earlier time, at which they were old. Gauges stay what they are.
func (c *Counters) Since(old *Counters, at time.Time) {
	c.Mark = &at
	c.Counters.Subtract(old.Counters)
	for i := range min(len(c.Ports), len(old.Ports)) {
		c.Ports[i].Counters.Subtract(old.Ports[i].Counters)
		c.Ports[i].Device.Subtract(old.Ports[i].Device)
	}
	for i := range min(len(c.Histograms), len(old.Histograms)) {
		c.Histograms[i].subtract(&old.Histograms[i])
	}
}

// subtract removes the values of the same histogram at an earlier time.
func (h *Histogram) subtract(old *Histogram) {
	h.Count -= min(old.Count, h.Count)
	h.Sum -= min(old.Sum, h.Sum)
	before := map[uint64]uint64{}
	for _, b := range old.Buckets {
		before[b.AtMost] = b.Count
	}
	left := []Bucket{}
	for _, b := range h.Buckets {
		if n := before[b.AtMost]; b.Count > n {
			left = append(left, Bucket{b.AtMost, b.Count - n})
		}
	}
	h.Buckets = left
}
