package respond

import (
	"math/bits"
	"unsafe"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane/account"
	"github.com/cnpgate/cnpgate/dataplane/egress"
	"github.com/cnpgate/cnpgate/dataplane/frames"
	"github.com/cnpgate/cnpgate/dataplane/notify"
	"github.com/cnpgate/cnpgate/dataplane/pacing"
	"github.com/cnpgate/cnpgate/dataplane/stage"
	"github.com/cnpgate/cnpgate/dataplane/trace"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/keyhash"
)

// lawState is the rest of a worker's part of a class.
type lawState struct {
	obeyed   float64
	largest  [2]float64 // in this epoch, and in the one before
	windows  float64    // of senders, which have ended in this epoch, ns
	epoch    int64      // when this one began, ns
	polled   int64      // time of the last poll, ns
	interval int64      // between the last two polls, ns
	resumes  bool
}

const (
	lawEpoch = 500_000    // ns
	lawIdle  = 10_000_000 // ns after which rates are no longer measured at a short queue, and F begins anew
)

// measured takes the rate of a sender at all workers after a window, of which a part is this worker's, ns; 0: none has ended.
func (s *lawState) measured(rate float64, window int64) {
	s.largest[0] = max(s.largest[0], rate)
	s.windows += float64(min(window, lawEpoch))
}

// limited is how long rates are measured after a sender was asked for one, since it may be due a Resume, ns.
const limited = 1_000_000_000

// lawFlow is the law's state of a flow. It has the generation of its flow, like account.
type lawFlow struct {
	congestion.LawFlow
	generation uint32
	sender     uint32 // of the last packet, see sharing.of
}

// Law is a worker's control law.
type Law struct {
	*stage.State
	notifier *notify.Notifier
	watched  *notify.Senders
	classes  [][]lawState // by port and class
	rates    []lawFlow    // by flowtable.Index
	senders  lawSenders
	sharing  sharing
	parts    []lawPart // by port and class
	random   uint64    // not 0
	*Shared
}

// turn is what the law decides by for the frames of one batch in one class.
type turn struct {
	congestion.LawState
	*notify.Queue
	policy *stage.PortPolicy
	asks   congestion.Decision // see setAsks
	own    *lawState
	shared *fairClass
	part   *lawPart
	share  *Share // what other gateways do at the bottleneck; nil: nothing
}

// init makes the state of a worker's control law.
func (l *Law) init(seed uint64, allocate func(bytes int) ([]byte, error)) error {
	n := l.Flows.Capacity() + 1
	memory, err := allocate(n * int(unsafe.Sizeof(lawFlow{})))
	if err != nil {
		return err
	}
	l.rates = unsafe.Slice((*lawFlow)(unsafe.Pointer(unsafe.SliceData(memory))), n)
	if memory, err = allocate(lawSendersSize()); err != nil {
		return err
	}
	l.senders = newLawSenders(memory, seed)
	if memory, err = allocate(sharingSize()); err != nil {
		return err
	}
	l.sharing = newSharing(memory, seed)
	l.parts = l.all[l.ID]
	for port := range l.Ports {
		l.classes = append(l.classes, make([]lawState, l.Ports[port].Classes))
	}
	l.random = keyhash.Fold(seed^0x9e3779b97f4a7c15, uint64(l.ID)+0xbf58476d1ce4e5b9) | 1
	return nil
}

