package report

import "time"

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
