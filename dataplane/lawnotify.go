package dataplane

import (
	"math/bits"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane/egress"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// pauseIgnored is the longest pause that a sender is asked for if it obeys, microseconds.
const pauseIgnored = 5000

// notify notifies the sender of a flow above F, if it is due. It returns false if the sender can't be notified, or doesn't react.
func (l *law) notify(t *turn, b *batch, i int, f *lawFlow) bool {
	c := l.common
	x := c.flow[i].Index
	if c.records[i].DestQP() < managementQPs {
		return false
	}
	n, d := l.notifier, t.request(congestion.RateReduce, 0)
	n.note.decision = d
	if reason := n.choose(b, i); reason != allowed {
		n.suppressFlow(t.response, x, reason)
		return false
	}
	e := l.senders.of(c.flows.Key(x))
	if e.reaction.Probes(c.now) {
		return false
	}
	s, random, size := &e.LawSender, l.nextRandom(), b.frames[i].Len+egress.LineOverhead
	s.Arrives(c.now, size)
	asked := false // a sender that reacts now slows down
	switch n.note.format {
	case packet.LongHaulCNP, packet.LongHaulCNPICMPv6:
		if d.Parameter = f.Reduce(&t.LawState, s, random); d.Parameter == 0 {
			break
		}
		if l.notifiedElsewhere(t, x) {
			n.suppressFlow(t.response, x, NotifiedElsewhere)
			return true
		}
		if !l.send(t, b, i, f, d, true) {
			return false
		}
		asked = true
		f.Reduced(&t.LawState, s, uint32(x), d.Parameter)
		t.state.law.resumes = true
		t.shared.measureUntil(c.now + limited)
		t.part.resumes.Store(true)
	case packet.PPFC:
		if d.Action, d.Parameter = congestion.Pause, f.Pause(&t.LawState, size); d.Parameter == 0 {
			break
		}
		t.part.paused.Store(c.now)
		if !l.send(t, b, i, f, d, false) {
			return false
		}
		asked = d.Parameter > pauseIgnored // a sender that pauses is never so far ahead; its rate between pauses doesn't fall
	default:
		if !f.CNP(&t.LawState, s, random) {
			break
		}
		if l.notifiedElsewhere(t, x) {
			f.SentCNP(&t.LawState, s, uint32(x))
			n.suppressFlow(t.response, x, NotifiedElsewhere)
			return true
		}
		d.Parameter = uint16(100 * (1 - t.Fair/f.Rate()))
		if !l.send(t, b, i, f, d, true) {
			return false
		}
		asked = true
		f.SentCNP(&t.LawState, s, uint32(x))
	}
	if asked && !n.note.observed {
		e.reaction.Notified(c.now, uint32(x), f.Rate(), t.Loop)
	}
	return !e.reaction.Brakes(c.now)
}

// resume asks the sender of a flow with a limit below F to resume, unless another gateway has notified it.
func (l *law) resume(t *turn, b *batch, i int, f *lawFlow) {
	x := l.flow[i].Index
	s := &l.senders.of(l.flows.Key(x)).LawSender
	percent, again, ok := f.ResumeRate(&t.LawState, s)
	if !ok {
		return
	}
	if e := &l.watched.of[l.accounts.Get(x).Watch()]; e.flow == x && e.elsewhere != 0 && l.now-e.elsewhere < lawElsewhere {
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
func (l *law) releaseAll(t *turn, b *batch, these mask) {
	for left := these; left != 0; left &= left - 1 {
		i := bits.TrailingZeros64(uint64(left)) % burst.MaxSize
		flow := l.flow[i]
		f := &l.rates[flow.Index]
		if flow.Index == flowtable.None || f.generation != flow.Generation || !f.Asked() || !l.records[i].CarriesData() {
			continue
		}
		l.inHand = uint8(i)
		if l.now-l.accounts.Get(flow.Index).LastNotified.Load() >= drainAgain && l.send(t, b, i, f, t.request(congestion.Resume, 0), false) {
			f.Released()
		}
	}
}

// request is a request, with the queue's state.
func (t *turn) request(a congestion.Action, parameter uint16) congestion.Decision {
	k := congestion.Thresholds{KMin: uint64(t.Law.Reference), KMax: 2 * uint64(t.Law.Reference)}
	return congestion.Decision{
		Action: a, Parameter: parameter, Rung: 1, Level: max(k.Severity(uint64(t.Depth)), 2),
		MetricType: congestion.MetricDepth, MetricValue: uint32(min(t.Depth/1000, 1<<24-1)),
	}
}

// send sends a request to the sender of a packet. Two in succession differ in the Congestion Level, so that none counts as a replay of the
// other. chosen: the recipient has been chosen for a decision with this action.
func (l *law) send(t *turn, b *batch, i int, f *lawFlow, d congestion.Decision, chosen bool) (ok bool) {
	c := l.common
	x := c.flow[i].Index
	a := c.accounts.Get(x)
	sent := uint32(0)
	for _, of := range a.Notified {
		sent += of
	}
	d.Level ^= uint8(sent & 1)
	if !t.policy.Disclose {
		d.MetricType, d.MetricValue = congestion.MetricUnspecified, 0
	}
	n := l.notifier
	n.note.decision, n.note.flowBytes, n.note.flowRate = d, c.learner.Bytes(x), uint64(f.Rate()*1e6)
	target := &n.target
	if d.Action == congestion.RateReduce {
		target = &l.watched.watch(x, a, t.response).target // another gateway's notification finds it there
	}
	if chosen {
		ok = n.askChosen(t.response, b, i, a, target)
	} else {
		ok = n.ask(t.response, b, i, a, target)
	}
	if ok {
		a.SetNotified(c.now)
	}
	return ok
}

// nextRandom is a random number from 0 to 1 (Marsaglia's xorshift).
func (l *law) nextRandom() float64 {
	x := l.random
	x ^= x << 13
	x ^= x >> 7
	x ^= x << 17
	l.random = x
	return float64(x>>11) / (1 << 53)
}
