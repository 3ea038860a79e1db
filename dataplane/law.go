package dataplane

import (
	"math"
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane/account"
	"github.com/cnpgate/cnpgate/dataplane/egress"
	"github.com/cnpgate/cnpgate/dataplane/pacing"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/keyhash"
)

// fairClass is the fair rate of a class of an egress queue. All workers share it, without a lock: the worker that advances `at` computes
// the next one, from what all have published.
type fairClass struct {
	rate    atomic.Uint64         // F, the bits of a float64
	at      atomic.Int64          // time of the last update, ns; 0 before the first
	counted atomic.Uint64         // the workers' obeyed bytes up to then
	loop    atomic.Int64          // delay of the control loop, ns
	spacing atomic.Int64          // of congestion.Spacing
	until   atomic.Int64          // all workers measure rates until then, ns: F needs the bytes of all
	share   atomic.Pointer[Share] // what other gateways do at the bottleneck
	_       [8]byte               // a cache line
}

// measureUntil makes all workers measure rates until a time, ns.
func (f *fairClass) measureUntil(at int64) {
	for old := f.until.Load(); at-old > lawEpoch; old = f.until.Load() {
		if f.until.CompareAndSwap(old, at) {
			return
		}
	}
}

func (f *fairClass) fair() float64 { return math.Float64frombits(f.rate.Load()) }

// learnDelay takes a measured delay of the control loop, ns.
func (f *fairClass) learnDelay(delay int64) {
	const share = 8
	old := f.loop.Load()
	if old == 0 {
		old = delay
	}
	f.loop.Store(old + (delay-old)/share)
}

// lawPart is a worker's part of a class, which other workers read.
type lawPart struct {
	obeyed  atomic.Uint64 // bytes that would have come if every flow had obeyed F
	largest atomic.Uint64 // rate of the fastest flow, the bits of a float64
	paused  atomic.Int64  // when a sender was paused last, ns; 0: never
	resumes atomic.Bool   // senders were asked for a rate
	_       [32]byte      // a cache line
}

// lawState is the rest of a worker's part of a class.
type lawState struct {
	obeyed   float64
	largest  [2]float64 // in this epoch, and in the one before
	epoch    int64      // when this one began, ns
	polled   int64      // time of the last poll, ns
	interval int64      // between the last two polls, ns
	resumes  bool
	spacing  congestion.Spacing
}

const (
	lawEpoch = 500_000    // ns
	lawIdle  = 10_000_000 // ns after which rates are no longer measured at a short queue, and F begins anew
)

// limited is how long rates are measured after a sender was asked for one, since it may be due a Resume, ns.
const limited = 1_000_000_000

// lawFlow is the law's state of a flow. It has the generation of its flow, like account.
type lawFlow struct {
	congestion.LawFlow
	generation uint32
}

// law is a worker's control law.
type law struct {
	*common
	notifier  *notifier
	watched   *senders
	listener  *listener
	rates     []lawFlow // by flowtable.Index
	senders   lawSenders
	parts     []lawPart // by port and class
	random    uint64    // not 0
	elsewhere elsewhere
}

// turn is what the law decides by for the frames of one batch in one class.
type turn struct {
	congestion.LawState
	*response
	shared *fairClass
	part   *lawPart
}

// init makes the worker's state of the control law.
func (l *law) init(c *Config) error {
	memory, err := c.Allocate((c.Flows + 1) * int(unsafe.Sizeof(lawFlow{})))
	if err != nil {
		return err
	}
	l.rates = unsafe.Slice((*lawFlow)(unsafe.Pointer(unsafe.SliceData(memory))), l.flows.Capacity()+1)
	if memory, err = c.Allocate(lawSendersSize()); err != nil {
		return err
	}
	l.senders = newLawSenders(memory, c.Seed)
	l.parts = make([]lawPart, len(c.Ports)*account.MaxClasses)
	l.random = keyhash.Fold(c.Seed^0x9e3779b97f4a7c15, uint64(l.id)+0xbf58476d1ce4e5b9) | 1
	return nil
}

