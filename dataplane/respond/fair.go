package respond

import (
	"math"
	"sync/atomic"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane/account"
)

// fairClass is the fair rate of a class of an egress queue. All workers share it, without a lock: the worker that advances `at` computes
// the next one, from what all have published.
type fairClass struct {
	rate     atomic.Uint64         // F, the bits of a float64
	at       atomic.Int64          // time of the last update, ns; 0 before the first
	counted  atomic.Uint64         // the workers' obeyed bytes up to then
	loop     atomic.Int64          // delay of the control loop, ns: the median of `delays`
	delays   [3]atomic.Int64       // that of the last three senders of which one was measured
	learned  atomic.Uint32         // number of these senders
	depth    atomic.Uint64         // of the queue at the last update, the bits of a float64
	growing  atomic.Uint64         // Growth.Rate of the queue up to then, the bits of a float64
	promised atomic.Uint64         // Growth.Promised, the bits of a float64
	until    atomic.Int64          // all workers measure rates until then, ns: F needs the bytes of all
	share    atomic.Pointer[Share] // what other gateways do at the bottleneck
	flows    atomic.Uint64         // obeyed bytes divided by F, ns: its growth is the number of senders that obey
}

// measureUntil makes all workers measure rates until a time, ns.
func (f *fairClass) measureUntil(at int64) {
	for old := f.until.Load(); at-old > lawEpoch; old = f.until.Load() {
		if f.until.CompareAndSwap(old, at) {
			return
		}
	}
}

// FairRate is F of a class of a port's queue, bytes per ns; 0: none was computed yet. Any goroutine may call it.
func (s *Shared) FairRate(port, class int) float64 {
	return s.fair[port*account.MaxClasses+class].fair()
}

func (f *fairClass) fair() float64 { return math.Float64frombits(f.rate.Load()) }

// growth is how fast the queue grows.
func (f *fairClass) growth() congestion.Growth {
	return congestion.Growth{Rate: math.Float64frombits(f.growing.Load()), Promised: math.Float64frombits(f.promised.Load())}
}

// promise adds the rate by which the sender of a CNP will be slower.
func (f *fairClass) promise(rate float64) {
	for old := f.promised.Load(); !f.promised.CompareAndSwap(old, math.Float64bits(math.Float64frombits(old)+rate)); old = f.promised.Load() {
	}
}

// grown takes the queue's depth a time (ns) after the last one.
func (f *fairClass) grown(elapsed int64, depth float64) {
	deeper := depth - math.Float64frombits(f.depth.Swap(math.Float64bits(depth)))
	for {
		old := f.promised.Load() // other workers add to it
		next := congestion.Growth{Promised: math.Float64frombits(old)}.Next(elapsed, deeper, f.loop.Load())
		if f.promised.CompareAndSwap(old, math.Float64bits(next.Promised)) {
			f.growing.Store(math.Float64bits(next.Rate))
			return
		}
	}
}

// learnDelay takes the first delay of the control loop that was measured of a sender, ns. The loop's delay is the median of three, of two the shorter one, so that once
// there are three senders, what one of them says of its own changes little for the others.
func (f *fairClass) learnDelay(delay int64) {
	n := f.learned.Add(1) - 1
	f.delays[n%uint32(len(f.delays))].Store(delay)
	a, b, c := f.delays[0].Load(), f.delays[1].Load(), f.delays[2].Load()
	switch n {
	case 0:
		b, c = a, a
	case 1:
		c = 0
	}
	f.loop.Store(max(min(a, b), min(max(a, b), c)))
}

// lawPart is a worker's part of a class, which other workers read.
type lawPart struct {
	obeyed  atomic.Uint64 // bytes that would have come if every sender had obeyed F
	largest atomic.Uint64 // rate of the fastest sender, the bits of a float64
	senders atomic.Uint64 // the number of senders in the last epoch, the bits of a float64
	paused  atomic.Int64  // when a sender was paused last, ns; 0: never
	resumes atomic.Bool   // senders were asked for a rate
	_       [24]byte      // a cache line
}

// Shared is what the workers' control laws share.
type Shared struct {
	fair         []fairClass    // by port and class
	all          [][]lawPart    // by worker
	rated        [][]senderRate // by worker and place in sharing; none if there is one worker
	elsewhere    []elsewhere    // by worker
	notified     atomic.Bool    // another gateway has ever notified a sender: elsewhere has something
	unresponsive unresponsiveSenders
}

// NewShared is for workers that all have the same ports.
func NewShared(ports, workers int) *Shared {
	s := &Shared{fair: make([]fairClass, ports*account.MaxClasses), all: make([][]lawPart, workers), elsewhere: make([]elsewhere, workers)}
	for i := range s.all {
		s.all[i] = make([]lawPart, ports*account.MaxClasses)
		if workers > 1 {
			s.rated = append(s.rated, make([]senderRate, sharingPlaces))
		}
	}
	return s
}

// updateFair computes the next F of a class, if it is due and no other worker does.
func (l *Law) updateFair(t *turn, depth float64) {
	s, p, class, now, at := t.own, &t.policy.Law, t.shared, l.Now, t.shared.at.Load()
	if elapsed := now - s.epoch; elapsed >= lawEpoch || elapsed < 0 {
		t.part.senders.Store(math.Float64bits(s.windows / float64(max(elapsed, lawEpoch))))
		s.epoch, s.largest, s.windows = now, [2]float64{0, s.largest[0]}, 0
	}
	t.part.largest.Store(math.Float64bits(max(s.largest[0], s.largest[1])))
	in := congestion.Inflow{Elapsed: now - at}
	sum, paused := uint64(0), int64(0)
	for worker := range l.all {
		part := &l.all[worker][t.Out*account.MaxClasses+t.Class]
		sum += part.obeyed.Load()
		in.Largest = max(in.Largest, math.Float64frombits(part.largest.Load()))
		in.Senders += math.Float64frombits(part.senders.Load())
		in.Resumes = in.Resumes || part.resumes.Load()
		paused = max(paused, part.paused.Load())
	}
	bytes := sum - class.counted.Load()
	switch idle := at == 0 || in.Elapsed > lawIdle; {
	case !idle && !p.Due(in.Elapsed, bytes, paused != 0 && now-paused < lawIdle):
		return
	case !class.at.CompareAndSwap(at, now):
		return
	case idle:
		class.rate.Store(math.Float64bits(p.Line))
	default:
		in.Obeyed = float64(bytes)
		class.flows.Add(uint64(in.Obeyed / class.fair()))
		class.rate.Store(math.Float64bits(class.next(p, t.share, in, depth)))
	}
	class.counted.Store(sum)
	class.grown(in.Elapsed, depth)
}
