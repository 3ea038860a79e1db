package control

import (
	"context"
	"time"

	"github.com/cnpgate/cnpgate/control/report"
)

const (
	sampleStep  = 50 * time.Millisecond
	statusEvery = 30 * time.Second
	// maxSamples bounds the timeline of a report; a longer one is kept at half as many samples a second.
	maxSamples = 8192
)

// watch looks at a gateway from outside, a few times a second.
type watch struct {
	g       *gateway
	links   *links
	samples []report.Depth
	every   int // of how many looks one is kept
	looks   int
}

func (g *gateway) newWatch() *watch {
	return &watch{g: g, links: newLinks(g.config, g.devices, g.options.Log), every: 1}
}

// run watches until the context ends, and returns the timeline.
func (w *watch) run(ctx context.Context, ready <-chan struct{}) []report.Depth {
	for range w.g.config.DPDK.Workers {
		select {
		case <-ready:
		case <-ctx.Done():
			return nil
		}
	}
	w.g.options.Log.Info().Int("workers", len(w.g.config.DPDK.Workers)).Int("ports", len(w.g.config.Ports)).Msg("forwarding")
	tick, status := time.NewTicker(sampleStep), time.NewTicker(statusEvery)
	defer tick.Stop()
	defer status.Stop()
	for {
		select {
		case <-ctx.Done():
			w.g.options.Log.Info().Msg("stopping: the queues are drained first")
			w.links.release()
			return w.samples
		case now := <-tick.C:
			w.links.look(now)
			if w.g.options.Timeline {
				w.sample(now)
			}
		case <-status.C:
			w.g.logStatus("status")
		}
	}
}

// sample keeps the depth of each port's queue.
func (w *watch) sample(now time.Time) {
	w.looks++
	if w.looks%w.every != 0 {
		return
	}
	for i := range w.g.config.Ports {
		s := w.g.plane.Port(i)
		depth := uint64(0)
		for _, d := range s.Depth {
			depth += d
		}
		w.samples = append(w.samples, report.Depth{MS: now.Sub(w.g.begin).Milliseconds(), Port: w.g.config.Ports[i].Name, DepthBytes: depth})
	}
	if len(w.samples) >= maxSamples {
		w.thin()
	}
}

// thin drops every other look, the first one and so on: those that stay are as far apart as the ones to come.
func (w *watch) thin() {
	ports, kept := len(w.g.config.Ports), 0
	for look := 1; look*ports < len(w.samples); look += 2 {
		kept += copy(w.samples[kept:], w.samples[look*ports:(look+1)*ports])
	}
	w.samples = w.samples[:kept]
	w.every *= 2
}