// respond responds to the state of a class by the control law, as responder.respond does by thresholds. It returns the packets that are
// marked: those of senders which can't be notified, and of those that don't react.
func (l *Law) respond(r *notify.Queue, b *frames.Batch, these frames.Mask, depth float64) (marked frames.Mask) {
	c, s, policy := l.State, &l.classes[r.Out][r.Class], &l.Policy.Ports[r.Out]
	p := &policy.Law
	now := c.Now
	if now != s.polled {
		s.interval, s.polled = now-s.polled, now
	}
	at := r.Out*account.MaxClasses + r.Class
	// Loaded here, and not by t.shared: to the compiler, a pointer that is loaded atomically leaves the stack with all that it was found by, and r would
	// be allocated at each call.
	t := turn{Queue: r, policy: policy, own: s, shared: &l.fair[at], part: &l.parts[at], share: l.fair[at].share.Load()}
	if p.Measures(depth) || t.share.measures(p) {
		t.shared.measureUntil(now + lawIdle)
	}
	if now > t.shared.until.Load() && !c.Policy.Drain {
		return 0
	}
	left := float64(l.Egress[r.Out].Classes[r.Class].Space(policy.Queue))
	l.updateFair(&t, depth)
	t.LawState = congestion.LawState{
		Law: p, Now: now, Fair: t.shared.fair(), Depth: depth, Drained: 1, Surplus: t.shared.growth().Surplus(), Loop: t.shared.loop.Load(),
		Polled: s.interval,
	}
	notifies, resumes := p.Notifies(depth), p.Resumes(depth) && s.resumes
	if notifies {
		t.Space, t.Drained = p.Space(depth, left), p.Drained(t.Fair, depth, t.Loop, s.resumes)
	}
	if notifies || resumes || c.Policy.Drain {
		l.notifier.About(r)
		t.setAsks()
	}
	obeyed, fair, rates := s.obeyed, t.Fair, l.rates
	if c.Policy.Drain {
		l.releaseAll(&t, b, these)
	}
	for left := these; left != 0; left &= left - 1 {
		i := bits.TrailingZeros64(uint64(left)) % burst.MaxSize
		size := b.Frames[i].Len + egress.LineOverhead
		if !b.Records[i].CarriesData() {
			obeyed += float64(size)
			continue
		}
		flow := b.Flow[i]
		f := &rates[flow.Index]
		if f.generation != flow.Generation || flow.Index == flowtable.None { // of one that isn't recorded nothing is known
			*f = lawFlow{generation: flow.Generation}
		}
		window, ended := f.Add(now, size)
		over := &f.LawFlow
		var e *sharer
		if f.Rate() == 0 || !p.ByFlow {
			e = l.sharing.of(&f.sender, flowtable.KeyOf(&b.Records[i]), at, size, now)
		} else {
			f.sender = 0
		}
		share := fair                // of the sender, at this worker
		if t.Fair = fair; e == nil { // F is a flow's, or the sender sends little: there are others that send more
			obeyed += float64(size) * f.Share(now, fair)
			s.measured(f.Rate(), window)
		} else {
			if f.Rate() == 0 {
				t.Slow = e.addSlow(now, size)
				over = &e.slow
			}
			share = e.share(fair)
			level, obeys, window, ended := e.Arrives(now, size, over, share)
			if ended {
				if l.rated != nil {
					l.divide(e, window)
					share = e.share(fair)
				}
				e.Judge(window, share)
				s.measured(e.Rate()*fair/share, int64(float64(window)*share/fair))
				t.Fair = share
				l.senderEnded(&t, b, i, e)
			}
			t.Fair = level
			obeyed += obeys
		}
		if ended {
			l.windowEnded(&t, f, flow.Index, window)
		}
		switch {
		case notifies && (over.Over(t.Fair) && (e == nil || e.Over(share)) || f.Paused()):
			if b.InHand = uint8(i); c.Trace != nil {
				c.Trace.Skips(i, trace.NotDue)
			}
			if t.Rate = over.Rate(); !l.notify(&t, b, i, f) {
				marked |= 1 << i
			}
		case resumes && f.Limited(t.Fair):
			b.InHand = uint8(i)
			l.resume(&t, b, i, f)
		}
	}
	if b.InHand = frames.NotInHand; c.Trace != nil {
		l.traceRates(b, these, fair)
	}
	s.obeyed = obeyed
	t.part.obeyed.Store(uint64(obeyed))
	return marked
}

// Unresponsive reports whether a flow's sender doesn't react to notifications.
func (l *Law) Unresponsive(k *flowtable.Key) bool { return l.senders.unresponsive(k) }