// respond responds to the state of a class by the control law, as responder.respond does by thresholds. It returns the packets that are
// marked: those of senders which can't be notified, and of those that don't react.
func (l *law) respond(r *response, b *batch, these mask, depth float64) (marked mask) {
	c, s, p := l.common, &r.state.law, &r.policy.Law
	now := c.now
	if now != s.polled {
		s.interval, s.polled = now-s.polled, now
	}
	at := r.out*account.MaxClasses + r.class
	t := turn{response: r, shared: &l.plane.fair[at], part: &l.parts[at]}
	if p.Measures(depth) || t.shared.othersMeasure(p) {
		t.shared.measureUntil(now + lawIdle)
	}
	if now > t.shared.until.Load() && !c.policy.Drain {
		return 0
	}
	l.updateFair(&t, depth)
	t.LawState = congestion.LawState{
		Law: p, Now: now, Fair: t.shared.fair(), Depth: depth, Loop: t.shared.loop.Load(), Spacing: t.shared.spacing.Load(), Polled: s.interval,
	}
	l.notifier.about(r)
	notifies, resumes := p.Notifies(depth), p.Resumes(depth) && s.resumes
	if c.policy.Drain {
		l.releaseAll(&t, b, these)
	}
	for left := these; left != 0; left &= left - 1 {
		i := bits.TrailingZeros64(uint64(left)) % burst.MaxSize
		size := b.frames[i].Len + egress.LineOverhead
		flow := c.flow[i]
		if flow.Index == flowtable.None || !c.records[i].CarriesData() {
			s.obeyed += float64(size)
			if notifies && c.records[i].CarriesData() {
				c.inHand = uint8(i)
				c.suppress(r.in, FlowUnknown)
				marked |= 1 << i
			}
			continue
		}
		f := &l.rates[flow.Index]
		if f.generation != flow.Generation {
			*f = lawFlow{generation: flow.Generation}
		}
		if window, ended := f.Add(now, size); ended {
			l.windowEnded(&t, f, flow.Index, window)
			s.largest[0] = max(s.largest[0], f.Rate())
		}
		s.obeyed += float64(size) * f.Share(now, t.Fair)
		switch {
		case notifies && (f.Over(t.Fair) || f.Paused()):
			if c.inHand = uint8(i); c.trace != nil {
				c.trace.skips(i, NotDue)
			}
			if !l.notify(&t, b, i, f) {
				marked |= 1 << i
			}
		case resumes && f.Limited(t.Fair):
			c.inHand = uint8(i)
			l.resume(&t, b, i, f)
		}
	}
	if c.inHand = notInHand; c.trace != nil {
		c.trace.judged(these, t.Fair)
	}
	t.part.obeyed.Store(uint64(s.obeyed))
	return marked
}

// held is respond for the frames of a burst that are held or dropped instead of queued: they have arrived, too.
func (l *law) held(b *batch, out int, held mask) {
	if !l.policy.Ports[out].Law.On() || l.ports[out].Role != WAN {
		return
	}
	for held != 0 {
		class, these := l.classOf(b.port, &l.records[bits.TrailingZeros64(uint64(held))]), mask(0)
		for left := held; left != 0; left &= left - 1 {
			if i := bits.TrailingZeros64(uint64(left)); l.classOf(b.port, &l.records[i]) == class {
				these |= 1 << i
			}
		}
		held &^= these
		r := response{in: b.port, out: out, class: class, policy: &l.policy.Ports[out], state: &l.states[out][class], cause: congestion.ByDepth}
		l.respond(&r, b, these, float64(l.egress[out].Classes[class].Waiting()))
	}
}

// updateFair computes the next F of a class, if it is due and no other worker does.
func (l *law) updateFair(t *turn, depth float64) {
	s, p, class, now, at := &t.state.law, &t.policy.Law, t.shared, l.now, t.shared.at.Load()
	if elapsed := now - s.epoch; elapsed >= lawEpoch || elapsed < 0 {
		s.epoch, s.largest = now, [2]float64{0, s.largest[0]}
	}
	t.part.largest.Store(math.Float64bits(max(s.largest[0], s.largest[1])))
	s.spacing.Update(p, now, depth, class.loop.Load())
	in := congestion.Inflow{Elapsed: now - at}
	sum, paused := uint64(0), int64(0)
	for _, other := range l.plane.workers {
		part := &other.law.parts[t.out*account.MaxClasses+t.class]
		sum += part.obeyed.Load()
		in.Largest = max(in.Largest, math.Float64frombits(part.largest.Load()))
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
		class.rate.Store(math.Float64bits(class.next(t, in, depth)))
	}
	class.counted.Store(sum)
	class.spacing.Store(s.spacing.NS)
}

// windowEnded learns from the rate of a flow in a window that has ended.
func (l *law) windowEnded(t *turn, f *lawFlow, x flowtable.Index, window int64) {
	a := l.accounts.Find(x)
	if a == nil || l.now-a.LastNotified.Load() > lawIdle {
		return
	}
	key := l.flows.Key(x)
	s := l.senders.of(key)
	l.braked(key, x, s, s.reaction.Ended(l.now, uint32(x), f.Rate(), t.Lasting()), t.Fair)
	if delay := s.Ended(&t.LawState, &f.LawFlow, uint32(x), window); delay > 0 {
		l.senders.teach(key, s)
		t.shared.learnDelay(delay)
	}
}

// braked brakes a flow while its sender doesn't react to notifications: its packets are marked CE, and if its WAN port paces its flows,
// they leave at F. What comes beyond that waits for a short time, and then is dropped, so that it takes nobody else's share. It ends that
// when the sender does.
func (l *law) braked(k *flowtable.Key, x flowtable.Index, s *lawSender, reacted bool, fair float64) {
	out := l.ports[k.Port].Peer
	l.noteReaction(pacing.SenderOf(k), out, s)
	switch p := l.pacers[out]; {
	case !p.Active():
	case s.reaction.Brakes(l.now):
		if l.listener.enforces(out, k.Src) {
			p.Brake(x, fair, l.now)
		}
	case reacted:
		p.Unbrake(k, l.now)
	}
}
