package dataplane

import (
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane/account"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/link"
	"github.com/cnpgate/cnpgate/telemetry"
)

// publish lets other goroutines read what has changed in this step.
func (w *Worker) publish() {
	w.notifier.Sent.Publish()
	w.notifier.Suppressed.Publish()
	for port := range w.state.Egress {
		q, p := &w.state.Egress[port], w.state.Pacers[port]
		if p != nil && p.Counted {
			p.Counted = false
			for n := range p.Events {
				w.state.Counters.Add(port, counters.EnforcedFirst+counters.Counter(n), p.Events[n])
				p.Events[n] = 0
			}
		}
		w.state.Counters.Publish(port)
		p.Publish()
		q.Publish()
		if len(w.state.Peers) == 1 {
			continue
		}
		policy := &w.state.Policy.Ports[port]
		for class := range q.Classes {
			c := &q.Classes[class]
			if w.state.Ports[port].Role == WAN && policy.Level(c.Waiting()) == congestion.Second {
				c.Track() // any worker may notify a sender, and the others need the largest shares
			}
			c.PublishShares(policy.FlowsPerRound)
		}
	}
}

// PortStats has the published values of one port, of all workers together. Each number is exact to a burst.
type PortStats struct {
	Count     [counters.Counters]uint64
	Depth     [account.MaxClasses]uint64 // bytes waiting, by class
	Frames    [account.MaxClasses]int64  // frames waiting
	Watermark [account.MaxClasses]uint64 // the most bytes that waited at once
	Marked    [account.MaxClasses]uint64 // packets marked CE
	Fair      [account.MaxClasses]uint64 // the control law's fair rate, bit/s; 0: none was computed yet
	// RTTSamples are the round-trip times that were measured, by source.
	RTTSamples [congestion.RTTSources]uint64
	// PacedFrames and PacedBytes are held by pacing, in addition to those queued in the classes.
	PacedFrames, PacedBytes uint64

	FlowControl link.Stats
}

// Port reads a port's numbers; any goroutine may.
func (d *Dataplane) Port(port int) PortStats {
	var s PortStats
	for source := range s.RTTSamples {
		s.RTTSamples[source] = d.paths[port].samples[source].Load()
	}
	for class := range s.Fair {
		s.Fair[class] = uint64(8e9 * d.law.FairRate(port, class))
	}
	for _, w := range d.workers {
		w.state.Counters.Read(port, &s.Count)
		frames, bytes := w.state.Pacers[port].Published()
		s.PacedFrames += frames
		s.PacedBytes += bytes
		for class := range w.state.Egress[port].Classes {
			c := w.state.Egress[port].Classes[class].Published()
			s.Depth[class] += c.Depth
			s.Frames[class] += c.Frames
			s.Watermark[class] = max(s.Watermark[class], c.Watermark)
			s.Marked[class] += c.Marked
		}
	}
	s.FlowControl = d.links[port].Stats()
	return s
}

// TakePeak is the most bytes that waited in a class of a port's queue at once since the last call, as frames came in; 0 if none came. One goroutine at a
// time may call it.
func (d *Dataplane) TakePeak(port, class int) (peak uint64) {
	for _, w := range d.workers {
		peak = max(peak, w.state.Egress[port].Classes[class].TakePeak())
	}
	return peak
}

// Values returns the counts of all ports together, and the frames that wait in their queues; any goroutine may call it.
func (d *Dataplane) Values() telemetry.Values {
	v := telemetry.Values{}
	for i := range d.ports {
		s := d.Port(i)
		s.addTo(v)
	}
	return v
}

// Values returns a port's counts, and the frames that wait in its queue.
func (s *PortStats) Values() telemetry.Values {
	v := telemetry.Values{}
	s.addTo(v)
	return v
}

func (s *PortStats) addTo(v telemetry.Values) {
	for n := range s.Count {
		v.Add(counters.Catalogue[n].Metric, counters.Catalogue[n].Value, s.Count[n])
	}
	s.FlowControl.AddTo(v)
	for source, n := range s.RTTSamples {
		if source := congestion.RTTSource(source); source != congestion.RTTConfigured {
			v.Add(telemetry.RTTSamples, source.String(), n)
		}
	}
	for _, frames := range s.Frames {
		v.Add(telemetry.QueuedPackets, "", uint64(frames))
	}
	v.Add(telemetry.QueuedPackets, "", s.PacedFrames)
	v.Add(telemetry.PacedBytes, "", s.PacedBytes)
}
