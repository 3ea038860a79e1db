package control

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/dataplane"
)

const (
	sampleStep = 50 * time.Millisecond
	// maxSamples bounds the timeline of a report; when it is exceeded, the sampling rate is halved.
	maxSamples = 8192
)

// watch observes a gateway from outside, a few times a second.
type watch struct {
	g            *gateway
	links        *links
	pauses       *pauses
	unresponsive unresponsive
	samples      []report.Depth
	policy       *dataplane.Policy // that was in force at the last look
	every        int               // one in this many looks is recorded
	looks        int
}

func newWatch(g *gateway) *watch {
	return &watch{g: g, links: newLinks(g.started, g.devices, g.options.Log), pauses: newPauses(g.started, g.options.Log), every: 1, policy: g.plane.Policy(),
		unresponsive: unresponsive{log: g.options.Log}}
}

// run watches until the context ends, and returns the timeline.
func (w *watch) run(ctx context.Context, ready <-chan struct{}) []report.Depth {
	for range w.g.started.DPDK.Workers {
		select {
		case <-ready:
		case <-ctx.Done():
			return nil
		}
	}
	w.links.look(time.Now())
	w.noteLinks()
	w.g.setForwarding(true)
	w.g.serve(w.g.started)
	if w.g.options.Started != nil {
		w.g.options.Started()
	}
	w.g.announcer.forwards(true)
	w.g.options.Log.Info().Ints("workers", w.g.started.DPDK.Workers).Strs("ports", portNames(w.g.started)).Msg("The gateway is forwarding.")
	var others sync.WaitGroup
	for _, other := range []func(context.Context){w.guard, w.g.watchRDMA, w.g.concerns.watch} {
		others.Go(func() { other(ctx) })
	}
	tick := time.NewTicker(sampleStep)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			w.g.options.Log.Info().Msg("The gateway stops once its queues are drained.")
			w.g.announcer.forwards(false)
			w.g.setForwarding(false)
			others.Wait()
			w.links.release()
			return w.samples
		case now := <-tick.C:
			setWallClock(w.g.plane)
			w.links.look(now)
			w.noteLinks()
			w.lookAtPauses()
			w.unresponsive.look(now, w.g.plane)
			w.adapt(now)
			w.g.episodes.look(now)
			if w.g.options.Timeline {
				w.sample(now)
			}
		}
	}
}

// portNames are the ports' names.
func portNames(c *config.Config) (names []string) {
	for i := range c.Ports {
		names = append(names, c.Ports[i].Name)
	}
	return names
}

// noteLinks updates the ports' health by the state of their links.
func (w *watch) noteLinks() {
	for i := range w.g.started.Ports {
		w.g.health.note(w.g.started.Ports[i].Name, linkCause, w.links.problem(i))
	}
}

func (w *watch) lookAtPauses() {
	for i := range w.g.started.Ports {
		if w.g.started.Ports[i].FlowControl != nil {
			s := w.g.plane.Port(i)
			w.pauses.look(i, &s.FlowControl)
		}
	}
}

// sample records the depth of each port's queue.
func (w *watch) sample(now time.Time) {
	w.looks++
	if w.looks%w.every != 0 {
		return
	}
	for i := range w.g.started.Ports {
		s := w.g.plane.Port(i)
		depth := uint64(0)
		for _, d := range s.Depth {
			depth += d
		}
		w.samples = append(w.samples, report.Depth{MS: now.Sub(w.g.begin).Milliseconds(), Port: w.g.started.Ports[i].Name, DepthBytes: depth})
	}
	if len(w.samples) >= maxSamples {
		w.thin()
	}
}

// thin drops every other sample, beginning with the first: the rest have the same distance as future ones.
func (w *watch) thin() {
	ports, kept := len(w.g.started.Ports), 0
	for look := 1; look*ports < len(w.samples); look += 2 {
		kept += copy(w.samples[kept:], w.samples[look*ports:(look+1)*ports])
	}
	w.samples = w.samples[:kept]
	w.every *= 2
}

// adapt updates the policy in force with the workers' measurements, and logs the changes.
func (w *watch) adapt(now time.Time) {
	w.g.adapting.Lock()
	w.g.plane.Adapt(now.Sub(w.g.begin).Nanoseconds())
	w.g.adapting.Unlock()
	policy := w.g.plane.Policy()
	if policy == w.policy {
		return
	}
	for i := range policy.Ports {
		w.logPort(w.g.started.Ports[i].Name, &w.policy.Ports[i], &policy.Ports[i])
	}
	w.policy = policy
}

// logPort logs changes of RTT_est, its source, and the thresholds.
func (w *watch) logPort(name string, before, now *dataplane.PortPolicy) {
	if now.RTT == before.RTT && now.RTTSource == before.RTTSource && now.Thresholds == before.Thresholds {
		return
	}
	w.g.options.Log.Info().Str("port", name).Str("rtt_source", now.RTTSource.String()).Int64("rtt_estimate_nanoseconds", now.RTT).
		Uint64("k_min_bytes", now.KMin).Uint64("k_max_bytes", now.KMax).Int("adjusted_percent", now.Percent).Msg("The thresholds of the port have changed.")
}

// setWallClock gives the workers the offset of Unix time from their clock, CLOCK_MONOTONIC (burst.Backend). It is called regularly, because NTP
// changes the offset.
func setWallClock(plane *dataplane.Dataplane) {
	var monotonic unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &monotonic); err == nil { // every Linux has it
		plane.SetWallClock(time.Now().UnixNano() - monotonic.Nano())
	}
}
