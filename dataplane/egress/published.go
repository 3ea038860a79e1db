package egress

import (
	"sync/atomic"

	"github.com/cnpgate/cnpgate/congestion"
)

// published is what a worker publishes of its part of a class, for the other workers and for any goroutine.
type published struct {
	depth     atomic.Uint64 // bytes waiting
	frames    atomic.Int64  // frames waiting
	watermark atomic.Uint64 // the most bytes that waited, at all workers together
	peak      atomic.Uint64 // as watermark, since TakePeak was called
	marked    atomic.Uint64 // packets marked CE
	// bytes of the flows with the largest shares, the largest first
	largest            [congestion.FlowsPerRound]atomic.Uint64
	flowBytes, squares atomic.Uint64 // Sums
	_                  [64]byte      // no line shared with the next class
}

// ClassStats are what a worker has published of its part of a class.
type ClassStats struct {
	Depth     uint64 // bytes waiting
	Frames    int64  // frames waiting
	Watermark uint64 // the most bytes that waited at once
	Marked    uint64 // packets marked CE
}

// Published is what the worker has published; any goroutine may call it.
func (c *Class) Published() ClassStats {
	p := c.published
	return ClassStats{p.depth.Load(), p.frames.Load(), p.watermark.Load(), p.marked.Load()}
}

// TakePeak is the most bytes that waited in the class at once since the last call, as frames came in; 0 if none came. One goroutine at a
// time may call it.
func (c *Class) TakePeak() uint64 { return c.published.peak.Swap(0) }

// NoteDepth updates the maximum depth with the depth at a frame's arrival, including the frame.
func (c *Class) NoteDepth(depth uint64) {
	if depth <= c.peak {
		return
	}
	c.peak = depth
	c.watermark = max(c.watermark, depth)
}

// Publish publishes what has changed since the last call. A store to shared memory costs as much as twenty comparisons.
func (p *Port) Publish() {
	for i := range p.Classes {
		c := &p.Classes[i]
		to := c.published
		store(&to.depth, c.Depth)
		if n := int64(c.n); to.frames.Load() != n {
			to.frames.Store(n)
		}
		if c.peak > 0 { // frames have come
			if c.peak > to.peak.Load() {
				to.peak.Store(c.peak)
			}
			c.peak = 0
			store(&to.watermark, c.watermark)
			store(&to.marked, c.Marked)
		}
	}
}

// PublishShares publishes the largest shares of a class and the sums of all.
func (c *Class) PublishShares() {
	var largest [congestion.FlowsPerRound]uint64
	c.Top(largest[:])
	for i, bytes := range largest {
		store(&c.published.largest[i], bytes)
		if bytes == 0 {
			break // what is behind doesn't count
		}
	}
	sums := c.Sums()
	store(&c.published.flowBytes, sums.Bytes)
	store(&c.published.squares, sums.Squares)
}

func store(to *atomic.Uint64, value uint64) {
	if to.Load() != value {
		to.Store(value)
	}
}

// Share makes the port's queue one with that of another worker: each reads what the other publishes.
func (p *Port) Share(other *Port) {
	for i := range p.Classes {
		p.Classes[i].others = append(p.Classes[i].others, other.Classes[i].published)
	}
}

// ReadOthers reads the depths that the other workers have published, for this burst.
func (p *Port) ReadOthers() {
	for i := range p.Classes {
		c := &p.Classes[i]
		c.Others, c.OthersFrames = 0, 0
		for _, o := range c.others {
			c.Others += o.depth.Load()
			c.OthersFrames += int(o.frames.Load())
		}
	}
}
