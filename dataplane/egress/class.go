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

// Space is the bytes for which there is space, if the frames that come are as large as those that wait.
func (c *Class) Space(q *Queue) uint64 {
	waiting, n := c.Waiting(), c.Frames()
	space := q.Capacity - min(waiting, q.Capacity)
	if n == 0 {
		return space
	}
	return min(space, uint64(max(q.Frames-n, 0))*waiting/uint64(n))
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
