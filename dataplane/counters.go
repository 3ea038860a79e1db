package dataplane

import (
	"math/bits"
	"sync/atomic"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane/account"
	"github.com/cnpgate/cnpgate/dataplane/egress"
	"github.com/cnpgate/cnpgate/dataplane/link"
	"github.com/cnpgate/cnpgate/dataplane/pacing"
)

// counters are one worker's, in plain memory that only its goroutine touches; publish copies them for other goroutines.
type counters struct {
	ports     []portCounters
	published []publishedPort
}

type portCounters struct {
	changed   [changedWords]uint64 // a bit for each counter that was not published since it changed
	count     [Counters]uint64
	watermark [account.MaxClasses]uint64
	peak      [account.MaxClasses]uint64 // as watermark, of this step
}

// publishedPort is the data of one worker and port that any goroutine may read.
type publishedPort struct {
	count     [Counters]atomic.Uint64
	depth     [account.MaxClasses]atomic.Uint64 // bytes waiting
	frames    [account.MaxClasses]atomic.Int64  // frames waiting
	watermark [account.MaxClasses]atomic.Uint64 // the most bytes that waited, at all workers together
	peak      [account.MaxClasses]atomic.Uint64 // as watermark, since TakePeak was called
	marked    [account.MaxClasses]atomic.Uint64 // packets marked CE
	// held by pacing
	pacedFrames, pacedBytes atomic.Uint64
	// bytes of the flows with the largest shares of each class, the largest first
	largest [account.MaxClasses][congestion.MaxFlowsPerRound]atomic.Uint64
	// sums of each class
	flowBytes, flowSquares [account.MaxClasses]atomic.Uint64
	_                      [64]byte // no line shared with the next port
}

func newCounters(ports int) counters {
	return counters{ports: make([]portCounters, ports), published: make([]publishedPort, ports)}
}

// changedWords is the number of words with a bit for each counter.
const changedWords = (int(Counters) + 63) / 64

func (c *counters) add(port int, n Counter, by uint64) {
	p := &c.ports[port]
	p.count[n] += by
	p.changed[n/64] |= 1 << (n % 64)
}

// watermark updates the maximum depth with the depth at a frame's arrival, including the frame.
func (c *counters) watermark(port, class int, depth uint64) {
	p := &c.ports[port]
	if depth <= p.peak[class] {
		return
	}
	p.peak[class] = depth
	if depth > p.watermark[class] {
		p.watermark[class] = depth
	}
}

// publish copies the changes of this burst to shared memory. A store there costs as much as twenty comparisons, so it skips unchanged
// values. Counters, which are many and change rarely, have change bits instead of a comparison.
func (w *Worker) publish() {
	w.notifier.sent.publish()
	w.notifier.suppressed.publish()
	for port := range w.egress {
		q, out := &w.egress[port], &w.counters.published[port]
		if p := w.pacers[port]; p != nil && p.Counted {
			p.Counted = false
			for n := range p.Events {
				w.counters.add(port, EnforcedFirst+Counter(n), p.Events[n])
				p.Events[n] = 0
			}
		}
		w.counters.ports[port].publish(out, q, w.pacers[port], w.states[port])
		if len(w.plane.workers) == 1 {
			continue
		}
		policy := &w.policy.Ports[port]
		for class := range q.Classes {
			c := &q.Classes[class]
			if w.ports[port].Role == WAN && policy.Level(c.Waiting()) == congestion.Second {
				c.Track() // any worker may notify a sender, and the others need the largest shares
			}
			out.publishShares(c, class, policy.FlowsPerRound)
		}
	}
}

// publish copies what has changed in the counters and the queue of a port.
func (c *portCounters) publish(out *publishedPort, q *egress.Port, p *pacing.Pacer, states []classState) {
	for word := range c.changed {
		changed := c.changed[word]
		if changed == 0 {
			continue
		}
		c.changed[word] = 0
		for ; changed != 0; changed &= changed - 1 {
			n := 64*word + bits.TrailingZeros64(changed)
			out.count[n].Store(c.count[n])
		}
	}
	if p != nil {
		frames, bytes := p.Held()
		store(&out.pacedFrames, uint64(frames))
		store(&out.pacedBytes, bytes)
	}
	for class := range q.Classes {
		store(&out.depth[class], q.Classes[class].Depth)
		if n := int64(q.Classes[class].Len()); out.frames[class].Load() != n {
			out.frames[class].Store(n)
		}
		if peak := c.peak[class]; peak > 0 { // frames have come
			c.peak[class] = 0
			if peak > out.peak[class].Load() {
				out.peak[class].Store(peak)
			}
			store(&out.watermark[class], c.watermark[class])
			store(&out.marked[class], states[class].marked)
		}
	}
}

