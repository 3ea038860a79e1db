package capturefile

import (
	"fmt"
	"slices"
	"time"
)

// clockStep is how far a time must be behind the one before it, at the same place, that its clock may have been set back, ns.
const clockStep = int64(1e6)

// mostSteps is how often a clock is set back in a capture. What goes back more often is out of order, unless it goes forward as far each time: then there are two
// clocks, more than a second apart, as no queue lags for so long. Linux gives received frames the time of the NIC if it is asked for that, and its own to those
// that it sends, and both may be 37 s apart (TAI and UTC).
const (
	mostSteps = 3
	leastLead = int64(1e9) // ns
)

// clock is how the times of one place follow each other.
type clock struct {
	begun                   bool
	first, latest, earliest int64
	hole                    [2]int64 // the longest time without a frame
	backs, again            int      // times when it went back, and forward as far
	most                    int64    // ns that it went back, at most
	filled                  int      // times when it went back to where no frame had been
}

// note notes a time.
func (k *clock) note(at int64) {
	if !k.begun {
		*k = clock{begun: true, first: at, latest: at, earliest: at}
	}
	k.earliest = min(k.earliest, at)
	switch step := at - k.latest; {
	case step < -clockStep:
		k.backs++
		k.most = max(k.most, -step)
		if at < k.first && k.first-at <= windowTime || k.hole[0] <= at && at < k.hole[1] && k.hole[1]-k.hole[0] >= k.most/8 {
			k.filled++
		}
	case k.backs > 0 && step >= k.most/8*7:
		k.again++
	case step > k.hole[1]-k.hole[0]:
		k.hole = [2]int64{k.latest, at}
	}
	k.latest = at
}

// two reports whether there are two clocks.
func (k *clock) two() bool {
	return k.backs > mostSteps && (k.again+1)*8 >= k.backs*7 && k.most >= leastLead
}

// stepped reports whether the clock may have been set back.
func (k *clock) stepped() bool { return k.backs > 0 && k.backs <= mostSteps && k.filled == 0 }

// correction corrects the times of one place, so that they follow the order of the frames.
type correction struct {
	apart  int64 // ns between two clocks; 0: there is one
	ahead  bool  // the present time is by the one that is ahead
	begun  bool
	add    int64 // ns, to the present time
	latest int64 // after correction
	most   int64 // ns that a time was corrected by
}

// of is the corrected time.
func (k *correction) of(at int64) int64 {
	if !k.begun {
		k.begun, k.latest = true, at
	}
	switch step := at + k.add - k.latest; {
	case step < -clockStep && k.apart > 0:
		k.add, k.ahead = k.add+k.apart, false
	case step < -clockStep:
		k.add -= step
	case k.apart > 0 && !k.ahead && step >= k.apart:
		k.add, k.ahead = k.add-k.apart, true
	}
	k.most = max(k.most, k.add, -k.add)
	k.latest = max(k.latest, at+k.add)
	return at + k.add
}

// Order is how the times of a capture follow each other.
type Order struct {
	Disordered int  // frames with earlier timestamps than one before them
	Steps      bool // clocks that may have been set back were
	clocks     []clock
}

// Order is that of the frames read so far. Clocks weren't set back if the file ends where it begins: files of a ring buffer were joined in another order than that
// of time.
func (c *Reader) Order() Order {
	o := Order{Disordered: c.backwards, clocks: c.clocks}
	if joined := c.ended <= 0 && c.ended > -windowTime; !joined {
		for i := range o.clocks {
			o.Steps = o.Steps || o.clocks[i].stepped()
		}
	}
	return o
}

// Far reports whether a clock may have been set back farther than frames are sorted.
func (o *Order) Far() bool {
	return slices.ContainsFunc(o.clocks, func(k clock) bool { return k.stepped() && k.most > windowTime })
}

// correction is that of a place; nil: it needs none.
func (o *Order) correction(place int) *correction {
	switch k := &o.clocks[place]; {
	case k.two():
		return &correction{apart: k.most}
	case k.stepped() && o.Steps:
		return &correction{}
	}
	return nil
}

// Sort makes Next return frames in the order of their timestamps, as far as 65,536 frames, 64 MB and within a file 10 seconds allow, after clocks that were set back
// are corrected. It must be called before the first Next, with the order that a reader has found in the whole capture: time counts from the earliest frame.
func (c *Reader) Sort(o Order) {
	c.window, c.corrections = &window{}, make([]*correction, len(o.clocks))
	for i := range o.clocks {
		earlier := -o.clocks[i].earliest
		if c.corrections[i] = o.correction(i); c.corrections[i] != nil {
			earlier = min(earlier, clockStep)
		}
		c.shift = max(c.shift, earlier)
	}
}

// Earlier is how much earlier than the first frame of the file the earliest one is, ns, in a sorted capture.
func (c *Reader) Earlier() int64 { return c.shift }

// clockSaid says why times were corrected; "": they weren't.
func (c *Reader) clockSaid() string {
	for _, k := range c.corrections {
		switch {
		case k == nil || k.most == 0:
		case k.apart > 0:
			return fmt.Sprintf("they have the times of two clocks, %v apart, as of a NIC and its host (tcpdump -j adapter_unsynced)", time.Duration(k.apart).Round(time.Millisecond))
		default:
			return fmt.Sprintf("the clock was set back, by %v in all", time.Duration(k.most).Round(time.Millisecond))
		}
	}
	return ""
}
