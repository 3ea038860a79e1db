package dataplane

import (
	"math/bits"
	"sync/atomic"
)

// counters are one worker's, in plain memory that only its goroutine touches; publish brings them to where others read them.
type counters struct {
	ports     []portCounters
	published []publishedPort
}

type portCounters struct {
	changed   uint64 // a bit for each counter that publish has not seen yet
	count     [Counters]uint64
	watermark [MaxClasses]uint64
}

// publishedPort is what everyone may read of one worker and port.
type publishedPort struct {
	count     [Counters]atomic.Uint64
	depth     [MaxClasses]atomic.Uint64 // bytes waiting
	frames    [MaxClasses]atomic.Int64  // frames waiting
	watermark [MaxClasses]atomic.Uint64 // the most bytes that waited, at all workers together
	largest   [MaxClasses]atomic.Uint64 // bytes of the flow with the largest share
	_         [64]byte                  // no line shared with the next port
}

func newCounters(ports int) counters {
	return counters{ports: make([]portCounters, ports), published: make([]publishedPort, ports)}
}

var _ [64 - Counters]struct{} // a bit for each

func (c *counters) add(port int, n Counter, by uint64) {
	p := &c.ports[port]
	p.count[n] += by
	p.changed |= 1 << (n & 63)
}

// watermark notes the depth that a frame found, its own bytes included.
func (c *counters) watermark(port, class int, depth uint64) {
	if depth > c.ports[port].watermark[class] {
		c.ports[port].watermark[class] = depth
	}
}

// publish brings what this burst changed to where others read it. A store to shared memory costs as much as twenty comparisons,
// so what is as it was is left alone, and counters, which are many and change seldom, are not even compared.
func (w *Worker) publish() {
	for port := range w.egress {
		mine, out, q := &w.counters.ports[port], &w.counters.published[port], &w.egress[port]
		for ; mine.changed != 0; mine.changed &= mine.changed - 1 {
			n := bits.TrailingZeros64(mine.changed)
			store(&out.count[n], mine.count[n])
		}
		for class := range q.classes {
			store(&out.depth[class], q.depth[class])
			if len(w.plane.workers) > 1 {
				w.trackForOthers(port, class)
				store(&out.largest[class], q.largestBound(class))
			}
			store(&out.watermark[class], mine.watermark[class])
			if n := int64(q.classes[class].n); out.frames[class].Load() != n {
				out.frames[class].Store(n)
			}
		}
	}
}

func store(to *atomic.Uint64, value uint64) {
	if to.Load() != value {
		to.Store(value)
	}
}

// readOthers brings what the other workers published of a port's queue into q, for this burst.
func (d *Dataplane) readOthers(port, worker int, q *egress) {
	for class := range q.classes {
		bytes, frames := uint64(0), 0
		for i, w := range d.workers {
			if i != worker {
				bytes += w.counters.published[port].depth[class].Load()
				frames += int(w.counters.published[port].frames[class].Load())
			}
		}
		q.others[class], q.othersFrames[class] = bytes, frames
	}
}

// othersLargest is the largest share that a flow has of a class of the port's queue at another worker.
func (d *Dataplane) othersLargest(port, class, worker int) uint64 {
	most := uint64(0)
	for i, w := range d.workers {
		if i != worker {
			most = max(most, w.counters.published[port].largest[class].Load())
		}
	}
	return most
}

// PortStats is what all workers together published of one port. Each number is exact to a burst.
type PortStats struct {
	Count     [Counters]uint64
	Depth     [MaxClasses]uint64 // bytes waiting, by class
	Frames    [MaxClasses]int64  // frames waiting
	Watermark [MaxClasses]uint64 // the most bytes that waited at once
}

// Port reads a port's numbers; any goroutine may.
func (d *Dataplane) Port(port int) PortStats {
	var s PortStats
	for _, w := range d.workers {
		p := &w.counters.published[port]
		for n := range s.Count {
			s.Count[n] += p.count[n].Load()
		}
		for class := range s.Depth {
			s.Depth[class] += p.depth[class].Load()
			s.Frames[class] += p.frames[class].Load()
			s.Watermark[class] = max(s.Watermark[class], p.watermark[class].Load())
		}
	}
	return s
}
