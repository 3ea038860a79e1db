package capturefile

import (
	"container/heap"
	"errors"
	"io"
	"slices"
)

const (
	windowFrames = 1 << 16 // frames that wait to be sorted, at most
	windowBytes  = 64 << 20
	windowTime   = int64(10e9) // ns: in one file, a frame that is farther behind isn't late, the clock was set back
)

// window sorts frames by time as far as its bounds allow: several queues or interfaces, or files one after the other, are often recorded out of order.
type window struct {
	frames byTime
	bytes  int
	given  []byte   // octets of the frame that Next has returned
	free   [][]byte // octets that can be used again
	number int      // frames read so far
	newest int64    // time of the newest of them
	latest int64    // time of the frame that Next has returned
	ended  error
}

// waiting is a copy of a frame; number is its place in the file.
type waiting struct {
	Frame
	number int
}

// byTime is a heap.
type byTime []waiting

func (h byTime) Len() int { return len(h) }
func (h byTime) Less(i, j int) bool {
	return h[i].Time < h[j].Time || h[i].Time == h[j].Time && h[i].number < h[j].number
}
func (h byTime) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *byTime) Push(x any)   { *h = append(*h, x.(waiting)) }
func (h *byTime) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// Shift adds so many ns, which may not be less than 0, to the time of each frame. It must be called together with Sort.
func (c *Reader) Shift(by func(*Frame) int64) { c.shifts = by }

// Late is how many of the frames read so far were too far behind to be sorted.
func (c *Reader) Late() int { return c.late }

// sorted returns the earliest frame that waits, once enough do.
func (c *Reader) sorted() (Frame, error) {
	w := c.window
	for w.ended == nil && len(w.frames) < windowFrames && w.bytes < windowBytes {
		f, err := c.next()
		if err != nil {
			if w.ended = err; !errors.Is(err, io.EOF) && !Ends(err) {
				return Frame{}, err
			}
			break
		}
		if w.newest-f.Time > windowTime && c.appended == 0 && c.shifts == nil && c.shift <= windowTime {
			c.late++
			f.Time = w.newest
		}
		w.newest = max(w.newest, f.Time)
		w.number++
		w.add(f)
	}
	if len(w.frames) == 0 {
		return Frame{}, w.ended
	}
	return w.earliest(c), nil
}

// add copies a frame.
func (w *window) add(f Frame) {
	var octets []byte
	if n := len(w.free); n > 0 {
		octets, w.free = w.free[n-1], w.free[:n-1]
	}
	f.Octets = append(octets[:0], f.Octets...)
	f.Comments = slices.Clone(f.Comments)
	w.bytes += len(f.Octets)
	heap.Push(&w.frames, waiting{f, w.number})
}

// earliest takes out the earliest frame. Its octets are valid until the next one is taken.
func (w *window) earliest(c *Reader) Frame {
	f := heap.Pop(&w.frames).(waiting).Frame
	w.bytes -= len(f.Octets)
	w.free = append(w.free, w.given)
	w.given = f.Octets
	if f.Time < w.latest {
		c.late++
		f.Time = w.latest
	}
	w.latest = f.Time
	return f
}
