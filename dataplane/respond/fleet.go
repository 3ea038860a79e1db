package respond

import (
	"math"
	"sync/atomic"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane/account"
	"github.com/cnpgate/cnpgate/flowtable"
)

// This file is what the gateways of a fleet tell each other: which senders were notified, and what arrives at a bottleneck that they share.
// Any goroutine may call the exported methods; a worker only reads the words that they leave.

const (
	elsewhereSlots = 1024      // flows of a worker of which it is known that another gateway has notified the sender
	elsewhereFor   = 1_000_000 // ns for which such a notification counts, and the delay of the loop besides
	elsewhereTick  = 16        // shift of a time, ns
	shareDeep      = 2         // times the reference: a longer queue has its own F
	cnpElsewhere   = 1.05      // times F here: a CNP from where F is higher isn't one that is needed here
	elsewhereDeep  = 1         // times the reference: a longer queue doesn't wait for what another gateway has asked for
)

// elsewhere has, by the low bits of a flow's index, when another gateway has notified its sender, and F there.
type elsewhere [elsewhereSlots]struct {
	what atomic.Uint64 // bits 0-27 the index, 28-39 the generation, 40-63 the time in ticks
	rate atomic.Uint32 // F, a float32; written before
}

func elsewhereOf(x flowtable.Index, generation uint32) uint64 {
	return uint64(x)&(1<<28-1) | uint64(generation&(1<<12-1))<<28
}

// NotifiedElsewhere records that another gateway has notified the sender of a worker's flow, at a time in ns by the worker's clock, where F was rate.
func (s *Shared) NotifiedElsewhere(worker int, f flowtable.Ref, at int64, rate float32) {
	slot := &s.elsewhere[worker][uint32(f.Index)%elsewhereSlots]
	slot.rate.Store(math.Float32bits(rate))
	s.notified.Store(true)
	slot.what.Store(elsewhereOf(f.Index, f.Generation) | uint64(at>>elsewhereTick)<<40)
}

// notifiedElsewhere reports whether another gateway has notified the sender of a flow lately, and F there was at most `most`, so that this one
// needn't. Each notification there counts for one here. What a Long-haul CNP has asked for too little, the next one corrects. A standard CNP
// lowers the rate by a part, so that only one from a gateway with the same F, or a lower one, takes the place of this gateway's.
func (l *Law) notifiedElsewhere(t *turn, x flowtable.Index, most float64) bool {
	slot := &l.elsewhere[l.ID][uint32(x)%elsewhereSlots]
	e := slot.what.Load()
	if e == 0 || e&(1<<40-1) != elsewhereOf(x, l.Flows.State(x).Generation()) || t.Depth > elsewhereDeep*t.Law.Reference {
		return false
	}
	if float64(math.Float32frombits(slot.rate.Load())) > most {
		return false
	}
	ago := (uint64(l.Now>>elsewhereTick) - e>>40) & (1<<24 - 1) << elsewhereTick
	slot.what.CompareAndSwap(e, 0)
	return ago < uint64(elsewhereFor+t.Loop)
}

// Arrivals is what arrives at a class of an egress queue, for other gateways.
type Arrivals struct {
	Flows   uint64  // as fairClass.flows; it stands still while the queue is short
	Largest float64 // rate of the fastest flow, bytes/ns
	Loop    int64   // delay of the control loop, ns; 0: not known
}

// Arrivals returns what arrives at a class of a port's queue.
func (s *Shared) Arrivals(port, class int) (a Arrivals) {
	at := port*account.MaxClasses + class
	for i := range s.all {
		a.Largest = max(a.Largest, math.Float64frombits(s.all[i][at].largest.Load()))
	}
	a.Flows, a.Loop = s.fair[at].flows.Load(), s.fair[at].loop.Load()
	return a
}

// Share is what arrives at other gateways' queues in front of the same bottleneck: the number of senders that obey F, bytes queued, the rate of
// their lines, bytes/ns, and that of their fastest sender. All are Late ns old. A number of senders ages well; a rate would be that of an F before,
// which this F has answered already.
type Share struct {
	Flows, Depth, Line, Largest float64
	Late                        int64
}

// mostShare bounds what others' flows may ask for, times the rate of their lines.
const mostShare = 4

// SetShare replaces what others do at the bottleneck of a class of a port; nil: nothing. F is then that of the whole bottleneck.
func (s *Shared) SetShare(port, class int, share *Share) {
	s.fair[port*account.MaxClasses+class].share.Store(share)
}

// LearnLoop sets the delay of the control loop of a class that has measured none yet.
func (s *Shared) LearnLoop(port, class int, delay int64) {
	s.fair[port*account.MaxClasses+class].loop.CompareAndSwap(0, delay)
}

// measures reports whether others measure rates at the bottleneck: F needs the bytes of all.
func (s *Share) measures(p *congestion.Law) bool {
	return s != nil && p.Measures(s.Depth)
}

// next is the next F. Where others share the bottleneck it is that of all, from all that arrives; unless the queue here is so long that it
// needs its own.
func (f *fairClass) next(p *congestion.Law, s *Share, in congestion.Inflow, depth float64) float64 {
	law, loop := *p, f.loop.Load()
	if s != nil && depth < shareDeep*law.Reference {
		law.Reference *= (law.Line + s.Line) / law.Line
		law.Line += s.Line
		in.Obeyed += min(s.Flows*f.fair(), mostShare*s.Line) * float64(in.Elapsed)
		in.Largest = max(in.Largest, s.Largest)
		depth += s.Depth
		loop += s.Late
	}
	return min(law.Next(f.fair(), in, depth, loop), p.Line)
}
