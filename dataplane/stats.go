package dataplane

import (
	"math/bits"
	"sync/atomic"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane/account"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/egress"
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
			if w.state.Ports[port].Role == WAN && c.Waiting() > policy.KMax {
				c.Track() // any worker may notify a sender, and the others need the largest shares
			}
			c.PublishShares()
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

// Watermark is the most bytes that have waited at once in a class of a port's queue at one worker; any goroutine may read it.
func (d *Dataplane) Watermark(port int) (most uint64) {
	for _, w := range d.workers {
		for class := range w.state.Egress[port].Classes {
			most = max(most, w.state.Egress[port].Classes[class].Published().Watermark)
		}
	}
	return most
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

// histogram is one that a worker counts in plain memory, and publishes now and then.
type histogram struct {
	exponent  uint   // of the first bound
	changed   uint32 // a bit for each bucket that publish has not seen yet
	own       telemetry.Histogram
	published [telemetry.Buckets + 1]atomic.Uint64
	sum       atomic.Uint64
}

var _ [32 - telemetry.Buckets - 1]struct{} // changed has a bit for each bucket

// add counts a value so many times.
func (h *histogram) add(value, times uint64) {
	i := telemetry.Bucket(h.exponent, value)
	h.own.Count[i] += times
	h.own.Sum += value * times
	h.changed |= 1 << i
}

// publish brings what has changed to where others read it.
func (h *histogram) publish() {
	if h.changed == 0 {
		return
	}
	h.sum.Store(h.own.Sum)
	for ; h.changed != 0; h.changed &= h.changed - 1 {
		i := bits.TrailingZeros32(h.changed)
		h.published[i].Store(h.own.Count[i])
	}
}

// addTo adds what was published; any goroutine may call it.
func (h *histogram) addTo(sum *telemetry.Histogram) {
	sum.Sum += h.sum.Load()
	for i := range h.published {
		sum.Count[i] += h.published[i].Load()
	}
}

// portHistograms are a worker's for one port.
type portHistograms struct {
	reaction  histogram
	occupancy []histogram // by class; the first worker samples for all
}

// histograms are a worker's.
type histograms struct {
	loopGap  histogram
	ports    []portHistograms
	previous int64 // time of the step before, 0: none
	due      int64 // when they are published next
}

// publishEvery is how often a worker samples its queues and publishes its histograms, ns.
const publishEvery = 1_000_000

func (h *histograms) init(ports []PortConfig) {
	h.loopGap.exponent = telemetry.LoopGap.Exponent()
	h.ports = make([]portHistograms, len(ports))
	for i := range ports {
		h.ports[i].reaction.exponent = telemetry.ReactionTime.Exponent()
		h.ports[i].occupancy = make([]histogram, ports[i].Classes)
		for class := range h.ports[i].occupancy {
			h.ports[i].occupancy[class].exponent = telemetry.QueueOccupancy.Exponent()
		}
	}
}

// step notes that a worker steps at a time.
func (h *histograms) step(now int64) {
	if h.previous != 0 && now >= h.previous {
		h.loopGap.add(uint64(now-h.previous), 1)
	}
	h.previous = now
}

// sample publishes the histograms. One worker samples the depth of every queue, for all.
func (h *histograms) sample(now int64, queues []egress.Port, depths bool) {
	h.due = now + publishEvery
	for i := range h.ports {
		q, port := &queues[i], &h.ports[i]
		if depths {
			for class := range port.occupancy {
				port.occupancy[class].add(q.Classes[class].Waiting(), 1)
				port.occupancy[class].publish()
			}
		}
		port.reaction.publish()
	}
	h.loopGap.publish()
}

// Histograms are what all workers published of their histograms.
type Histograms struct {
	Reaction  []telemetry.Histogram   // by port
	Occupancy [][]telemetry.Histogram // by port and class
	LoopGap   []telemetry.Histogram   // by worker
}

// Histograms reads the workers' histograms; any goroutine may. They are exact to a millisecond of the workers' clock.
func (d *Dataplane) Histograms() *Histograms {
	all := &Histograms{
		Reaction: make([]telemetry.Histogram, len(d.ports)), Occupancy: make([][]telemetry.Histogram, len(d.ports)),
		LoopGap: make([]telemetry.Histogram, len(d.workers)),
	}
	for i, p := range d.ports {
		all.Occupancy[i] = make([]telemetry.Histogram, p.Classes)
	}
	for n, w := range d.workers {
		w.histograms.loopGap.addTo(&all.LoopGap[n])
		for i := range w.histograms.ports {
			port := &w.histograms.ports[i]
			port.reaction.addTo(&all.Reaction[i])
			for class := range port.occupancy {
				port.occupancy[class].addTo(&all.Occupancy[i][class])
			}
		}
	}
	return all
}
