package egress

import (
	"math/bits"
	"sync/atomic"

	"github.com/cnpgate/cnpgate/internal/burst"
)

// LineOverhead is the overhead of a frame on the line, in bytes: 7 preamble, 1 start delimiter, 4 FCS, 12 gap
// (IEEE 802.3 3.1.1, 4.4.2).
const LineOverhead = 24

// maxLateness is the time that a backlogged port may catch up after a late worker (ns): long enough to hold the rate on a machine that
// sometimes deschedules the worker, and at most the bytes of 5 ms.
const maxLateness = 5_000_000

// Line is the shaper of one port: the time at which its line is free again, one atomic word that the port's workers share. A frame may
// start once that time has come, and advances it by the frame's time at the port's rate. An idle line saves no credit.
type Line struct {
	free     atomic.Int64  // ns
	perOctet atomic.Uint64 // ns in 32.32 fixed point
	_        [48]byte      // its own cache line
}

// NewLine makes a shaper for a rate in bit/s, which counts frame + 24 bytes.
func NewLine(rate uint64) *Line {
	l := &Line{}
	l.SetRate(rate)
	return l
}

// SetRate changes the rate from the next frame on. Any goroutine may call it.
func (l *Line) SetRate(rate uint64) {
	perOctet, _ := bits.Div64(8e9>>32, (8e9<<32)&(1<<64-1), rate)
	l.perOctet.Store(perOctet)
}

// cost is the time that bytes take, in ns and 2^-32 ns.
func (l *Line) cost(octets uint64) (ns int64, fraction uint64) {
	hi, lo := bits.Mul64(octets, l.perOctet.Load())
	return int64(hi<<32 | lo>>32), lo & (1<<32 - 1)
}

// Busy reports whether no frame may start at the time now.
func (l *Line) Busy(now int64) bool { return l.free.Load() > now }

// take reserves the line for as many of the frames, in order, as may start by now, and returns their number. The frames have so many bytes
// together. They may use past time from floor on, ns. fraction carries the caller's part of a nanosecond from call to call.
func (l *Line) take(now, floor int64, frames []burst.Frame, bytes uint64, fraction *uint64) int {
	octets := bytes + uint64(len(frames))*LineOverhead
	for range 8 { // another worker won the race; after a few times the frames wait for the next burst
		old := l.free.Load()
		free, rest, n := l.book(now, max(old, floor), *fraction, frames, octets)
		if n == 0 {
			return 0
		}
		if l.free.CompareAndSwap(old, free) {
			*fraction = rest
			return n
		}
	}
	return 0
}

// book returns how many of the frames may start by now on a line that is free at the time free, and when it is free again. octets, if not
// 0, is their total on the line: usually the last frame may start as well, and then one calculation is enough.
func (l *Line) book(now, free int64, fraction uint64, frames []burst.Frame, octets uint64) (again int64, rest uint64, n int) {
	if octets != 0 && free <= now {
		last := uint64(frames[len(frames)-1].Len) + LineOverhead
		if again, rest = l.after(free, fraction, octets-last); again <= now {
			again, rest = l.after(again, rest, last)
			return again, rest, len(frames)
		}
	}
	for n < len(frames) && free <= now {
		free, fraction = l.after(free, fraction, uint64(frames[n].Len)+LineOverhead)
		n++
	}
	return free, fraction, n
}

// after is the time, in ns and 2^-32 ns, at which bytes that start at the given time have left.
func (l *Line) after(free int64, fraction, octets uint64) (again int64, rest uint64) {
	ns, part := l.cost(octets)
	part += fraction
	return free + ns + int64(part>>32), part & (1<<32 - 1)
}

// giveBack returns the exact time that take reserved for frames that the device refused: at 400 Gbps the part of a nanosecond is most of a
// short frame's time.
func (l *Line) giveBack(frames []burst.Frame, fraction *uint64) {
	total, rest := int64(0), *fraction
	for i := range frames {
		ns, part := l.cost(uint64(frames[i].Len) + LineOverhead)
		if part > rest {
			rest += 1 << 32
			total++
		}
		rest -= part
		total += ns
	}
	*fraction = rest
	l.free.Add(-total)
}
