package dataplane

import (
	"math/bits"
	"sync/atomic"

	"github.com/cnpgate/cnpgate/dataplane/egress"
	"github.com/cnpgate/cnpgate/telemetry"
)

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
