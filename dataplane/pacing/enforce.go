package pacing

import (
	"sync/atomic"

	"github.com/cnpgate/cnpgate/cnpdec"
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// A sender may obey no notification. Then the gateway near the sender can do what a notification asks: it holds the frames of the flow that
// the notification names, in front of its WAN port's queue, with the pacer of that port. It forwards the notification. At another gateway,
// which congests, the flow then arrives as slowly as if the sender had obeyed.

// Unenforced is why the gateway didn't carry out what a notification asks for.
type Unenforced uint8

const (
	UntrustedSource   Unenforced = iota // the source may not send notifications to the domain
	Malformed                           // cnpdec refuses it, or its fields contradict each other
	NoSpaceForRequest                   // no slot for the request or its flow
	TooSoon                             // the last change of the flow's pace was too recent
	NothingToResume                     // a resume of a flow that isn't slowed down
	Ambiguous                           // it has no tags, and flows of several scopes have the addresses and QPs that it names
	// Unenforceds is the number of reasons.
	Unenforceds
)

// UnenforcedNames are the names of the reasons in counters.
var UnenforcedNames = [Unenforceds]string{"untrusted-source", "malformed", "no-space", "too-soon", "nothing-to-resume", "ambiguous"}

// RequestOf is what a notification asks for; false if its fields contradict each other, or it names no QP that carries data.
func RequestOf(n *cnpdec.Notification) (Request, bool) {
	r := &n.Asks
	return Request{Sender: r.Sender, Receiver: r.Receiver, QP: r.QP, sendersQP: r.SendersQP, Action: r.Ask, parameter: r.Parameter},
		r.Consistent() && r.QP >= packet.ManagementQPs
}

// Obey carries out a request for the flow of a port that it names. If that isn't slowed down, the request waits for the flow's next packet. It returns
// Taken, NoSlot, or nothing for a Resume of a flow that isn't slowed down here.
func (p *Pacer) Obey(r *Request, now int64) Result {
	if !p.Active() {
		return Taken
	}
	at := p.senders.flows[p.senders.bucket(r.Host())]
	for range longestList {
		if at == 0 {
			break
		}
		h := &p.hosts.of[at]
		if r.Names(&h.key, p.sourceQPOf(h)) {
			p.carryOut(at, r, now)
			return Taken
		}
		at = h.enforced.next
	}
	switch resumes := r.Action == cnpdec.Resume || r.Action == cnpdec.EndPause; {
	case resumes && !p.requests.cancel(r):
		return nothing
	case !resumes && !p.requests.expect(r):
		return NoSlot
	}
	return Taken
}

// sourceQPOf is the source QP of a slowed flow, 0 if it isn't known.
func (p *Pacer) sourceQPOf(h *pacedHost) uint32 {
	e := &h.enforced
	if p.Accounts.Flows.Live(e.ref) {
		if qp, known := p.Learner.SourceQP(e.ref.Index); known {
			e.sourceQP = qp
		}
	}
	return e.sourceQP
}

// takeRequests carries out the requests that have waited for a packet of this flow. It reads only lists of requests that may name the flow:
// whoever sends many about other flows of the same sender costs its packets nothing.
func (p *Pacer) takeRequests(flow flowtable.Ref, now int64) {
	k := p.Accounts.Flows.Key(flow.Index)
	sender := p.senders.hash(SenderOf(k))
	sourceQP, known := p.Learner.SourceQP(flow.Index)
	if !known {
		sourceQP = 0
	}
	p.takeNamed(flow, sourceQP, now, p.requests.named(sender, k.Dst, k.DestQP, false))
	if sourceQP != 0 {
		p.takeNamed(flow, sourceQP, now, p.requests.named(sender, k.Dst, sourceQP, true))
		p.takeNamed(flow, sourceQP, now, p.requests.named(sender, packet.Addr{}, sourceQP, true))
	}
}

// takeNamed carries out the requests of a list that name a flow.
func (p *Pacer) takeNamed(flow flowtable.Ref, sourceQP uint32, now int64, link *uint32) {
	k := p.Accounts.Flows.Key(flow.Index)
	for *link != 0 { // at most requestsABucket
		r := p.requests.waiting.of[*link]
		switch {
		case r.ends() <= now:
			p.requests.remove(link)
		case r.Names(k, sourceQP):
			p.requests.remove(link)
			p.start(flow, sourceQP, &r, now)
		default:
			link = &p.requests.waiting.next[*link]
		}
	}
}

// start carries out a request for a flow that may not be slowed down yet.
func (p *Pacer) start(flow flowtable.Ref, sourceQP uint32, r *Request, now int64) {
	at := p.hosts.add(p.Accounts.Flows.Key(flow.Index), now)
	if at == 0 {
		p.count(NoSpaceForRequest)
		return
	}
	e := &p.hosts.of[at].enforced
	if !e.linked {
		p.senders.link(at)
	}
	e.ref, e.sourceQP = flow, sourceQP
	p.carryOut(at, r, now)
}

// carryOut carries out a request for a flow with a slot, and counts it.
func (p *Pacer) carryOut(at uint32, r *Request, now int64) {
	if why := p.hosts.of[at].change(p.policy, r, now); why != Unenforceds {
		p.count(why)
		return
	}
	p.due.move(at)
	p.Events[r.Action]++
	p.Counted = true
}

// Tally counts what a pacer did about requests.
type Tally struct {
	Counted bool           // Events has any
	Events  [events]uint64 // since the worker has counted them
}

// count counts a request that is not carried out.
func (t *Tally) count(why Unenforced) {
	t.Events[int(cnpdec.Asks)+int(why)]++
	t.Counted = true
}

// events are the number of the actions that were carried out, and after these of the reasons why they were not.
const events = int(cnpdec.Asks) + int(Unenforceds)

// Result is what a worker has made of a request.
type Result uint64

const (
	nothing Result = 0 // there is nothing to do for it
	Taken   Result = 1 << 16
	NoSlot  Result = 1 << 32
)

// Trial is what the workers have made of a request, in one word so that the last one finds the result of all: 16 bits each for the workers that have not
// tried it yet, those that have taken it, and those that had no slot for it.
type Trial struct{ all atomic.Uint64 }

const (
	untried   = 1
	trialMask = 1<<16 - 1
)

// Begin begins the trial of a request by some workers; false if that of another one is not over.
func (t *Trial) Begin(workers int) bool {
	if t.all.Load()&trialMask != 0 {
		return false
	}
	t.all.Store(uint64(workers) * untried)
	return true
}

// Tried notes what a worker has made of a request. Of the last worker it returns why, if none has taken it; otherwise Unenforceds.
func (t *Trial) Tried(r Result) Unenforced {
	switch all := t.all.Add(uint64(r) - untried); {
	case all&trialMask != 0 || all/uint64(Taken)&trialMask != 0:
		return Unenforceds
	case all/uint64(NoSlot) != 0:
		return NoSpaceForRequest
	}
	return NothingToResume
}

// enforcedFlow is what a pacer knows of a flow that it slows down as notifications ask.
type enforcedFlow struct {
	linked      bool          // in the list of its sender: so for every flow at a WAN port
	next, prev  uint32        // neighbors in that list, 0 for none
	ref         flowtable.Ref // of the flow's last known packet
	sourceQP    uint32        // 0: not known
	braked      bool          // its sender doesn't react to notifications
	measuring   bool          // its rate, so that it can be reduced
	since       int64         // when that began, ns
	keep        uint64        // percent of that rate which will remain
	measurement congestion.Measurement
}

// measureLimit is the time in which a flow's rate must be known, ns: a flow that sends less than a packet in that time isn't slowed down.
const measureLimit = 20_000_000

// measures reports whether the flow's rate is being measured.
func (e *enforcedFlow) measures(now int64) bool {
	if now-e.since >= measureLimit {
		e.measuring = false
	}
	return e.measuring
}

// measure adds a packet to the measurement of a flow's rate. Once that is known, it is reduced.
func (h *pacedHost) measure(c *congestion.Pacing, bytes uint32, now int64) {
	e := &h.enforced
	if rate, complete := e.measurement.Add(bytes, now); complete {
		e.measuring = false
		h.pace.Limit(c, rate, e.keep, now)
	}
}

// change changes the pace of a flow as a request asks, at the time now. It returns Unenforceds, or why it can't.
func (h *pacedHost) change(c *congestion.Pacing, r *Request, now int64) Unenforced {
	switch r.Action {
	case cnpdec.SlowDown:
		return h.reduce(c, c.Keep, now)
	case cnpdec.Reduce:
		return h.reduce(c, whole-min(uint64(r.parameter), whole), now)
	case cnpdec.Pause:
		h.pausedTo = max(h.pausedTo, r.At+int64(r.parameter)*microsecond)
	default:
		ended := h.pausedTo > now
		if ended {
			h.pausedTo = now
		}
		if r.Action == cnpdec.Resume {
			ended = h.restore(c, uint64(r.parameter), now) || ended
		}
		if !ended {
			return NothingToResume
		}
	}
	return Unenforceds
}

const whole = 100 // percent

// reduce reduces a flow's rate to a percentage: of its pace if it has one, otherwise of the rate at which its packets arrive, which must be
// measured first.
func (h *pacedHost) reduce(c *congestion.Pacing, keep uint64, now int64) Unenforced {
	if h.pace.Slow(c, now) || h.flows != 0 { // the rate of a flow whose frames are held is its pace
		if !h.pace.ReduceTo(c, keep, now) {
			return TooSoon
		}
		return Unenforceds
	}
	e := &h.enforced
	if e.measures(now) {
		e.keep = min(e.keep, keep)
		return Unenforceds
	}
	e.measuring, e.since, e.keep, e.measurement = true, now, keep, congestion.Measurement{}
	return Unenforceds
}

// restore gives a flow back a percentage of the last reduction, and with 0 its whole rate. The next frame need not wait as long as the
// lower pace asked for. It returns false if there was nothing to give back.
func (h *pacedHost) restore(c *congestion.Pacing, percent uint64, now int64) bool {
	measuring := h.enforced.measures(now)
	h.enforced.measuring = false
	if !h.pace.Restore(c, percent, now) {
		return measuring
	}
	h.ready = min(h.ready, now)
	return true
}
