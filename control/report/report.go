// Package report writes what a run or a replay did: the flows, every counter, and each port's queue, as JSON. It reads what
// workers have published and what their flow tables hold; it changes nothing.
package report

import (
	"encoding/json"
	"io"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/dataplane"
)

// Report is the whole of it.
type Report struct {
	Gateway  string  `json:"gateway"`
	Flows    []Flow  `json:"flows"`
	Counters Values  `json:"counters"`
	Ports    []Port  `json:"ports"`
	Timeline []Depth `json:"timeline,omitempty"`
}

// Values holds counters by metric name without the prefix cnpgate_: a number, or numbers by the value of the metric's label.
type Values map[string]any

// Port is one port's part.
type Port struct {
	Name          string `json:"name"`
	Role          string `json:"role"`
	Peer          string `json:"peer"`
	RateBps       uint64 `json:"rate_bps"`
	KMinBytes     uint64 `json:"k_min_bytes"`
	KMaxBytes     uint64 `json:"k_max_bytes"`
	CapacityBytes uint64 `json:"queue_capacity_bytes"`
	// DepthBytes and WatermarkBytes are of the class that has most.
	DepthBytes     uint64 `json:"queue_depth_bytes"`
	WatermarkBytes uint64 `json:"queue_watermark_bytes"`
	Counters       Values `json:"counters"`
	// Device is what the port's device counted by itself, of frames that no worker has seen; a replay has none.
	Device Values `json:"device,omitempty"`
}

// Depth is a port's queue at a moment of a run.
type Depth struct {
	MS         int64  `json:"ms"` // since the run began
	Port       string `json:"port"`
	DepthBytes uint64 `json:"depth_bytes"`
}

// Write writes the report, indented, with a newline at its end.
func (r *Report) Write(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(r)
}

// Make reads a dataplane. Its workers must have stopped, or be stepped by the caller's goroutine.
func Make(c *config.Config, d *dataplane.Dataplane, flows *Flows) *Report {
	r := &Report{Gateway: c.Gateway.Name}
	total := make([]dataplane.PortStats, 0, len(c.Ports))
	for i := range c.Ports {
		s := d.Port(i)
		total = append(total, s)
		r.Ports = append(r.Ports, makePort(c, i, &s))
	}
	r.Counters = values(total)
	r.Flows = flows.list(d, r.Counters)
	return r
}

// Unaccounted is how many received frames were neither forwarded, dropped nor consumed, and are not queued: 0.
func (r *Report) Unaccounted() int64 {
	sum := func(name string) (n int64) {
		switch v := r.Counters[name].(type) {
		case uint64:
			return int64(v)
		case int64:
			return v
		case map[string]uint64:
			for _, c := range v {
				n += int64(c)
			}
		}
		return n
	}
	return sum("received_packets_total") - sum("forwarded_packets_total") - sum("dropped_packets_total") - sum("consumed_packets_total") -
		sum("queued_packets")
}

func makePort(c *config.Config, i int, s *dataplane.PortStats) Port {
	p := &c.Ports[i]
	return Port{
		Name: p.Name, Role: p.Role.String(), Peer: c.Ports[p.Peer].Name, RateBps: p.Rate,
		KMinBytes: p.KMin, KMaxBytes: p.KMax, CapacityBytes: p.QueueCapacity,
		DepthBytes: most(s.Depth[:]), WatermarkBytes: most(s.Watermark[:]),
		Counters: values([]dataplane.PortStats{*s}),
	}
}

func most(v []uint64) uint64 {
	m := uint64(0)
	for _, x := range v {
		m = max(m, x)
	}
	return m
}

// values adds up the counters of ports under their metrics' names, and says whether every received frame is accounted for.
func values(ports []dataplane.PortStats) Values {
	v := Values{}
	var queued int64
	for _, p := range ports {
		for n, count := range p.Count {
			v.add(dataplane.Catalogue[n], count)
		}
		for _, frames := range p.Frames {
			queued += frames
		}
	}
	v["queued_packets"] = queued
	return v
}

func (v Values) add(i dataplane.Info, count uint64) {
	if i.Label == "" {
		sum, _ := v[i.Name].(uint64)
		v[i.Name] = sum + count
		return
	}
	by, ok := v[i.Name].(map[string]uint64)
	if !ok {
		by = map[string]uint64{}
		v[i.Name] = by
	}
	by[i.Value] += count
}
