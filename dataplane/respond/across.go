package respond

import (
	"math"
	"sync/atomic"
)

// senderRate is the rate of a sender of which one worker has the packets of some flows. Other workers read it.
type senderRate struct {
	key   atomic.Uint64 // of sharer
	rate  atomic.Uint64 // mean of the last windows, bytes/ns, the bits of a float64
	over  atomic.Int64  // time over which that is the mean, ns
	until atomic.Int64  // when the rate no longer counts, unless another window ends, ns
}

const (
	rateOld   = 5_000_000 // ns for which a rate counts at most
	rateLasts = 4         // windows for which it does
)

// divide publishes the rate of a sender after a window (ns), and finds what part of the sender's rate at all workers this is: such a part of F is this worker's. Each worker's windows end at
// other times, and have more packets when the others' have fewer, so that means of several are added up. A sender whose packets come to another worker now doesn't count twice.
func (l *Law) divide(e *sharer, window int64) {
	place, own := e.ref%sharingPlaces, e.Rate()
	published, mean, over, lasts := &l.rated[l.ID][place], own, window, int64(rateOld)
	if published.key.Load() == e.key && l.Now < published.until.Load() {
		before := published.over.Load() / 2
		over += before
		mean = (own*float64(window) + math.Float64frombits(published.rate.Load())*float64(before)) / float64(over)
		lasts = min(rateLasts*window, rateOld)
	}
	published.key.Store(e.key)
	published.rate.Store(math.Float64bits(mean))
	published.over.Store(over)
	published.until.Store(l.Now + lasts)
	all := mean
	for worker := range l.rated {
		if worker == l.ID {
			continue
		}
		set := l.rated[worker][place/sharingWays*sharingWays:][:sharingWays]
		for i := range set {
			if o := &set[i]; o.key.Load() == e.key && l.Now < o.until.Load() {
				all += math.Float64frombits(o.rate.Load())
			}
		}
	}
	e.others = float32(all/own - 1)
}
