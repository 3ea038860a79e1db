package dataplane

import (
	"math"
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane/account"
	"github.com/cnpgate/cnpgate/dataplane/egress"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/keyhash"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// fairClass is the fair rate of a class of an egress queue. All workers share it, without a lock: the worker that advances `at` computes the next one, from what
// all have published.
type fairClass struct {
	rate    atomic.Uint64 // F, the bits of a float64
	at      atomic.Int64  // time of the last update, ns; 0 before the first
	counted atomic.Uint64 // the workers' obeyed bytes up to then
	loop    atomic.Int64  // delay of the control loop, ns
	spacing atomic.Int64  // of congestion.Spacing
	until   atomic.Int64  // all workers measure rates until then, ns: F needs the bytes of all
	_       [16]byte      // a cache line
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

// law responds to the state of a class by the control law, as respond does by thresholds. It returns the packets that are marked: those of senders which can't be
// notified, and of those that don't react.
func (w *Worker) law(r *response, b *batch, these mask, depth float64) (marked mask) {
	s, l := &r.state.law, &r.policy.Law
	if w.now != s.polled {
		s.interval, s.polled = w.now-s.polled, w.now
	}
	class := &w.plane.fair[r.out*account.MaxClasses+r.class]
	if l.Measures(depth) {
		class.measureUntil(w.now + lawIdle)
	}
	if w.now > class.until.Load() && !w.policy.Drain {
		return 0
	}
	w.updateFair(r, class, depth)
	c := congestion.LawState{
		Law: l, Now: w.now, Fair: class.fair(), Depth: depth, Loop: class.loop.Load(), Spacing: class.spacing.Load(), Polled: s.interval,
	}
	w.about(r.in, r.out, r.class, r.state, r.cause)
	notifies, resumes := l.Notifies(depth), l.Resumes(depth) && s.resumes
	if w.policy.Drain {
		w.lawReleaseAll(r, b, these, &c)
	}
	for left := these; left != 0; left &= left - 1 {
		i := bits.TrailingZeros64(uint64(left)) % burst.MaxSize
		size := b.frames[i].Len + egress.LineOverhead
		flow := w.flow[i]
		if flow.Index == flowtable.None || !w.records[i].CarriesData() {
			s.obeyed += float64(size)
			if notifies && w.records[i].CarriesData() {
				w.inHand = uint8(i)
				w.suppress(r.in, FlowUnknown)
				marked |= 1 << i
			}
			continue
		}
		f := &w.lawFlows[flow.Index]
		if f.generation != flow.Generation {
			*f = lawFlow{generation: flow.Generation}
		}
		if window, ended := f.Add(w.now, size); ended {
			w.windowEnded(&c, class, f, flow.Index, window)
			s.largest[0] = max(s.largest[0], f.Rate())
		}
		s.obeyed += float64(size) * f.Share(w.now, c.Fair)
		switch {
		case notifies && (f.Over(c.Fair) || f.Paused()):
			if w.inHand = uint8(i); w.trace != nil {
				w.trace.skips(i, NotDue)
			}
			if !w.lawNotify(r, b, i, &c, f) {
				marked |= 1 << i
			}
		case resumes && f.Limited(c.Fair):
			w.inHand = uint8(i)
			w.lawResume(r, b, i, &c, f)
		}
	}
	if w.inHand = notInHand; w.trace != nil {
		w.trace.judged(these, c.Fair)
	}
	w.lawParts[r.out*account.MaxClasses+r.class].obeyed.Store(uint64(s.obeyed))
	return marked
}

// initLaw makes the worker's state of the control law.
func (w *Worker) initLaw(c *Config) error {
	memory, err := c.Allocate((c.Flows + 1) * int(unsafe.Sizeof(lawFlow{})))
	if err != nil {
		return err
	}
	w.lawFlows = unsafe.Slice((*lawFlow)(unsafe.Pointer(unsafe.SliceData(memory))), w.flows.Capacity()+1)
	if memory, err = c.Allocate(lawSendersSize()); err != nil {
		return err
	}
	w.lawSenders = newLawSenders(memory, c.Seed)
	w.lawParts = make([]lawPart, len(c.Ports)*account.MaxClasses)
	w.random = keyhash.Fold(c.Seed^0x9e3779b97f4a7c15, uint64(w.id)+0xbf58476d1ce4e5b9) | 1
	return nil
}

// updateFair computes the next F of a class, if it is due and no other worker does.
func (w *Worker) updateFair(r *response, class *fairClass, depth float64) {
	s, l, at := &r.state.law, &r.policy.Law, class.at.Load()
	if elapsed := w.now - s.epoch; elapsed >= lawEpoch || elapsed < 0 {
		s.epoch, s.largest = w.now, [2]float64{0, s.largest[0]}
	}
	part := &w.lawParts[r.out*account.MaxClasses+r.class]
	part.largest.Store(math.Float64bits(max(s.largest[0], s.largest[1])))
	s.spacing.Update(l, w.now, depth, class.loop.Load())
	in := congestion.Inflow{Elapsed: w.now - at}
	sum, paused := uint64(0), int64(0)
	for _, other := range w.plane.workers {
		p := &other.lawParts[r.out*account.MaxClasses+r.class]
		sum += p.obeyed.Load()
		in.Largest = max(in.Largest, math.Float64frombits(p.largest.Load()))
		in.Resumes = in.Resumes || p.resumes.Load()
		paused = max(paused, p.paused.Load())
	}
	bytes := sum - class.counted.Load()
	switch idle := at == 0 || in.Elapsed > lawIdle; {
	case !idle && !l.Due(in.Elapsed, bytes, paused != 0 && w.now-paused < lawIdle):
		return
	case !class.at.CompareAndSwap(at, w.now):
		return
	case idle:
		class.rate.Store(math.Float64bits(l.Line))
	default:
		in.Obeyed = float64(bytes)
		class.rate.Store(math.Float64bits(l.Next(class.fair(), in, depth, class.loop.Load())))
	}
	class.counted.Store(sum)
	class.spacing.Store(s.spacing.NS)
}

// windowEnded learns from the rate of a flow in a window that has ended.
func (w *Worker) windowEnded(c *congestion.LawState, class *fairClass, f *lawFlow, x flowtable.Index, window int64) {
	a := w.accounts.Find(x)
	if a == nil || w.now-a.LastNotified.Load() > lawIdle {
		return
	}
	key := w.flows.Key(x)
	s := w.lawSenders.of(key)
	w.braked(key, x, s, s.reaction.Ended(w.now, uint32(x), f.Rate(), c.Lasting()), c.Fair)
	if delay := s.Ended(c, &f.LawFlow, uint32(x), window); delay > 0 {
		w.lawSenders.teach(key, s)
		class.learnDelay(delay)
	}
}

// pauseIgnored is the longest pause that a sender is asked for if it obeys, microseconds.
const pauseIgnored = 5000

// lawNotify notifies the sender of a flow above F, if it is due. It returns false if the sender can't be notified, or doesn't react.
func (w *Worker) lawNotify(r *response, b *batch, i int, c *congestion.LawState, f *lawFlow) bool {
	x := w.flow[i].Index
	if w.records[i].DestQP() < managementQPs {
		return false
	}
	key := w.flows.Key(x)
	n, d := &w.note, w.lawRequest(c, congestion.RateReduce, 0)
	n.decision = d
	if reason := w.choose(b, i); reason != allowed {
		w.suppressFlow(r, x, reason)
		return false
	}
	e := w.lawSenders.of(key)
	if e.reaction.Probes(w.now) {
		return false
	}
	s, random := &e.LawSender, w.lawRandom()
	s.Arrives(w.now, b.frames[i].Len+egress.LineOverhead)
	switch n.format {
	case packet.LongHaulCNP, packet.LongHaulCNPICMPv6:
		if d.Parameter = f.Reduce(c, s, random); d.Parameter == 0 {
			break
		}
		if !w.lawSend(r, b, i, f, d) {
			return false
		}
		f.Reduced(c, s, uint32(x), d.Parameter)
		w.lawSent(e, x, f, c.Loop)
		r.state.law.resumes = true
		w.plane.fair[r.out*account.MaxClasses+r.class].measureUntil(w.now + limited)
		w.lawParts[r.out*account.MaxClasses+r.class].resumes.Store(true)
	case packet.PPFC:
		if d.Action, d.Parameter = congestion.Pause, f.Pause(c, b.frames[i].Len+egress.LineOverhead); d.Parameter == 0 {
			break
		}
		w.lawParts[r.out*account.MaxClasses+r.class].paused.Store(w.now)
		if !w.lawSend(r, b, i, f, d) {
			return false
		}
		if d.Parameter > pauseIgnored { // a sender that pauses is never so far ahead; its rate between pauses doesn't fall
			w.lawSent(e, x, f, c.Loop)
		}
	default:
		if !f.CNP(c, s, random) {
			break
		}
		d.Parameter = uint16(100 * (1 - c.Fair/f.Rate()))
		if !w.lawSend(r, b, i, f, d) {
			return false
		}
		f.SentCNP(c, s, uint32(x))
		w.lawSent(e, x, f, c.Loop)
	}
	return !e.reaction.Brakes(w.now)
}

// lawSent records that the sender of a flow was asked to slow down, if not only observed.
func (w *Worker) lawSent(e *lawSender, x flowtable.Index, f *lawFlow, loop int64) {
	if !w.note.observed {
		e.reaction.Notified(w.now, uint32(x), f.Rate(), loop)
	}
}

// lawResume asks the sender of a flow with a limit below F to resume, unless another gateway has notified it.
func (w *Worker) lawResume(r *response, b *batch, i int, c *congestion.LawState, f *lawFlow) {
	x := w.flow[i].Index
	s := &w.lawSenders.of(w.flows.Key(x)).LawSender
	percent, again, ok := f.ResumeRate(c, s)
	if !ok {
		return
	}
	if e := &w.senders.of[w.accounts.Get(x).Watch()]; e.flow == x && e.elsewhere != 0 && w.now-e.elsewhere < lawElsewhere {
		return
	}
	if !w.lawSend(r, b, i, f, w.lawRequest(c, congestion.Resume, percent)) {
		return
	}
	if again > 0 && !w.lawSend(r, b, i, f, w.lawRequest(c, congestion.RateReduce, again)) {
		again = 0
	}
	f.Resumed(c, s, percent, again)
}

// lawElsewhere is how long no Resume follows another gateway's notification, ns. Two gateways would otherwise work against each other.
const lawElsewhere = 50_000_000

// lawRequest is a request, with the queue's state.
func (w *Worker) lawRequest(c *congestion.LawState, a congestion.Action, parameter uint16) congestion.Decision {
	t := congestion.Thresholds{KMin: uint64(c.Law.Reference), KMax: 2 * uint64(c.Law.Reference)}
	return congestion.Decision{
		Action: a, Parameter: parameter, Rung: 1, Level: max(t.Severity(uint64(c.Depth)), 2),
		MetricType: congestion.MetricDepth, MetricValue: uint32(min(c.Depth/1000, 1<<24-1)),
	}
}

// lawSend sends a request to the sender of a packet. Two in succession differ in the Congestion Level, so that none counts as a replay of the other.
func (w *Worker) lawSend(r *response, b *batch, i int, f *lawFlow, d congestion.Decision) bool {
	x := w.flow[i].Index
	a := w.accounts.Get(x)
	n := &w.note
	sent := uint32(0)
	for _, of := range a.Notified {
		sent += of
	}
	d.Level ^= uint8(sent & 1)
	if !r.policy.Disclose {
		d.MetricType, d.MetricValue = congestion.MetricUnspecified, 0
	}
	n.decision, n.flowBytes, n.flowRate = d, w.learner.Bytes(x), uint64(f.Rate()*1e6)
	target := &w.target
	if d.Action == congestion.RateReduce {
		target = &w.senders.watch(x, a, r).target // another gateway's notification finds it there
	}
	if reason := w.ask(b, i, a, target); reason != allowed {
		w.suppressFlow(r, x, reason)
		return false
	}
	a.SetNotified(w.now)
	return true
}

// lawRandom is a random number from 0 to 1 (Marsaglia's xorshift).
func (w *Worker) lawRandom() float64 {
	x := w.random
	x ^= x << 13
	x ^= x >> 7
	x ^= x << 17
	w.random = x
	return float64(x>>11) / (1 << 53)
}