// publishShares publishes the largest shares of a class, at most n, and the sums of all.
func (p *publishedPort) publishShares(c *egress.Class, class, n int) {
	var largest [congestion.MaxFlowsPerRound]uint64
	c.Top(largest[:n])
	for i, bytes := range largest {
		store(&p.largest[class][i], bytes)
		if bytes == 0 {
			break // what is behind doesn't count
		}
	}
	sums := c.Sums()
	store(&p.flowBytes[class], sums.Bytes)
	store(&p.flowSquares[class], sums.Squares)
}

func store(to *atomic.Uint64, value uint64) {
	if to.Load() != value {
		to.Store(value)
	}
}

// readOthers reads the other workers' published values of a port's queue into q, for this burst. A single worker need not call it.
func (d *Dataplane) readOthers(port, worker int, q *egress.Port) {
	for class := range q.Classes {
		bytes, frames := uint64(0), 0
		for i, w := range d.workers {
			if i != worker {
				bytes += w.counters.published[port].depth[class].Load()
				frames += int(w.counters.published[port].frames[class].Load())
			}
		}
		q.Classes[class].Others, q.Classes[class].OthersFrames = bytes, frames
	}
}

// addSums adds the other workers' published sums of a class to the worker's own.
func (d *Dataplane) addSums(port, class, worker int, to *egress.Sums) {
	for i, w := range d.workers {
		if i != worker {
			to.Bytes += w.counters.published[port].flowBytes[class].Load()
			to.Squares += w.counters.published[port].flowSquares[class].Load()
		}
	}
}

// mergeLargest merges the other workers' published largest shares of a class into the worker's own, and keeps the largest of all.
func (d *Dataplane) mergeLargest(port, class, worker int, top []uint64) {
	for i, w := range d.workers {
		if i == worker {
			continue
		}
		for k := range w.counters.published[port].largest[class] {
			bytes := w.counters.published[port].largest[class][k].Load()
			if bytes <= top[len(top)-1] {
				break
			}
			at := len(top) - 1
			for ; at > 0 && top[at-1] < bytes; at-- {
				top[at] = top[at-1]
			}
			top[at] = bytes
		}
	}
}

// PortStats has the published values of one port, of all workers together. Each number is exact to a burst.
type PortStats struct {
	Count     [Counters]uint64
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
		s.Fair[class] = uint64(8e9 * d.fair[port*account.MaxClasses+class].fair())
	}
	for _, w := range d.workers {
		p := &w.counters.published[port]
		for n := range s.Count {
			s.Count[n] += p.count[n].Load()
		}
		s.PacedFrames += p.pacedFrames.Load()
		s.PacedBytes += p.pacedBytes.Load()
		for class := range s.Depth {
			s.Depth[class] += p.depth[class].Load()
			s.Frames[class] += p.frames[class].Load()
			s.Watermark[class] = max(s.Watermark[class], p.watermark[class].Load())
			s.Marked[class] += p.marked[class].Load()
		}
	}
	s.FlowControl = d.links[port].Stats()
	return s
}

// Watermark is the most bytes that have waited at once in a class of a port's queue at one worker; any goroutine may read it.
func (d *Dataplane) Watermark(port int) (most uint64) {
	for _, w := range d.workers {
		for class := range w.counters.published[port].watermark {
			most = max(most, w.counters.published[port].watermark[class].Load())
		}
	}
	return most
}

// TakePeak is the most bytes that waited in a class of a port's queue at once since the last call, as frames came in; 0 if none came. One goroutine at a
// time may call it.
func (d *Dataplane) TakePeak(port, class int) (peak uint64) {
	for _, w := range d.workers {
		peak = max(peak, w.counters.published[port].peak[class].Swap(0))
	}
	return peak
}
