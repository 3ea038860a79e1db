package respond

import (
	"math"
	"math/bits"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/egress"
	"github.com/cnpgate/cnpgate/dataplane/frames"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// pauseIgnored is the longest pause that a sender is asked for if it obeys, microseconds.
const pauseIgnored = 5000

// notify notifies the sender of a flow above F, if it is due. It returns false if the sender can't be notified, or doesn't react.
func (l *Law) notify(t *turn, b *frames.Batch, i int, f *lawFlow) bool {
	c := l.State
	x := b.Flow[i].Index
	switch {
	case x == flowtable.None:
		c.Suppress(t.In, counters.FlowUnknown)
		return false
	case b.Records[i].DestQP() < packet.ManagementQPs:
		return false
	}
	n, d := l.notifier, t.request(congestion.RateReduce, 0)
	n.Note.Decision = d
	if reason := n.Choose(b, i); reason != counters.Allowed {
		n.SuppressFlow(t.Queue, x, reason)
		return false
	}
	e := l.senders.of(c.Flows.Key(x), c.Now)
	if e.reaction.Probes(c.Now) {
		return false
	}
	s, random, size := &e.LawSender, l.nextRandom(), b.Frames[i].Len+egress.LineOverhead
	s.Arrives(c.Now, size)
	asked, closest := false, true // a sender that reacts now slows down
	switch n.Note.Format.Slows() {
	case packet.ToRate:
		if d.Parameter = f.Reduce(&t.LawState, s, random); d.Parameter == 0 {
			break
		}
		if l.notified.Load() && l.notifiedElsewhere(t, x, math.Inf(1)) {
			n.SuppressFlow(t.Queue, x, counters.NotifiedElsewhere)
			return true
		}
		if !l.send(t, b, i, f, d, true) {
			return false
		}
		asked = true
		f.Reduced(&t.LawState, s, uint32(x), d.Parameter)
		t.own.resumes = true
		t.shared.measureUntil(c.Now + limited)
		t.part.resumes.Store(true)
	case packet.ByPause:
		if d.Action, d.Parameter = congestion.Pause, f.Pause(&t.LawState, size); d.Parameter == 0 {
			break
		}
		t.part.paused.Store(c.Now)
		if !l.send(t, b, i, f, d, false) {
			return false
		}
		asked = d.Parameter > pauseIgnored // a sender that pauses is never so far ahead; its rate between pauses doesn't fall
	case packet.ByCut:
		if !f.CNP(&t.LawState, s) {
			break
		}
		if l.notified.Load() && l.notifiedElsewhere(t, x, cnpElsewhere*t.shared.fair()) {
			t.sentCNP(f, s, x) // its effect is to be expected here, too
			n.SuppressFlow(t.Queue, x, counters.NotifiedElsewhere)
			return true
		}
		d.Parameter = uint16(100 * (1 - t.Fair/t.Rate))
		if !l.send(t, b, i, f, d, true) {
			return false
		}
		asked, closest = true, s.Closest()
		t.sentCNP(f, s, x)
	}
	if asked && !n.Note.Observed {
		watched, rate := uint32(x), t.Rate
		if all := l.sharing.last(f.sender); all != nil {
			watched, rate = all.watch(), all.Rate()
		}
		e.reaction.Notified(c.Now, watched, rate, closest, t.Loop)
	}
	return !e.reaction.Brakes(c.Now)
}

// sentCNP records that a CNP was sent.
func (t *turn) sentCNP(f *lawFlow, s *congestion.LawSender, x flowtable.Index) {
	t.Surplus -= t.Promised
	t.shared.promise(t.Promised)
	f.SentCNP(&t.LawState, s, uint32(x))
}

// resume asks the sender of a flow with a limit below F to resume, unless another gateway has notified it.
func (l *Law) resume(t *turn, b *frames.Batch, i int, f *lawFlow) {
	x := b.Flow[i].Index
	s := &l.senders.of(l.Flows.Key(x), l.Now).LawSender
	percent, again, ok := f.ResumeRate(&t.LawState, s)
	if !ok {
		return
	}
	if at := l.watched.LastElsewhere(x, l.Accounts.Get(x)); at != 0 && l.Now-at < lawElsewhere {
		return
	}
	if !l.send(t, b, i, f, t.request(congestion.Resume, percent), false) {
		return
	}
	if again > 0 && !l.send(t, b, i, f, t.request(congestion.RateReduce, again), false) {
		again = 0
	}
	f.Resumed(&t.LawState, s, percent, again)
}

// lawElsewhere is how long no Resume follows another gateway's notification, ns. Two gateways would otherwise work against each other.
const lawElsewhere = 50_000_000

// drainAgain is the time between two notifications to one sender, ns, so that its Resume is not taken for a copy of an earlier one.
const drainAgain = 100_000

// releaseAll asks the senders of packets to resume that were asked for a rate.
func (l *Law) releaseAll(t *turn, b *frames.Batch, these frames.Mask) {
	for left := these; left != 0; left &= left - 1 {
		i := bits.TrailingZeros64(uint64(left)) % burst.MaxSize
		flow := b.Flow[i]
		f := &l.rates[flow.Index]
		if flow.Index == flowtable.None || f.generation != flow.Generation || !f.Asked() || !b.Records[i].CarriesData() {
			continue
		}
		b.InHand = uint8(i)
		if l.Now-l.Accounts.Get(flow.Index).LastNotified.Load() >= drainAgain && l.send(t, b, i, f, t.request(congestion.Resume, 0), false) {
			f.Released()
		}
	}
}

// request is a request, with the queue's state.
func (t *turn) request(a congestion.Action, parameter uint16) congestion.Decision {
	d := t.asks
	d.Action, d.Parameter = a, parameter
	return d
}

// send sends a request to the sender of a packet. Two in succession differ in the Congestion Level, so that none counts as a replay of the
// other. chosen: the recipient has been chosen for a decision with this action.
func (l *Law) send(t *turn, b *frames.Batch, i int, f *lawFlow, d congestion.Decision, chosen bool) (ok bool) {
	c := l.State
	x := b.Flow[i].Index
	a := c.Accounts.Begun(b.Flow[i])
	sent := uint32(0)
	for _, of := range a.Notified {
		sent += of
	}
	d.Level ^= uint8(sent & 1)
	n := l.notifier
	n.Note.Decision, n.Note.FlowBytes, n.Note.FlowRate, n.Note.FairRate = d, c.Learner.Bytes(x), uint64(f.Rate()*1e6), uint64(t.Fair*1e6)
	target := &n.Target
	if d.Action == congestion.RateReduce {
		target = &l.watched.Watch(x, a, t.Queue).Target // another gateway's notification finds it there
	}
	if chosen {
		ok = n.AskChosen(t.Queue, b, i, a, target)
	} else {
		ok = n.Ask(t.Queue, b, i, a, target)
	}
	if ok {
		a.SetNotified(c.Now)
	}
	return ok
}

// nextRandom is a random number from 0 to 1 (Marsaglia's xorshift).
func (l *Law) nextRandom() float64 {
	x := l.random
	x ^= x << 13
	x ^= x >> 7
	x ^= x << 17
	l.random = x
	return float64(x>>11) / (1 << 53)
}

// Asked reports whether a flow's sender was asked for a rate, and has had no Resume.
func (l *Law) Asked(flow flowtable.Ref) bool {
	f := &l.rates[flow.Index]
	return f.generation == flow.Generation && f.Asked()
}
