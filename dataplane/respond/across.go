package respond

import (
	"math"
	"sync/atomic"
)

// senderRate is the rate of a sender of which one worker has the packets of some flows. Other workers read it.
type senderRate struct {
	key  atomic.Uint64 // of sharer
	rate atomic.Uint64 // bytes/ns, the bits of a float64
	at   atomic.Int64  // ns
}

// rateOld is the time (ns) after which the rate that another worker has found of a sender doesn't count.
const rateOld = 5_000_000

// divide publishes the rate of a sender, and finds what part of the sender's rate at all workers this is: such a part of F is this worker's.
func (l *Law) divide(e *sharer) {
	place, own := e.ref%sharingPlaces, e.Rate()
	published := &l.rated[l.ID][place]
	published.key.Store(e.key)
	published.rate.Store(math.Float64bits(own))
	published.at.Store(l.Now)
	all := own
	for worker := range l.rated {
		if worker == l.ID {
			continue
		}
		set := l.rated[worker][place/sharingWays*sharingWays:][:sharingWays]
		for i := range set {
			if o := &set[i]; o.key.Load() == e.key && l.Now-o.at.Load() < rateOld {
				all += math.Float64frombits(o.rate.Load())
			}
		}
	}
	e.others = all/own - 1
}
