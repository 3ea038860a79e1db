package egress

import (
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
)

// someFrames is the queue length from which on shares are tracked even if no sender may be notified yet.
const someFrames = 4 * burst.MaxSize

// Class is one worker's part of a traffic class of a port: the frames that wait, each tagged with its flow. Depth is exact; the class's is
// the sum of it and the other workers' published ones.
type Class struct {
	Ring
	Shares       Shares
	Depth        uint64 // bytes waiting here
	Others       uint64 // bytes waiting at the other workers, at the start of this burst
	OthersFrames int    // frames waiting there
	Entered      uint64 // total frames that have entered here
	Marked       uint64 // total packets marked CE here
	Observed     uint64 // total packets that would have been marked here, in observe mode

	watermark uint64 // the most bytes that waited
	peak      uint64 // as watermark, since the last Publish
	published *published
	others    []*published // of the other workers
}

// Waiting is the bytes that wait at all workers.
func (c *Class) Waiting() uint64 { return c.Depth + c.Others }

// Frames is the number of frames that wait at all workers.
func (c *Class) Frames() int { return c.n + c.OthersFrames }

// FitsBytes reports whether frames of this many bytes together are within the capacity.
func (c *Class) FitsBytes(q *Queue, bytes uint64) bool { return c.Waiting()+bytes <= q.Capacity }

// Fits reports whether there is space for some frames of this many bytes together.
func (c *Class) Fits(q *Queue, frames int, bytes uint64) bool {
	return c.FitsBytes(q, bytes) && c.Frames()+frames <= q.Frames
}

// Enter appends frames of flows, with their total bytes. They must fit.
func (c *Class) Enter(frames []burst.Frame, flows []flowtable.Ref, bytes uint64) {
	if c.n+len(frames) > someFrames {
		c.Track()
	}
	c.pushAll(frames, flows)
	if s := &c.Shares; s.Tracked {
		for i, f := range flows {
			s.add(f.Index, s.accounts.Get(f.Index), frames[i].Len)
		}
	}
	c.Depth += bytes
	c.Entered += uint64(len(frames))
}

// Leave removes the first frame.
func (c *Class) Leave() burst.Frame {
	f, tag := c.Pop()
	c.Depth -= uint64(f.Len)
	if s := &c.Shares; s.Tracked {
		s.remove(tag, f.Len)
	}
	return f
}

// leaveAll removes the first n frames, and returns their bytes.
func (c *Class) leaveAll(n int) (bytes uint64) {
	if c.untrack(c.n - n) {
		bytes = c.bytes(n)
		c.Drop(n)
		c.Depth -= bytes
		return bytes
	}
	s := &c.Shares
	if s.Ranked && c.n-n <= s.rankedAt/2 { // so ranking can't begin again before as many frames have entered and left as it took steps
		s.unrank()
	}
	for n > 0 {
		frames, tags := c.Front(n)
		for i, t := range tags {
			bytes += uint64(frames[i].Len)
			s.remove(t, frames[i].Len)
		}
		n -= len(tags)
		c.Drop(len(tags))
	}
	c.Depth -= bytes
	return bytes
}

// bytes is the total length of the first n frames.
func (c *Class) bytes(n int) uint64 {
	if n == c.n {
		return c.Depth
	}
	return c.Ring.bytes(n)
}

// Track begins to track the flows' shares. A queue of a few frames, the usual case, is not worth the work; for one that grows, tracking
// begins while it has few frames.
func (c *Class) Track() {
	s := &c.Shares
	if s.Tracked {
		return
	}
	s.Tracked, s.Other, s.Ended, s.squares = true, 0, 0, 0
	frames, tags := c.Front(c.n)
	s.countAll(frames, tags)
	rest := c.n - len(frames)
	s.countAll(c.frames[:rest], c.tags[:rest])
}

// untrack ends tracking before frames leave, if hardly any will be left then. It reports whether shares are not tracked.
func (c *Class) untrack(left int) bool {
	s := &c.Shares
	switch {
	case !s.Tracked:
		return true
	case left > someFrames/8:
		return false
	}
	_, tags := c.Front(c.n)
	s.forget(tags)
	s.forget(c.tags[:c.n-len(tags)])
	s.n, s.Ranked, s.Tracked = 0, false, false
	return true
}

// rank ranks the flows by their bytes. It takes a step for each frame that waits, and then some for each that enters or leaves, a third of a
// worker's time for a frame. So it begins when the largest share is needed, and ends when the queue is short again.
func (c *Class) rank() {
	s := &c.Shares
	if s.Ranked {
		return
	}
	s.Ranked, s.rankedAt = true, c.n
	_, tags := c.Front(c.n)
	s.list(tags)
	s.list(c.tags[:c.n-len(tags)])
	s.order()
}

// Top returns the bytes of the flows with the largest shares, the largest first; 0 if there are no more. Without tracked shares it returns
// all waiting bytes, as if one flow had them: no flow has more.
func (c *Class) Top(to []uint64) {
	if !c.Shares.Tracked {
		clear(to)
		to[0] = c.Depth
		return
	}
	c.rank()
	c.Shares.top(to)
}

// Sums returns what the fair share of the class depends on. As Top, it takes the bytes of a class without tracked shares as those of one flow.
func (c *Class) Sums() Sums {
	s := &c.Shares
	if !s.Tracked {
		return Sums{c.Depth, c.Depth * c.Depth}
	}
	return Sums{c.Depth - s.Other - s.Ended, s.squares}
}

// Sums has the bytes of the flows of a class, and the sum of the squares of each flow's bytes.
type Sums struct{ Bytes, Squares uint64 }

// FairShare is the least that a flow has to have in a class for its sender to be notified: the bytes of all flows divided by the effective
// number of flows, (sum x)^2 / (sum x^2), which is their number times Jain's fairness index. The mean would fall
// with each tiny flow that someone adds, and this does not. Of that, a quarter is left out: equal flows differ by a few packets, and if only half of
// them were notified, the queue would overflow.
func (s Sums) FairShare() uint64 {
	if s.Bytes == 0 {
		return 0
	}
	share := (s.Squares + s.Bytes - 1) / s.Bytes
	return share - share/4
}

// TopOfAll is Top of all workers together.
func (c *Class) TopOfAll(top []uint64) {
	c.Top(top)
	for _, o := range c.others {
		for k := range o.largest {
			bytes := o.largest[k].Load()
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

// SumsOfAll is Sums of all workers together.
func (c *Class) SumsOfAll() Sums {
	all := c.Sums()
	for _, o := range c.others {
		all.Bytes += o.flowBytes.Load()
		all.Squares += o.squares.Load()
	}
	return all
}