// traceRates tells a trace the law's state after it has seen the packets of a class.
func (l *Law) traceRates(b *frames.Batch, these frames.Mask, fair float64) {
	l.Trace.Each(these, func(p *trace.Packet) {
		p.Law, p.Fair = true, fair
		if x := b.Flow[p.Place].Index; x != flowtable.None {
			p.Rate = l.rates[x].Rate()
			if e := l.sharing.last(l.rates[x].sender); e != nil {
				p.Fair = e.Level(e.share(fair))
			}
		}
	})
}

// Held is respond for the frames of a burst that are held or dropped instead of queued: they have arrived, too.
func (l *Law) Held(b *frames.Batch, out int, held frames.Mask) {
	if !l.Policy.Ports[out].Law.On() || l.Ports[out].Role != stage.WAN {
		return
	}
	for held != 0 {
		class, these := b.ClassAt(bits.TrailingZeros64(uint64(held))), frames.Mask(0)
		for left := held; left != 0; left &= left - 1 {
			if i := bits.TrailingZeros64(uint64(left)); b.ClassAt(i) == class {
				these |= 1 << i
			}
		}
		held &^= these
		r := notify.Queue{In: b.Port, Out: out, Class: class, State: &l.Queues[out][class], Cause: congestion.ByDepth}
		l.respond(&r, b, these, float64(l.Egress[out].Classes[class].Waiting()))
	}
}

// senderEnded learns from the rate of a sender in a window that has ended whether it reacts.
func (l *Law) senderEnded(t *turn, b *frames.Batch, i int, e *sharer) {
	k := flowtable.KeyOf(&b.Records[i])
	s := l.senders.find(k)
	if s == nil {
		return
	}
	reacted := s.reaction.Ended(l.Now, e.watch(), e.Rate(), t.Lasting())
	l.noteReaction(pacing.SenderOf(k), t.Out, s)
	if p := l.Pacers[t.Out]; reacted && p.Active() {
		p.Unbrake(k, l.Now)
	}
}

// windowEnded learns from the rate of a flow in a window that has ended.
func (l *Law) windowEnded(t *turn, f *lawFlow, x flowtable.Index, window int64) {
	a := l.Accounts.Find(x)
	if a == nil || l.Now-a.LastNotified.Load() > lawIdle {
		return
	}
	key := l.Flows.Key(x)
	s := l.senders.of(key, l.Now)
	l.braked(key, x, s, s.reaction.Ended(l.Now, uint32(x), f.Rate(), t.Lasting()), t.Fair)
	if first := s.Delay == 0; s.Ended(&t.LawState, &f.LawFlow, uint32(x), window) && first {
		t.shared.learnDelay(int64(s.Delay))
	}
}

// braked brakes a flow while its sender doesn't react to notifications: its packets are marked CE, and if its WAN port paces its flows,
// they leave at F. What comes beyond that waits for a short time, and then is dropped, so that it takes nobody else's share. It ends that
// when the sender does.
func (l *Law) braked(k *flowtable.Key, x flowtable.Index, s *lawSender, reacted bool, fair float64) {
	out := l.Ports[k.Port].Peer
	l.noteReaction(pacing.SenderOf(k), out, s)
	switch p := l.Pacers[out]; {
	case !p.Active():
	case s.reaction.Brakes(l.Now):
		if l.Enforces(out, k.Src) {
			p.Brake(x, fair, l.Now)
		}
	case reacted:
		p.Unbrake(k, l.Now)
	}
}

// setAsks sets what all requests of a turn have in common: the queue's state.
func (t *turn) setAsks() {
	k := congestion.Thresholds{KMin: uint64(t.Law.Reference), KMax: 2 * uint64(t.Law.Reference)}
	t.asks = congestion.Decision{Rung: 1, Level: max(k.Severity(uint64(t.Depth)), 2), MetricType: congestion.MetricUnspecified}
	if t.policy.Disclose {
		t.asks.MetricType, t.asks.MetricValue = congestion.MetricDepth, uint32(min(t.Depth/1000, 1<<24-1))
	}
}
